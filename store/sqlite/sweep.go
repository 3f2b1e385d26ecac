package sqlite

import (
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store/engine"
)

// sweep ends the leases that are over and those of dead owners.
func (t *tx) sweep(dead []ownerRow) error {
	t.after = append(t.after, t.store.owner.progress.swept)
	var gone []int64
	for _, o := range dead {
		gone = append(gone, o.n)
	}
	if err := engine.Sweep(t.verb(), gone); err != nil {
		return err
	}
	for _, n := range gone {
		if err := t.run("delete from owner where n = ?", n); err != nil {
			return err
		}
	}
	return nil
}

// loadOver reads the messages under leases that are over.
func (v *verb) loadOver(w *engine.Want, facts *engine.Facts) error {
	if !w.Over {
		return nil
	}
	facts.Queues = map[string]*engine.Queue{}
	if err := v.flushBatches(); err != nil {
		return err
	}
	over := map[int64]*batchRow{}
	found, err := v.leasesOver(over, "batches_over", "rows_over", v.now)
	for _, n := range w.Gone {
		if err != nil {
			return err
		}
		var more []*held
		more, err = v.leasesOver(over, "batches_of_owner", "rows_of_owner", n)
		found = append(found, more...)
	}
	if err != nil {
		return err
	}
	for n, b := range over {
		v.keepBatch(n, b)
	}
	for _, h := range found {
		if v.messages[h.pos] != nil {
			continue // it is over by time, too
		}
		if err := v.vanish(h, facts); err != nil {
			return err
		}
	}
	return nil
}

// leasesOver reads the unsettled members of some batches, and some rows.
func (v *verb) leasesOver(over map[int64]*batchRow, ofBatches, ofRows string, arg int64) (found []*held, err error) {
	var more []*batchRow
	if err := v.each(sqlText(ofBatches), func(row rows) error {
		if b := scanBatch(row); over[b.n] == nil {
			over[b.n], more = b, append(more, b)
		}
		return nil
	}, arg); err != nil {
		return nil, err
	}
	for _, b := range more {
		positions, err := v.unsettled(b)
		if err != nil {
			return nil, err
		}
		b.left, b.dirty = int64(len(positions)), true // it goes with its members
		for _, pos := range positions {
			found = append(found, &held{pendingRow: b.member(pos), batch: b})
		}
	}
	return found, v.each(sqlText(ofRows), func(row rows) error {
		p := scanPending(row)
		found = append(found, &held{pendingRow: *p, was: *p})
		return nil
	}, arg)
}

// vanish completes what the engine knows of a message whose holder did not answer.
func (v *verb) vanish(h *held, facts *engine.Facts) (err error) {
	o, err := v.vanished(h.Owner)
	if err != nil {
		return err
	}
	if h.q, err = v.queueAt(h.pos); err != nil {
		return err
	}
	over := engine.Vanished{Message: &h.fact, By: o.name, Told: o.told, Progress: o.progress[leaseID{h.pos, h.Number}]}
	if over.Progress == lease.Succeeded {
		if err := v.loadGivenOf(h); err != nil {
			return err
		}
	}
	v.take(h, facts)
	if over.Progress == lease.Succeeded {
		if err := v.loadLetterOf(h); err != nil {
			return err
		}
	}
	facts.Over = append(facts.Over, over)
	return nil
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
