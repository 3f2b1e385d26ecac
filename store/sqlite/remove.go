package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// removeLetter removes a letter with its message. Pending items of other operations are skipped.
func (t *tx) removeLetter(l *letterRow, operation nixie.ID, why counting) error {
	if err := t.run(sqlText("skip_items"), t.now, l.pos, idOrNull(operation)); err != nil {
		return err
	}
	if err := t.leaveStream(l); err != nil {
		return err
	}
	if err := t.run("delete from note where letter = ?", l.pos); err != nil {
		return err
	}
	if _, err := t.leaveFacet(l); err != nil {
		return err
	}
	if err := t.run("delete from letter where pos = ?", l.pos); err != nil {
		return err
	}
	return t.removeMessage(l.pos, why)
}

// removeMessage removes a message that has ended, and counts it.
func (t *tx) removeMessage(pos int64, why counting) error {
	if err := t.dissolve(pos); err != nil {
		return err
	}
	q, err := t.queueAt(pos)
	if err != nil {
		return err
	}
	state, err := t.number("select state from log where pos = ?", pos)
	if err != nil {
		return err
	}
	if state < lifecycle.Succeeded || state > lifecycle.Dead {
		return nixie.Errorf(nixie.CodeInternal, "message at %d has not ended: run nixie verify", pos)
	}
	for _, remove := range [...]string{
		sqlText("free_key_of"),
		"delete from attachment where pos = ?",
		"delete from failure where pos = ?",
		"delete from log where pos = ?",
		"delete from original where pos = ?",
		"delete from message where pos = ?",
	} {
		if err := t.run(remove, pos); err != nil {
			return err
		}
	}
	t.add(counter{what: why, subject: q.n, name: string(lifecycle.State(int(state)))}, 1)
	return nil
}

// dissolve gives the unsettled members of batches around positions rows of their own, each leased
// as before. Then no range covers a position whose message is removed, moved or queued again.
// Otherwise a late settlement would find no row there and take the message for unsettled.
func (t *tx) dissolve(positions ...int64) error {
	if err := t.flushBatches(); err != nil {
		return err
	}
	var batches []int64
	if err := t.each(sqlText("batches_around"), func(row rows) error {
		batches = append(batches, row.ColumnInt64(0))
		return nil
	}, listed(positions, same)); err != nil {
		return err
	}
	for _, n := range batches {
		b, err := t.batch(n)
		if err != nil {
			return err
		}
		members, err := t.unsettled(b)
		if err != nil {
			return err
		}
		for _, pos := range members {
			p := b.member(pos)
			if err := t.insertPending(&p); err != nil {
				return err
			}
		}
		t.keepBatch(b.n, nil)
		if err := t.run("delete from batch where n = ?", b.n); err != nil {
			return err
		}
	}
	return nil
}

// readGone reads the counters of a queue that outlive its rows.
func readGone(c conn, n int64, q *store.QueueInfo) error {
	return c.each("select what, name, n from counter where what in (?, ?, ?) and subject = ?", func(row rows) error {
		count := row.ColumnInt64(2)
		switch counting(row.ColumnInt64(0)) {
		case ofPruned:
			q.Pruned += count
		case ofPurged:
			q.Purged += count
		case ofDiscards:
			if q.Discards == nil {
				q.Discards = map[nixie.Reason]int64{}
			}
			q.Discards[nixie.Reason(row.ColumnText(1))] = count
		}
		return nil
	}, int64(ofPruned), int64(ofPurged), int64(ofDiscards), n)
}
