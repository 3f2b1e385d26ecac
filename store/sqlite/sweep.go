package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// sweep ends the leases that are over and those of dead owners. It settles messages that their
// owners logged as succeeded, and releases those that had waited. The others are queued again for a
// worker to judge: a crash is an ordinary failure.
func (t *tx) sweep(dead []ownerRow) error {
	t.after = append(t.after, t.store.owner.progress.swept)
	if err := t.voidBatches(sqlText("batches_over"), t.now); err != nil {
		return err
	}
	if err := t.voidRows(sqlText("rows_over"), t.now); err != nil {
		return err
	}
	for _, o := range dead {
		if err := t.voidBatches(sqlText("batches_of_owner"), o.n); err != nil {
			return err
		}
		if err := t.voidRows(sqlText("rows_of_owner"), o.n); err != nil {
			return err
		}
		if err := t.run("delete from owner where n = ?", o.n); err != nil {
			return err
		}
	}
	return nil
}

// voidBatches gives each unsettled member of some batches a row of its own, due now.
func (t *tx) voidBatches(query string, arg int64) error {
	if err := t.flushBatches(); err != nil {
		return err
	}
	var gone []*batchRow
	if err := t.each(query, func(row rows) error {
		gone = append(gone, scanBatch(row))
		return nil
	}, arg); err != nil {
		return err
	}
	for _, b := range gone {
		positions, err := t.unsettled(b)
		if err != nil {
			return err
		}
		o, err := t.vanished(b.owner)
		if err != nil {
			return err
		}
		for _, pos := range positions {
			if err := t.voidMember(b, pos, o); err != nil {
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

func (t *tx) voidMember(b *batchRow, pos int64, o *vanished) error {
	q, err := t.queueAt(pos)
	if err != nil {
		return err
	}
	h := &held{pendingRow: b.member(pos), batch: b, q: q}
	if done, err := t.asLogged(h, o); done || err != nil {
		return err
	}
	if err := h.Abandon(o.name, o.told, t.now); err != nil {
		return err
	}
	return t.insertPending(&h.pendingRow)
}

// asLogged handles a message by the progress that its vanished holder logged. It returns false if a
// worker has to judge the message.
func (t *tx) asLogged(h *held, o *vanished) (done bool, err error) {
	switch o.progress[leaseID{h.pos, h.Number}] {
	case lease.Succeeded:
		if err := h.End(store.OnComplete, t.now); err != nil {
			return false, err
		}
		return true, t.follow(h, lifecycle.Success())
	case lease.Waiting:
		if err := h.Settle(&nixie.Settlement{Verb: nixie.Release}, &h.q.settings, h.Steps, t.now); err != nil {
			return false, err
		}
		return true, t.requeue(h)
	}
	return false, nil
}

// unsettled lists the unsettled members of a batch. The caller changes them afterwards, since
// SQLite may return rows of pending that are added during a query.
func (t *tx) unsettled(b *batchRow) ([]int64, error) {
	var positions []int64
	err := t.each(sqlText("unsettled_members"), func(row rows) error {
		positions = append(positions, row.ColumnInt64(0))
		return nil
	}, b.first, b.last)
	return positions, err
}

// voidRows gives leased rows back to their queues.
func (t *tx) voidRows(query string, arg int64) error {
	var gone []*pendingRow
	if err := t.each(query, func(row rows) error {
		gone = append(gone, scanPending(row))
		return nil
	}, arg); err != nil {
		return err
	}
	for _, p := range gone {
		o, err := t.vanished(p.Owner)
		if err != nil {
			return err
		}
		q, err := t.queueAt(p.pos)
		if err != nil {
			return err
		}
		if done, err := t.asLogged(&held{pendingRow: *p, was: *p, q: q}, o); err != nil {
			return err
		} else if done {
			continue
		}
		was := *p
		if err := p.Abandon(o.name, o.told, t.now); err != nil {
			return err
		}
		if p.stream != 0 {
			p.State = lifecycle.Behind
			t.markDirty(q, p.stream)
		}
		t.countAgain(&was, p)
		if err := t.run(sqlText("abandon_row"),
			p.State, p.Due, p.Attempts, p.Crashes, p.Abandoned, text(lease.PatienceText(p.Patience)), p.pos); err != nil {
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

// vanished is a holder whose leases ended without an answer.
type vanished struct {
	name     string // as failures name it
	told     bool   // it was told to stop
	progress map[leaseID]lease.Progress
}

// vanished reads an owner and its lock file, once in a transaction.
func (t *tx) vanished(n int64) (*vanished, error) {
	if o := t.gone[n]; o != nil {
		return o, nil
	}
	o := &vanished{name: "unknown"}
	err := t.each("select name, lock, stopping from owner where n = ?", func(row rows) error {
		o.name = row.ColumnText(0)
		o.progress = t.store.progressIn(row.ColumnText(1))
		o.told = row.ColumnBool(2) || o.progress[stopSlot()] != 0
		return nil
	}, n)
	if t.gone == nil {
		t.gone = map[int64]*vanished{}
	}
	t.gone[n] = o
	return o, err
}

// flushBatches writes the changed batches of this transaction, before a query reads the whole
// table.
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
	return t.run("update batch set left = ?, until = ?, has_rows = ? where n = ?", b.left, b.until, b.hasRows, b.n)
}
