package sqlite

// sweep ends the leases whose time is over and those of dead owners. Their
// messages are queued again to be judged: a crash is an ordinary failure.
func (t *tx) sweep(dead []ownerRow) error {
	if err := t.voidBatches("until <= ?", t.now); err != nil {
		return err
	}
	if err := t.voidRows("until <= ?", t.now); err != nil {
		return err
	}
	for _, o := range dead {
		if err := t.voidBatches("owner = ?", o.n); err != nil {
			return err
		}
		if err := t.voidRows("owner = ?", o.n); err != nil {
			return err
		}
		if err := t.run("delete from owner where n = ?", o.n); err != nil {
			return err
		}
	}
	return nil
}

// voidBatches gives each unsettled member of the chosen batches a row of its
// own, due now.
func (t *tx) voidBatches(where string, arg int64) error {
	if err := t.flushBatches(); err != nil {
		return err
	}
	var gone []*batchRow
	if err := t.each("select "+batchColumns+" from batch where "+where, func(row rows) error {
		gone = append(gone, scanBatch(row))
		return nil
	}, arg); err != nil {
		return err
	}
	for _, b := range gone {
		places, err := t.unsettled(b)
		if err != nil {
			return err
		}
		name, err := t.ownerName(b.owner)
		if err != nil {
			return err
		}
		for _, pos := range places {
			if err := t.insertPending(&pendingRow{
				pos: pos, queue: pos >> seqBits, due: t.now, attempts: 1, deliveries: 1, crashes: 1,
				generation: 1, number: 1, received: b.claimed, abandoned: name,
			}); err != nil {
				return err
			}
		}
		if err := t.run("delete from batch where n = ?", b.n); err != nil {
			return err
		}
		t.keepBatch(b.n, nil)
		if err := t.wakeAt(b.first); err != nil {
			return err
		}
	}
	return nil
}

// unsettled lists the members of a batch that wait for their settlement, before
// anything is changed: SQLite would offer rows of pending as they are added.
func (t *tx) unsettled(b *batchRow) ([]int64, error) {
	var places []int64
	err := t.each(`select m.pos from message m where m.pos between ? and ? and m.own = 0
		and not exists (select 1 from log where log.pos = m.pos)
		and not exists (select 1 from pending where pending.pos = m.pos)`, func(row rows) error {
		places = append(places, row.ColumnInt64(0))
		return nil
	}, b.first, b.last)
	return places, err
}

// voidRows does the same for messages that have a row already.
func (t *tx) voidRows(where string, arg int64) error {
	var gone []*pendingRow
	if err := t.each("select "+pendingColumns+" from pending indexed by pending_lease where state = 1 and "+where, func(row rows) error {
		gone = append(gone, scanPending(row))
		return nil
	}, arg); err != nil {
		return err
	}
	for _, p := range gone {
		name, err := t.ownerName(p.owner)
		if err != nil {
			return err
		}
		q, err := t.queueAt(p.pos)
		if err != nil {
			return err
		}
		was := *p
		p.state, p.due = stQueued, t.now
		p.crashes++
		if p.stream != 0 {
			p.state = stBehind
			t.stir(q, p.stream)
		}
		t.countAgain(&was, p)
		if err := t.run("update pending set state = ?, owner = 0, until = 0, due = ?, crashes = crashes + 1, abandoned = ? where pos = ? and state = 1",
			p.state, p.due, name, p.pos); err != nil {
			return err
		}
		t.wake(q.name)
	}
	return nil
}

func (t *tx) wakeAt(pos int64) error {
	q, err := t.queueAt(pos)
	if err == nil {
		t.wake(q.name)
	}
	return err
}

// ownerName is how a vanished holder is called in failures.
func (t *tx) ownerName(n int64) (string, error) {
	name := "unknown"
	err := t.each("select name from owner where n = ?", func(row rows) error {
		name = row.ColumnText(0)
		return nil
	}, n)
	return name, err
}

// flushBatches writes back the batches that this transaction changed, before
// the table is asked as a whole.
func (t *tx) flushBatches() error {
	for n, b := range t.batches {
		if b == nil || !b.dirty {
			continue
		}
		if err := t.saveBatch(b); err != nil {
			return err
		}
		if b.left <= 0 {
			t.batches[n] = nil
		}
		b.dirty = false
	}
	return nil
}

func (t *tx) saveBatch(b *batchRow) error {
	if b.left <= 0 {
		return t.run("delete from batch where n = ?", b.n)
	}
	return t.run("update batch set left = ?, until = ?, apart = ? where n = ?", b.left, b.until, b.apart, b.n)
}
