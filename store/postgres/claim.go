package postgres

import (
	"cmp"
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Claim implements store.Queue. It skips rows that others have locked, so it never waits for them.
func (s *Store) Claim(ctx context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error) {
	leave, err := s.beginClaim(ctx, queue, &want)
	if err != nil {
		return nil, err
	}
	defer leave()
	owner := s.owner.self()
	for {
		var got *claims
		err := s.transact(ctx, s.pool, func(t *tx) (err error) {
			t.quiet = true
			got, err = t.claim(queue, want, owner)
			return err
		})
		if err != nil {
			return nil, err
		}
		if got.counts() {
			return got.sorted(), nil
		}
		if got != nil {
			continue
		}
		if owner, err = s.owner.registered(ctx, s, owner); err != nil {
			return nil, s.explain(err)
		}
	}
}

// beginClaim checks a want and lets a claim in, which has to call leave at its end.
func (s *Store) beginClaim(ctx context.Context, queue string, want *nixie.Want) (leave func(), err error) {
	want.Max = min(max(want.Max, 1), nixie.MaxBatch)
	if err := store.CheckWant(queue, want); err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if err := s.owner.arrives(ctx, s); err != nil {
		s.gate.leave()
		return nil, err
	}
	return func() {
		s.owner.rest.claiming.RUnlock()
		s.gate.leave()
	}, nil
}

// counts reports whether a claim was made. It was not if the cursor had gone back, and the next one
// can be made then.
func (c *claims) counts() bool {
	if c == nil {
		return false
	}
	if c.t.cursor.wentBack {
		c.t.store.seen.forgetMoves(c.q.name)
	}
	return !c.t.cursor.wentBack || len(c.list) > 0
}

// claim ends the leases that are over and claims what is due. It returns nil, and has done nothing,
// if the owner is not in the list. After settlements it also does so if leases are over or keys
// become free: then it would lock what calls lock before that which the transaction holds.
func (t *tx) claim(queue string, want nixie.Want, owner int64) (*claims, error) {
	var known, void, suspects bool
	since := t.store.seen.since()
	t.read(func(r row) error { return r.Scan(&t.now, &known, &void, &suspects) }, "claim_look.sql", owner, t.store.clockArg(), since, queue)
	t.readQueues("name = $1", queue)
	if err := t.send(); err != nil || !known || void && t.claims != "" {
		return nil, err
	}
	if !void {
		t.store.seen.noneOver(t.now)
	} else {
		t.quiet = false // what it frees may be of other queues
		if err := t.sweep(); err != nil {
			return nil, err
		}
	}
	c := &claims{t: t, q: t.named[queue]}
	if c.q == nil || c.q.settings.Paused {
		return c, nil
	}
	if t.claims != "" && lifecycle.FreesClaimed(c.q.settings.DedupeScope) {
		return nil, nil
	}
	if err := t.ctx.Err(); err != nil {
		return nil, err
	}
	if t.now-c.q.asked >= int64(store.AskedEvery) {
		t.run("note_asked.sql", c.q.n, t.now)
	}
	// From here on leases may be ours: a caller that leaves must not leave them without a holder.
	uncut, stop := context.WithTimeout(context.WithoutCancel(t.ctx), connectPatience)
	t.ctx, t.stop = uncut, stop
	if err := c.claimDue(want, owner, void, suspects); err != nil {
		return c, err
	}
	if err := c.freeKeys(); err != nil || !want.LogProgress {
		return c, err
	}
	return c, t.noteClaimed(c, owner)
}

// claimDue claims suspects if there are any, or else other messages.
func (c *claims) claimDue(want nixie.Want, owner int64, swept, suspects bool) error {
	if swept || suspects {
		if done, err := c.claimSuspects(want, owner); done || err != nil {
			return err
		}
	}
	if !c.q.settings.Ordered() {
		return c.claimUnordered(want, owner)
	}
	return c.claimOrdered(want, owner, swept)
}

// freeKeys frees the dedupe keys of what was claimed, if the queue's scope says so. A queue of
// another scope pays no round trip for it.
func (c *claims) freeKeys() error {
	if !lifecycle.FreesClaimed(c.q.settings.DedupeScope) {
		return nil
	}
	if err := c.t.send(); err != nil {
		return err
	}
	var positions []int64
	for _, got := range c.list {
		if got.d.DedupeKey != "" {
			positions = append(positions, got.pos)
		}
	}
	if len(positions) > 0 {
		c.t.freeKeys(positions)
	}
	return nil
}

// claimOrdered claims messages of a queue with an order: first by the ordered path, then rows. If
// there are no rows, the claim does not wait for the disk: if the server forgets it, the tokens are
// there again.
func (c *claims) claimOrdered(want nixie.Want, owner int64, swept bool) error {
	t := c.t
	c.lease = int64(cmp.Or(want.Lease, c.q.settings.LeaseOrDefault()))
	most := int64(want.Max)
	var rows bool
	if c.q.settings.Order == nixie.OrderStrict {
		if err := t.lockCursor(c.q.name); err != nil {
			return err
		}
		c.batch = t.store.owner.batches(owner) + 1
		t.read(c.scanOrdered, "claim_ordered.sql", c.q.n, t.now, most, ageOf(&c.q.settings), owner, c.lease, t.store.clockArg(), c.batch,
			t.cursor.moves, nixie.MaxBatchBytes)
	}
	t.read(func(r row) error { return r.Scan(&rows, &t.now) }, "ordered_rows_wait.sql", c.q.n, t.store.clockArg())
	if err := t.send(); err != nil {
		return err
	}
	if !rows && !swept && t.claims == "" {
		t.run("set local synchronous_commit = off")
	}
	if len(c.added.streams) > 0 {
		rows = true
		if err := c.recomputeAdded(); err != nil {
			return err
		}
	}
	if most -= int64(len(c.list)); most == 0 || !rows {
		return nil
	}
	t.read(c.scan, "claim_stream_rows.sql", c.q.n, t.now, most, ageOf(&c.q.settings), owner, t.now+c.lease, nixie.MaxBatchBytes-c.size)
	if err := t.send(); err != nil {
		return err
	}
	return t.pass(c)
}

// recomputeAdded recomputes the heads of streams to which transactions of callers have appended.
// Streams that others have locked are left to the next claim.
func (c *claims) recomputeAdded() error {
	t := c.t
	held := map[int64]bool{}
	t.lock(&held, "select n from @.stream where n = any($1) order by queue, name for no key update skip locked", c.added.streams)
	if err := t.send(); err != nil {
		return err
	}
	var left tokens
	for i, n := range c.added.streams {
		if held[n] {
			t.markDirty(c.q.n, c.names[i])
		} else {
			left.add(n, c.added.positions[i])
		}
	}
	if len(left.streams) > 0 {
		t.run("insert into @.token (queue, streams, positions) values ($1, $2, $3)", c.q.n, left.streams, left.positions)
	}
	t.recomputeHeads()
	t.work.dirty = nil
	return nil
}

// cursor has what a claim knows of the cursor of its queue, once it is locked.
type cursor struct {
	locked   bool
	moves    int64 // how often it had moved at least
	wentBack bool  // it moved less often than was seen, and was not locked
}

// lockCursor locks the cursor of a queue, unless that is done. A lease begins once the lock was
// waited for: a clock that a test set is read then. After a crash that made the server forget
// moves, the cursor is not found, or another claim moves it to the number that was seen before: so
// everything that a claim does depends on its own move of the cursor.
func (t *tx) lockCursor(queue string) error {
	if t.cursor.locked {
		return nil
	}
	seen := &t.store.seen
	moves := seen.cursorMoves(queue)
	t.cursor = cursor{locked: true, moves: moves, wentBack: moves > 0}
	t.read(func(r row) error {
		var n int64
		err := r.Scan(&n)
		t.cursor.wentBack = false
		seen.noteMoves(queue, n)
		return err
	}, "lock_cursor.sql", queue, moves)
	if t.store.opts.Clock != nil {
		return t.send()
	}
	return nil
}

// claimUnordered claims messages of a queue without order, unless the queue changed since it was
// read. Leases that ended meanwhile, or that another process is about to end, are left to the next
// claim.
func (c *claims) claimUnordered(want nixie.Want, owner int64) error {
	t, s := c.t, c.t.store
	lease := cmp.Or(want.Lease, c.q.settings.LeaseOrDefault())
	if err := t.lockCursor(c.q.name); err != nil {
		return err
	}
	batches := s.owner.batches(owner)
	t.read(c.scan, "claim_unordered.sql", c.q.n, s.clockArg(), want.Max, ageOf(&c.q.settings), owner, int64(lease), t.cursor.moves,
		c.q.text, batches, nixie.MaxBatchBytes, t.claims != "")
	t.read(c.scanPiece, "select n, claimed, until, members from @.batch where n between $1::bigint + 1 and $2 order by n",
		batches, batches+maxPieces)
	t.read(c.scanMember, "claimed_members.sql", batches, batches+maxPieces)
	return nil
}

// pass notes which messages of streams were claimed, and which of them out of order. Their streams
// are locked.
func (t *tx) pass(c *claims) error {
	var list []*claimed
	byPos := map[int64]*claimed{}
	for _, got := range c.list {
		if got.stream != 0 {
			list = append(list, got)
			byPos[got.pos] = got
			t.markDirty(c.q.n, got.d.Stream)
		}
	}
	if len(list) == 0 {
		return nil
	}
	positions := eachOf(list, func(got *claimed) int64 { return got.pos })
	t.read(func(r row) error {
		var pos int64
		err := r.Scan(&pos)
		if got := byPos[pos]; got != nil {
			got.d.OrderGap = true
		}
		return err
	}, "mark_order_gaps.sql", positions)
	t.run("update @.pending set may_pass = false where pos = any($1) and may_pass", positions)
	t.run("raise_top.sql", eachOf(list, func(got *claimed) int64 { return got.stream }))
	return t.send()
}
