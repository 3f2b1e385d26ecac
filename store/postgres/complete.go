package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/nixie-go/nixie"
)

// Most settlements say only that a message succeeded, at its first delivery and
// without anything that hangs on it. Those of a call are one statement, which is a
// transaction by itself. Whatever it does not find so goes the long way.

// isPlain reports whether a settlement is one of those. What a delivery says of its
// message was true when it was claimed and does not change while it is leased.
func isPlain(st *nixie.Settlement) bool {
	d := st.Delivery
	return st.Verb == nixie.Complete && d != nil && d.Lease.Receipt.Place != 0 && d.Lease.Number == 1 && st.Failure == nil && st.Second == nil && st.Delay == 0 &&
		d.Generation == 1 && d.DedupeKey == "" && (d.Stream == "" || d.Lease.Receipt.Stream != 0) && len(d.Steps) == 0
}

// completing are the plain settlements of a call.
type completing struct {
	s           *Store
	settlements []nixie.Settlement
	done        []bool
	at          map[int64]int     // where in the call each place is
	rows        []int64           // places that have rows of their own
	batches     map[int64][]int64 // places by batch
	streams     []int64           // that handed out of their lanes
	lanes       []int64           // what they handed out
	woken       map[string]bool
}

// completePlain settles the plain ones and reports which it settled; nil are none.
func (s *Store) completePlain(ctx context.Context, settlements []nixie.Settlement) ([]bool, error) {
	c := &completing{s: s, settlements: settlements, at: make(map[int64]int, len(settlements)), batches: map[int64][]int64{}, woken: map[string]bool{}}
	plain := 0
	for i := range settlements {
		if st := &settlements[i]; isPlain(st) {
			c.sort(st.Delivery.Lease.Receipt, i)
			plain++
		}
	}
	if plain == 0 || len(c.at) < plain || mentionedTwice(settlements, c.at) {
		return nil, nil
	}
	c.done = make([]bool, len(settlements))
	// What is locked is what statements after see as it is then; all that are locked are
	// locked in the order of all.
	var list []stmt
	list = append(list, c.ofBatches()...)
	list = append(list, c.ofLanes()...)
	if len(c.rows) > 0 {
		list = append(list, stmt{query: s.named(completion), args: []any{c.rows, s.clockArg()}, each: func(r row) error {
			var pos int64
			err := r.Scan(&pos)
			c.note(pos)
			return err
		}})
	}
	if err := s.single(ctx, list); err != nil {
		return nil, err // what was noted before one of the statements failed was undone with it
	}
	for queue := range c.woken {
		s.wakes.ring(queue)
	}
	s.notify(c.woken)
	return c.done, nil
}

// sort takes in the settlement at a place of the call by how its lease was filed.
func (c *completing) sort(in nixie.Receipted, at int) {
	c.at[in.Place] = at
	switch {
	case in.Stream != 0:
		c.streams, c.lanes = append(c.streams, in.Stream), append(c.lanes, in.Place)
	case in.Batch != 0:
		c.batches[in.Batch] = append(c.batches[in.Batch], in.Place)
	default:
		c.rows = append(c.rows, in.Place)
	}
}

// note notes that messages were settled.
func (c *completing) note(positions ...int64) {
	for _, pos := range positions {
		if i, ok := c.at[pos]; ok {
			c.done[i] = true
		}
	}
}

// ofBatches are the statements about leases by range.
func (c *completing) ofBatches() (list []stmt) {
	numbers := slices.Sorted(maps.Keys(c.batches))
	if len(numbers) > 0 {
		list = append(list, stmt{query: c.s.named("select from @.batch where n = any($1) order by n for update"), args: []any{numbers}})
	}
	for _, n := range numbers {
		list = append(list, stmt{query: c.s.named(rangeCompletion), args: []any{n, c.batches[n], c.s.clockArg()}, each: func(r row) error {
			var some []int64
			if err := r.Scan(&some); err != nil {
				return err
			}
			if some == nil {
				some = c.batches[n]
			}
			c.note(some...)
			return nil
		}})
	}
	return list
}

// mentionedTwice reports whether a call says something else too of a message that
// it says to be plain: then their order counts.
func mentionedTwice(settlements []nixie.Settlement, at map[int64]int) bool {
	for i := range settlements {
		if d := settlements[i].Delivery; d != nil {
			if j, ok := at[d.Lease.Receipt.Place]; ok && j != i {
				return true
			}
		}
	}
	return false
}

const completion = `with gone as (delete from @.pending p where p.pos = any($1) and p.state = 1 and p.number = 1 and p.generation = 1 and p.stream is null and p.steps is null
		and p.until > coalesce($2::bigint, ` + databaseClock + `) returning p.*),
	counted as (insert into @.counter (queue, state, reason, n) select queue, 2, '', count(*) from gone group by queue)
	insert into @.log (pos, queue, state, ended, received, attempts, deliveries, crashes, generation, redrives, number, gap, reason)
	select pos, queue, 2, coalesce($2::bigint, ` + databaseClock + `), received, attempts, deliveries, crashes, generation, redrives, number, gap, reason from gone returning pos`

// rangeCompletion settles members of a batch, which is locked. One that was settled
// before is in the log already, which undoes the statement, or apart. As many as there
// are members are all of them. It answers with those that it settled, null if it
// settled all that it was given.
const rangeCompletion = `with
	clock as materialized (select coalesce($3::bigint, ` + databaseClock + `) as now),
	b as materialized (select b.*, clock.now from @.batch b, clock where b.n = $1 and b.until > clock.now),
	done as (insert into @.log (pos, queue, state, ended, received)
		select m.pos, b.queue, 2, b.now, b.claimed from b cross join lateral (
			select m.pos, m.tx from @.message m where m.queue = b.queue and not m.apart and (m.tx, m.pos) > (b.after_tx, b.after) order by m.tx, m.pos limit b.members) m
		where (m.tx, m.pos) <= (b.last_tx, b.last) and (b.members = cardinality($2::bigint[]) or m.pos in (select unnest($2::bigint[]))) and (b.remains = b.members or not exists (select from @.pending p where p.pos = m.pos))
		returning pos),
	counted as materialized (select count(*) as n from done),
	gone as (delete from @.batch x using b, counted c where x.n = b.n and b.remains <= c.n),
	kept as (update @.batch x set remains = b.remains - c.n from b, counted c where x.n = b.n and b.remains > c.n and c.n > 0),
	summed as (insert into @.counter (queue, state, reason, n) select b.queue, 2, '', c.n from b, counted c where c.n > 0)
	select case when counted.n < cardinality($2::bigint[]) then array(select pos from done) end from counted`

// clockArg is the time that was set for tests, null for the database's own.
func (s *Store) clockArg() *int64 {
	if s.opts.Clock == nil {
		return nil
	}
	now := s.opts.Clock().UnixNano()
	return &now
}

// single runs statements that are a transaction by themselves, in one round trip.
func (s *Store) single(ctx context.Context, list []stmt) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.gate.leave()
	c, err := s.acquire(ctx)
	if err != nil {
		return s.explain(err)
	}
	defer c.Release()
	ctx, stop := context.WithTimeout(ctx, s.opts.AnswerWait)
	defer stop()
	err = piped{c.Conn()}.ask(ctx, list)
	if err != nil && unknown(err) {
		return nixie.Errorf(nixie.CodeOutcomeUnknown, "the answer did not come: look before you do it again: %w", err)
	}
	return s.explain(err)
}
