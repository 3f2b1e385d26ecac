package postgres

import (
	"context"
	"errors"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// How far holders are with what they hold is in a table that PostgreSQL keeps no log of
// writes for. A note costs a round trip and waits for no disk. It outlives whoever wrote
// it, and a crash of the server takes all of them: then nothing is known, and what was
// begun does not look as if it had waited. Of what was begun nothing is noted. Place and
// number name a lease for good, so a note is about that lease or about nothing.

// errNoStage says that the stage is not noted.
var errNoStage = errors.New("the stage of deliveries is not noted")

// LogProgress implements lease.ProgressLog.
func (s *Store) LogProgress(stage lease.Progress, ds ...*nixie.Delivery) error {
	for _, d := range ds {
		if d.Lease.Handle.Pos == 0 || stage == lease.Succeeded && len(lease.NewSteps(d)) > 0 {
			return errNoStage
		}
	}
	st := s.note(stage, ds, s.owner.self())
	return s.single(context.Background(), []stmt{st})
}

// note is the statement that notes a stage of deliveries. Leases that are over, or not
// of this owner any more, are passed by.
func (s *Store) note(stage lease.Progress, ds []*nixie.Delivery, owner int64) stmt {
	places := eachOf(ds, func(d *nixie.Delivery) int64 { return d.Lease.Handle.Pos })
	numbers := eachOf(ds, func(d *nixie.Delivery) int64 { return d.Lease.Number })
	if stage == lease.Begun {
		return stmt{query: s.named("forget_begun.sql"), args: []any{places, numbers}}
	}
	batches := eachOf(ds, func(d *nixie.Delivery) int64 { return d.Lease.Handle.Batch })
	return stmt{query: s.named("note_progress.sql"), args: []any{places, numbers, batches, owner, stage == lease.Succeeded}}
}

// noteClaimed notes that what is being claimed waits.
func (t *tx) noteClaimed(got *claims, owner int64) error {
	if err := t.send(); err != nil || len(got.list) == 0 {
		return err
	}
	ds := eachOf(got.list, func(c *claimed) *nixie.Delivery { return c.d })
	t.list = append(t.list, t.store.note(lease.Waiting, ds, owner))
	return nil
}

// settleNoted does with leases that are over what their holders noted: what succeeded
// is settled so, and what waited is released. Others are about to change what is
// locked, and it is passed by.
func (t *tx) settleNoted(dead []int64) error {
	t.locked.batches = map[int64]*batchRow{}
	t.read(t.keepBatch, "lock_noted_batches.sql", t.now, dead)
	var ids [][16]byte
	var succeeded []bool
	note := func(r row) error {
		var id [16]byte
		var did bool
		err := r.Scan(&id, &did)
		ids, succeeded = append(ids, id), append(succeeded, did)
		return err
	}
	t.read(note, "lock_noted_rows.sql", t.now, dead)
	t.read(note, "lock_noted_stream_rows.sql", t.now, dead)
	if err := t.send(); err != nil {
		return err
	}
	if len(t.locked.batches) > 0 {
		batches := make([]int64, 0, len(t.locked.batches))
		for n := range t.locked.batches {
			batches = append(batches, n)
		}
		t.read(note, "noted_members.sql", batches)
		t.read(note, "lock_noted_ordered.sql", batches)
		if err := t.send(); err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		return nil
	}
	t.holdRest(which.ids, ids, false)
	if err := t.send(); err != nil {
		return err
	}
	for i, id := range ids {
		m, st := t.byID[id], nixie.Settlement{Verb: nixie.Release}
		if succeeded[i] {
			st.Verb = nixie.Complete
		}
		if err := t.apply(m, &st, m.Steps); err != nil {
			return err
		}
	}
	t.flush()
	return nil
}
