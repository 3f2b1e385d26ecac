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
		return stmt{query: s.named("delete from @.stage where (pos, number) in (select * from unnest($1::bigint[], $2::bigint[]))"), args: []any{places, numbers}}
	}
	batches := eachOf(ds, func(d *nixie.Delivery) int64 { return d.Lease.Handle.Batch })
	return stmt{query: s.named(`insert into @.stage (pos, number, batch, owner, succeeded)
		select pos, number, batch, $4, $5 from (select distinct * from unnest($1::bigint[], $2::bigint[], $3::bigint[]) u (pos, number, batch) order by pos) u
		where exists (select from @.pending p where p.pos = u.pos and p.number = u.number and p.owner = $4) or exists (select from @.batch b where b.n = u.batch and b.owner = $4)
		on conflict (pos, number) do update set succeeded = excluded.succeeded`), args: []any{places, numbers, batches, owner, stage == lease.Succeeded}}
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

// forgetStages removes the notes of an owner, and of those that are off the list, about
// leases that are over.
const forgetStages = `delete from @.stage s where (s.owner = $1 or not exists (select from @.owner o where o.n = s.owner))
	and not exists (select from @.pending p where p.pos = s.pos and p.number = s.number and p.owner = s.owner) and not exists (select from @.batch b where b.n = s.batch)`

// isOver is the condition that the lease p has ended at the time $1, or that its owner
// is one of the dead, $2.
const isOver = "p.until > 0 and (p.until <= $1 or p.owner = any($2))"

// settleNoted does with leases that are over what their holders noted: what succeeded
// is settled so, and what waited is released. Others are about to change what is
// locked, and it is passed by.
func (t *tx) settleNoted(dead []int64) error {
	t.locked.batches = map[int64]*batchRow{}
	t.read(t.keepBatch, "select "+batchColumns+" from @.batch p where "+isOver+" and exists (select from @.stage s where s.batch = p.n and s.batch > 0) order by n for update skip locked", t.now, dead)
	var ids [][16]byte
	var succeeded []bool
	note := func(r row) error {
		var id [16]byte
		var did bool
		err := r.Scan(&id, &did)
		ids, succeeded = append(ids, id), append(succeeded, did)
		return err
	}
	const noted = "select m.id, s.succeeded from @.stage s join @.pending p on p.pos = s.pos and p.number = s.number and p.owner = s.owner join @.message m on m.pos = p.pos "
	t.read(note, noted+"where "+isOver+" and p.stream is null order by p.pos for update of p skip locked", t.now, dead)
	t.read(note, noted+"join @.stream o on o.n = p.stream where "+isOver+" order by p.pos for no key update of p, o skip locked", t.now, dead)
	if err := t.send(); err != nil {
		return err
	}
	if len(t.locked.batches) > 0 {
		batches := make([]int64, 0, len(t.locked.batches))
		for n := range t.locked.batches {
			batches = append(batches, n)
		}
		const members = "select p.id, s.succeeded from @.member p join @.stage s on s.pos = p.pos and s.number = 1 and s.owner = p.owner "
		t.read(note, members+"where p.batch = any($1) and p.lane is null order by p.pos", batches)
		t.read(note, members+"join @.stream o on o.n = p.lane where p.batch = any($1) order by o.queue, o.name for no key update of o skip locked", batches)
		if err := t.send(); err != nil {
			return err
		}
	}
	if len(ids) == 0 {
		return nil
	}
	t.holdRest(ofIDs, ids, false)
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
