package postgres

import (
	"context"

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
		d.Generation == 1 && d.DedupeKey == "" && d.Stream == "" && len(d.Steps) == 0
}

// completePlain settles the plain ones and reports which it settled; nil are none.
func (s *Store) completePlain(ctx context.Context, settlements []nixie.Settlement) ([]bool, error) {
	var places []int64
	var at map[int64]int
	for i := range settlements {
		if st := &settlements[i]; isPlain(st) {
			if at == nil {
				at = make(map[int64]int, len(settlements))
			}
			at[st.Delivery.Lease.Receipt.Place] = i
			places = append(places, st.Delivery.Lease.Receipt.Place)
		}
	}
	if len(places) == 0 || len(at) < len(places) || mentionedTwice(settlements, at) {
		return nil, nil
	}
	done := make([]bool, len(settlements))
	err := s.single(ctx, stmt{query: s.named(completion), args: []any{places, s.clockArg()}, each: func(r row) error {
		var pos int64
		err := r.Scan(&pos)
		if i, ok := at[pos]; ok {
			done[i] = true
		}
		return err
	}})
	return done, err
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

// clockArg is the time that was set for tests, null for the database's own.
func (s *Store) clockArg() *int64 {
	if s.opts.Clock == nil {
		return nil
	}
	now := s.opts.Clock().UnixNano()
	return &now
}

// single runs one statement that is a transaction by itself.
func (s *Store) single(ctx context.Context, st stmt) error {
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
	err = piped{c.Conn()}.ask(ctx, []stmt{st})
	if err != nil && unknown(err) {
		return nixie.Errorf(nixie.CodeOutcomeUnknown, "the answer did not come: look before you do it again: %w", err)
	}
	return s.explain(err)
}
