package kafka

// prefix tracks the records of a partition that were handed out, in their order. It knows the
// offset before which all are finished: only that may be committed. Offsets have gaps if a topic is
// compacted or has transactions.
type prefix struct {
	entries     []entry // those before head are free
	head        int
	first       int64 // position of entries[head]
	open        int   // unfinished entries
	next        int64 // offset to commit: all before it are finished
	leaderEpoch int32 // of the record before next
}

type entry struct {
	offset    int64
	epoch     int32
	done      bool
	abandoned bool // this member will not finish it
}

// add adds the record at offset and returns its position.
func (p *prefix) add(offset int64, epoch int32) int64 {
	if p.head > len(p.entries)/2 && p.head > 0 {
		p.entries = p.entries[:copy(p.entries, p.entries[p.head:])]
		p.head = 0
	}
	p.entries = append(p.entries, entry{offset: offset, epoch: epoch})
	p.open++
	return p.first + int64(p.len()) - 1
}

// finish marks an entry as finished and reports whether next grew.
func (p *prefix) finish(position int64) bool {
	at := position - p.first
	if at < 0 || at >= int64(p.len()) {
		return false // it was finished before
	}
	e := &p.entries[p.head+int(at)]
	if e.done {
		return false
	}
	e.done = true
	if !e.abandoned {
		p.open--
	}
	if at > 0 {
		return false
	}
	for p.head < len(p.entries) && p.entries[p.head].done {
		p.next, p.leaderEpoch = p.entries[p.head].offset+1, p.entries[p.head].epoch
		p.head++
		p.first++
	}
	return true
}

// abandon marks an entry that this member will not finish.
func (p *prefix) abandon(position int64) {
	at := position - p.first
	if at < 0 || at >= int64(p.len()) {
		return
	}
	if e := &p.entries[p.head+int(at)]; !e.done && !e.abandoned {
		e.abandoned = true
		p.open--
	}
}

// len counts the entries from the first unfinished one on.
func (p *prefix) len() int { return len(p.entries) - p.head }
