package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
)

// Most settlements only say that a message succeeded, in its first generation and without steps,
// keys or letters. Those of a call are few statements, which are a transaction by themselves.
// Settlements that these do not find take the long path, through the engine.

// isPlain reports whether a settlement is one of those. A delivery tells what was true when its
// message was claimed; that does not change while the message is leased.
func isPlain(st *nixie.Settlement) bool {
	d := st.Delivery
	return st.Verb == nixie.Complete && d != nil && d.Lease.Handle.Pos != 0 && (d.Lease.Number == 1 || d.Lease.Handle.Batch == 0) &&
		st.Failure == nil && st.Second == nil && st.Delay == 0 && len(st.Then) == 0 && st.Waiver == nixie.NoWaiver &&
		d.Generation == 1 && d.DedupeKey == "" && (d.Stream == "" || d.Lease.Handle.Stream != 0) && len(d.Steps) == 0
}

// completing has the plain settlements of a call.
type completing struct {
	s           *Store
	settlements []nixie.Settlement
	plain       int // how many of them
	done        []bool
	at          map[int64]int     // indexes in the call of positions that are not in batches by range
	rows        map[int64][]int64 // positions of messages with rows, by the number of the lease
	batches     []*settled
	ordered     map[int64]*tokens // messages of ordered paths, with their streams, by batch
	woken       map[string]bool
}

// CompletePlain implements engine.Driver.
func (d engineDriver) CompletePlain(ctx context.Context, settlements []nixie.Settlement) ([]bool, error) {
	c := d.plan(settlements)
	if c == nil {
		return nil, nil
	}
	if err := d.single(ctx, d.pool, c.statements()); isRace(err) {
		return nil, nil
	} else if err != nil {
		return nil, err // the server undid also the statements before the one that failed
	}
	d.tell(c.woken)
	return c.done, nil
}

// plan sorts the plain settlements of a call; nil if it completes none plainly.
func (s *Store) plan(settlements []nixie.Settlement) *completing {
	c := &completing{s: s, settlements: settlements, at: map[int64]int{}, rows: map[int64][]int64{}, ordered: map[int64]*tokens{},
		woken: map[string]bool{}}
	members := 0
	for i := range settlements {
		st := &settlements[i]
		if !isPlain(st) {
			continue
		}
		c.plain++
		if in := st.Delivery.Lease.Handle; in.Batch != 0 && in.Stream == 0 {
			members++
			c.batches = addPart(c.batches, &in, i)
		} else {
			c.sort(&st.Delivery.Lease, i)
		}
	}
	if c.plain == 0 || len(c.at)+members < c.plain || mentionedTwice(settlements, c.plain) {
		return nil
	}
	for _, b := range c.batches {
		if !b.findRuns() {
			return nil
		}
	}
	return c
}

// statements returns what completes the plain settlements, and notes which are done. Statements
// after the lock see the batches as they are then. All are locked in the order in which all calls
// lock them.
func (c *completing) statements() (list []stmt) {
	c.done = make([]bool, len(c.settlements))
	numbers := eachOf(c.batches, func(b *settled) int64 { return b.n })
	if numbers = slices.AppendSeq(numbers, maps.Keys(c.ordered)); len(numbers) > 0 {
		list = append(list, stmt{query: c.s.named("select from @.batch where n = any($1) order by n for update"), args: []any{numbers}})
	}
	list = append(list, c.ofRanges()...)
	list = append(list, c.ofOrdered()...)
	return append(list, c.ofRows()...)
}

// Complete implements engine.Tx: what is plain was completed before.
func (v *verb) Complete([]nixie.Settlement) ([]bool, error) { return nil, nil }

// sort takes in a settlement of the call by how its message was claimed.
func (c *completing) sort(lease *nixie.Lease, at int) {
	in := lease.Handle
	c.at[in.Pos] = at
	if in.Stream != 0 {
		if c.ordered[in.Batch] == nil {
			c.ordered[in.Batch] = &tokens{}
		}
		c.ordered[in.Batch].add(in.Stream, in.Pos)
	} else {
		c.rows[lease.Number] = append(c.rows[lease.Number], in.Pos)
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

// ofRows returns the statements that complete messages with rows.
func (c *completing) ofRows() (list []stmt) {
	for _, number := range slices.Sorted(maps.Keys(c.rows)) {
		list = append(list, stmt{query: c.s.named("complete_rows.sql"), args: []any{c.rows[number], c.s.clockArg(), number},
			each: func(r row) error {
				var pos int64
				err := r.Scan(&pos)
				c.note(pos)
				return err
			}})
	}
	return list
}

// mentionedTwice reports whether a call has another settlement of a message that it completes
// plainly: then their order matters. plain counts the plain ones.
func mentionedTwice(settlements []nixie.Settlement, plain int) bool {
	if plain == len(settlements) {
		return false
	}
	others := make(map[int64]bool, len(settlements)-plain)
	for i := range settlements {
		if st := &settlements[i]; st.Delivery != nil && !isPlain(st) {
			others[st.Delivery.Lease.Handle.Pos] = true
		}
	}
	return slices.ContainsFunc(settlements, func(st nixie.Settlement) bool { return isPlain(&st) && others[st.Delivery.Lease.Handle.Pos] })
}

// clockArg returns the time that a test set, null for the database's own.
func (s *Store) clockArg() *int64 {
	if s.opts.Clock == nil {
		return nil
	}
	now := s.opts.Clock().UnixNano()
	return &now
}

// single runs statements that are a transaction by themselves, in one round trip.
func (s *Store) single(ctx context.Context, pool *pgxpool.Pool, list []stmt) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.gate.leave()
	if s.sessionSettings != "" {
		list = append([]stmt{{query: s.sessionSettings}}, list...)
	}
	c, err := s.acquire(ctx, pool)
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
