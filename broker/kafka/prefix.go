package kafka

// prefix follows the records of a partition that are handed out, in their order,
// and knows up to where all are finished: only that may be committed. Offsets may
// leave gaps, where a topic is compacted or has transactions.
type prefix struct {
	entries []entry // of which those before head are gone
	head    int
	first   int64 // position of entries[head]
	open    int   // entries that are not finished
	next    int64 // offset after the finished ones: what may be committed
	leader  int32 // epoch of the one that wrote the record before next
}

type entry struct {
	offset int64
	epoch  int32
	done   bool
	left   bool // it will not be finished here
}

// add takes in the record at offset and returns its position.
func (p *prefix) add(offset int64, epoch int32) int64 {
	if p.head > len(p.entries)/2 && p.head > 0 {
		p.entries = p.entries[:copy(p.entries, p.entries[p.head:])]
		p.head = 0
	}
	p.entries = append(p.entries, entry{offset: offset, epoch: epoch})
	p.open++
	return p.first + int64(p.len()) - 1
}

// finish marks the entry of a position and reports whether next moved.
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
	if !e.left {
		p.open--
	}
	if at > 0 {
		return false
	}
	for p.head < len(p.entries) && p.entries[p.head].done {
		p.next, p.leader = p.entries[p.head].offset+1, p.entries[p.head].epoch
		p.head++
		p.first++
	}
	return true
}

// leave says that nobody is going to finish an entry.
func (p *prefix) leave(position int64) {
	at := position - p.first
	if at < 0 || at >= int64(p.len()) {
		return
	}
	if e := &p.entries[p.head+int(at)]; !e.done && !e.left {
		e.left = true
		p.open--
	}
}

// len is how many entries are kept: the first unfinished one and all after it.
func (p *prefix) len() int { return len(p.entries) - p.head }
