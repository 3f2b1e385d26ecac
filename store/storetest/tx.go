package storetest

import (
	"context"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// OpenTx is a transaction of the caller with the store bound to it. Each store has its own kind of
// transaction; its [Harness] adapts it:
//
//	Begin: func(ctx context.Context, st store.Store) (storetest.OpenTx, error) {
//		tx, err := pool.Begin(ctx)
//		return storetest.OpenTx{Tx: st.(*postgres.Store).Tx(tx), Commit: …, Rollback: …}, err
//	}
type OpenTx struct {
	store.Tx
	Commit, Rollback func() error
}

// txClauses are for stores with transactions of the caller. While one is open the clauses write
// nothing else, because a store may make other writers wait for its end.
func txClauses(begin func(context.Context, store.Store) (OpenTx, error)) []clause {
	in := func(test func(b *fixture, begin func() OpenTx)) func(*fixture) {
		return func(b *fixture) {
			test(b, func() OpenTx {
				tx, err := begin(b.ctx, b.st)
				b.ok(err)
				return tx
			})
		}
	}
	return []clause{
		{"CommitKeepsAll", in(commitKeepsAll)},
		{"RollbackLeavesNothing", in(rollbackLeavesNothing)},
		{"UnseenBefore", in(unseenBefore)},
		{"RefusedCallLeavesTheRest", in(refusedCallLeavesTheRest)},
		{"CompleteSavesSteps", in(completeSavesSteps)},
		{"CompleteMovesLetterOn", in(completeMovesLetterOn)},
		{"CompleteWritesTheOutcome", in(completeWritesTheOutcome)},
		{"CompleteNeedsLease", in(completeNeedsLease)},
		{"SettleAfterComplete", in(settleAfterComplete)},
		{"Once", in(once)},
		{"OnceLimits", in(onceLimits)},
		{"AStreamThatWasFreed", in(freedStream)},
	}
}

func enqueueIn(b *fixture, tx OpenTx, key string, opts ...nixie.Option) nixie.ID {
	b.Helper()
	receipts, err := tx.Enqueue(b.ctx, message(key, opts...))
	b.ok(err)
	same(b, "number of receipts", len(receipts), 1)
	return receipts[0].ID
}

func onceIn(b *fixture, tx OpenTx, scope, key string, want bool) {
	b.Helper()
	first, err := tx.Once(b.ctx, scope, key)
	b.ok(err)
	same(b, "first time of "+scope+"/"+key, first, want)
}

func commitKeepsAll(b *fixture, begin func() OpenTx) {
	d := b.took("done")
	tx := begin()
	id := enqueueIn(b, tx, "new", nixie.DedupeKey("k"))
	again, err := tx.Enqueue(b.ctx, message("other", nixie.DedupeKey("k")))
	b.ok(err)
	same(b, "holder of the key", again[0], nixie.Receipt{ID: id, Duplicate: true, Different: true})
	b.ok(tx.Complete(b.ctx, d))
	onceIn(b, tx, "a", "k", true)
	b.ok(tx.Commit())
	b.state(d.ID, nixie.Succeeded)
	same(b, "message is completed", d.Completed(), true)
	same(b, "time of enqueue", b.record(id).EnqueuedAt.Equal(b.clock.Now()), true)
	same(b, "message", b.take("new").ID, id)
}

func rollbackLeavesNothing(b *fixture, begin func() OpenTx) {
	d := b.took("d")
	b.unchanged(func() {
		tx := begin()
		enqueueIn(b, tx, "a")
		enqueueIn(b, tx, "b", nixie.Queue("another"), nixie.Priority(2), nixie.Stream("s"), nixie.DedupeKey("k"))
		b.ok(tx.Complete(b.ctx, d))
		onceIn(b, tx, "s", "k", true)
		b.ok(tx.Rollback())
	})
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
}

func unseenBefore(b *fixture, begin func() OpenTx) {
	d := b.took("d")
	b.unchanged(func() {
		tx := begin()
		enqueueIn(b, tx, "a")
		b.ok(tx.Complete(b.ctx, d))
		b.state(d.ID, nixie.Leased)
		same(b, "messages that others see", b.info().Total, 1)
		b.ok(tx.Rollback())
	})
}

func refusedCallLeavesTheRest(b *fixture, begin func() OpenTx) {
	b.put("holder", nixie.DedupeKey("k"))
	tx := begin()
	first := enqueueIn(b, tx, "first")
	_, err := tx.Enqueue(b.ctx, message("half", nixie.Queue("another")),
		message("dup", nixie.DedupeKey("k"), nixie.OnConflict(nixie.FailOnConflict)))
	b.code(err, nixie.CodeConflict)
	_, err = tx.Enqueue(b.ctx, message("half"), message("bad", nixie.Priority(nixie.MaxPriority+1)))
	b.code(err, nixie.CodeInvalid)
	_, err = tx.Enqueue(b.ctx, message("half"), nixie.Message{ID: first, Queue: work})
	b.code(err, nixie.CodeConflict)
	enqueueIn(b, tx, "last")
	b.ok(tx.Commit())
	b.keys(b.claim(10), "holder", "first", "last")
	queues, err := b.st.Queues(b.ctx, store.QueueQuery{})
	b.ok(err)
	same(b, "number of queues", len(queues), 1)
}

func completeSavesSteps(b *fixture, begin func() OpenTx) {
	d := b.took("d", nixie.DedupeKey("k"))
	b.ok(d.Step("charge", func() error { return nil }))
	tx := begin()
	b.ok(tx.Complete(b.ctx, d))
	enqueueIn(b, tx, "next", nixie.DedupeKey("k")) // the key is free at once
	b.ok(tx.Commit())
	r := b.record(d.ID)
	same(b, "steps", strings.Join(r.Steps, ","), "charge")
	same(b, "attempts", r.Attempts, 1)
	b.take("next")
}

func completeMovesLetterOn(b *fixture, begin func() OpenTx) {
	l := b.dead("d", nixie.StatusOpen)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	tx := begin()
	b.ok(tx.Rollback())
	d := b.take("d")
	tx = begin()
	b.ok(tx.Complete(b.ctx, d))
	b.ok(tx.Commit())
	b.status(l.ID, nixie.StatusResolved)
}

func completeWritesTheOutcome(b *fixture, begin func() OpenTx) {
	op := b.redriven(store.OnRedrive, b.dead("d", nixie.StatusOpen))
	d := b.take("d")
	tx := begin()
	b.ok(tx.Complete(b.ctx, d))
	b.ok(tx.Rollback())
	same(b, "outcome after a rollback", b.outcome(op), store.Outcome{UnderWay: 1})
	tx = begin()
	b.ok(tx.Complete(b.ctx, d))
	b.ok(tx.Commit())
	same(b, "outcome", b.outcome(op), store.Outcome{Succeeded: 1})
}

func completeNeedsLease(b *fixture, begin func() OpenTx) {
	settled, canceled, expired := b.took("settled"), b.took("canceled"), b.took("expired")
	b.ok(b.settle(nixie.Settlement{Delivery: settled, Verb: nixie.Release}))
	b.ok(b.amend(canceled.ID, store.Cancel))
	b.clock.Advance(expired.Lease.ExpiresAt.Sub(b.clock.Now()))
	b.unchanged(func() {
		tx := begin()
		for _, d := range []*nixie.Delivery{settled, canceled, expired} {
			b.code(tx.Complete(b.ctx, d), nixie.CodeLeaseLost)
			same(b, "message is completed", d.Completed(), false)
		}
		b.ok(tx.Commit())
	})
}

func settleAfterComplete(b *fixture, begin func() OpenTx) {
	d := b.took("d")
	tx := begin()
	b.ok(tx.Complete(b.ctx, d))
	b.code(tx.Complete(b.ctx, d), nixie.CodeLeaseLost)
	b.ok(tx.Commit())
	for _, st := range []nixie.Settlement{{Delivery: d, Verb: nixie.Complete},
		{Delivery: d, Verb: nixie.Retry, Failure: b.failure(d, "too late")}, b.dying(d, nixie.StatusOpen)} {
		b.unchanged(func() { b.code(b.settle(st), nixie.CodeLeaseLost) })
	}
	same(b, "number of failures", len(b.record(d.ID).History), 0)
}

func once(b *fixture, begin func() OpenTx) {
	for i, want := range []bool{true, true, false, false} {
		tx := begin()
		onceIn(b, tx, "mail", "7", want)
		onceIn(b, tx, "mail", "7", false)
		onceIn(b, tx, "other", "7", want)
		onceIn(b, tx, "mail", "77", want)
		if i == 0 {
			b.ok(tx.Rollback())
		} else {
			b.ok(tx.Commit())
		}
	}
}

func onceLimits(b *fixture, begin func() OpenTx) {
	tx := begin()
	long := strings.Repeat("k", nixie.MaxName)
	onceIn(b, tx, long, long, true)
	for _, bad := range []string{"", long + "k", "a\nb", "\xff"} {
		_, err := tx.Once(b.ctx, "s", bad)
		b.code(err, nixie.CodeInvalid)
		_, err = tx.Once(b.ctx, bad, "k")
		b.code(err, nixie.CodeInvalid)
	}
	b.ok(tx.Commit())
}

// freedStream shows that a message of a transaction does not wait for one that was taken out of its
// stream.
func freedStream(b *fixture, begin func() OpenTx) {
	b.ordered(nixie.OrderStrict, "")
	head := b.put("m1", nixie.Stream("s"))
	c := b.holding("poison")
	c.Free = true
	b.ok(b.change(head, c))
	tx := begin()
	enqueueIn(b, tx, "m2", nixie.Stream("s"))
	b.ok(tx.Commit())
	same(b, "ready", b.info().Ready, 1)
	same(b, "blocked", b.info().Blocked, 0)
	b.keys(b.claim(9), "m2")
}
