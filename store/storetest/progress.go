package storetest

import (
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
)

// progressLog returns the progress log of a store, and skips the clause if there is none.
func (b *fixture) progressLog(st store.Store) lease.ProgressLog {
	b.Helper()
	r, ok := st.(lease.ProgressLog)
	if !ok {
		b.Skip("the store has no ProgressLog")
	}
	return r
}

// loggedProgress lets holders vanish, by death and by time, with deliveries of each progress.
func loggedProgress(b *fixture) {
	for _, priority := range []int{0, 1} { // members of a batch, and messages with rows of their own
		for _, frozen := range []bool{false, true} {
			other := b.join()
			keys := []string{"waits", "begun", "done", "unknown", "settled", "released"}
			for _, key := range keys {
				b.put(key, nixie.Priority(priority), nixie.DedupeKey(key))
			}
			ds := b.claimBy(other, len(keys))
			b.keys(ds, keys...)
			r := b.progressLog(other)
			b.ok(r.LogProgress(lease.Waiting, ds[0], ds[1], ds[2], ds[4], ds[5]))
			b.ok(r.LogProgress(lease.Begun, ds[1]))
			b.ok(r.LogProgress(lease.Begun, ds[2], ds[3], ds[4]))
			b.ok(r.LogProgress(lease.Succeeded, ds[2], ds[4]))
			b.ok(b.settleBy(other, nixie.Settlement{Delivery: ds[4], Verb: nixie.Complete}))
			b.ok(b.settleBy(other, nixie.Settlement{Delivery: ds[5], Verb: nixie.Release}))
			before := b.info().Succeeded
			if frozen {
				b.clock.Advance(31 * time.Second)
			} else {
				b.shared.Crash(other)
			}
			judged := b.claim(9)
			b.keys(judged, "begun", "unknown")
			for _, d := range judged {
				if !d.Abandoned || d.Crashes != 1 || d.Attempts != 0 {
					b.Errorf("%s: abandoned %v, %d crashes, %d attempts", d.Key, d.Abandoned, d.Crashes, d.Attempts)
				}
				b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
			}
			same(b, "successes that were noted", b.info().Succeeded, before+3)
			again := b.claim(9)
			same(b, "released", len(again), 2)
			for _, d := range again {
				if d.Abandoned || d.Crashes != 0 || d.Attempts != 1 || d.Deliveries != 2 {
					b.Errorf("%s: abandoned %v, %d crashes, %d attempts, %d deliveries", d.Key, d.Abandoned, d.Crashes, d.Attempts,
						d.Deliveries)
				}
				b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
			}
			done := b.record(ds[2].ID)
			if done.State != nixie.Succeeded || done.Attempts != 1 || done.Crashes != 0 {
				b.Errorf("done: %s after %d attempts and %d crashes", done.State, done.Attempts, done.Crashes)
			}
			if frozen {
				b.code(b.settleBy(other, nixie.Settlement{Delivery: ds[2], Verb: nixie.Complete}), nixie.CodeLeaseLost)
			}
			Invariants(b, b.st)
		}
	}
}

// claimsAreLogged shows that a claim with LogProgress itself logs that its messages wait, from the
// first moment.
func claimsAreLogged(b *fixture) {
	for _, priority := range []int{0, 1} {
		other := b.join()
		b.progressLog(other)
		b.put("a", nixie.Priority(priority))
		b.put("b", nixie.Priority(priority))
		ds, err := other.Claim(b.ctx, work, nixie.Want{Max: 9, Lease: 30 * time.Second, LogProgress: true})
		b.ok(err)
		b.keys(ds, "a", "b")
		b.ok(b.progressLog(other).LogProgress(lease.Begun, ds[0]))
		b.shared.Crash(other)
		for _, key := range []string{"a", "b"} {
			d := b.take(key)
			if begun := key == "a"; d.Abandoned != begun || d.Crashes > 0 != begun {
				b.Errorf("%s: abandoned %v, %d crashes", key, d.Abandoned, d.Crashes)
			}
			b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
		}
	}
}

// progressOfOneLease shows that the progress of one lease does not count for the next, also in the
// same process.
func progressOfOneLease(b *fixture) {
	r := b.progressLog(b.st)
	for _, priority := range []int{0, 1} {
		for _, progress := range []lease.Progress{lease.Waiting, lease.Succeeded} {
			d := b.took("a", nixie.Priority(priority))
			b.ok(r.LogProgress(progress, d))
			b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry}))
			b.take("a")
			b.ok(r.LogProgress(progress, d)) // too late: that lease is over
			b.clock.Advance(31 * time.Second)
			d = b.take("a")
			if !d.Abandoned || d.Crashes != 1 {
				b.Fatalf("abandoned %v, %d crashes", d.Abandoned, d.Crashes)
			}
			b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
		}
	}
}

// begunLate shows that a message is judged if its holder began it after the lease was over and
// before a process looked at its progress.
func begunLate(b *fixture) {
	r := b.progressLog(b.st)
	d := b.took("a")
	b.ok(r.LogProgress(lease.Waiting, d))
	b.clock.Advance(31 * time.Second)
	b.code(b.st.Extend(b.ctx, []*nixie.Delivery{d}, time.Minute)[0], nixie.CodeLeaseLost)
	b.ok(r.LogProgress(lease.Begun, d))
	if d = b.take("a"); !d.Abandoned || d.Crashes != 1 {
		b.Errorf("abandoned %v, %d crashes", d.Abandoned, d.Crashes)
	}
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
}

// newStepIsRefused shows that the log refuses a success with a step that the store does not know,
// because it has no room for the step.
func newStepIsRefused(b *fixture) {
	r := b.progressLog(b.st)
	d := b.took("a")
	b.ok(d.Step("one", func() error { return nil }))
	if r.LogProgress(lease.Succeeded, d) == nil {
		b.Error("a success with a new step was noted")
	}
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	same(b, "steps", len(b.record(d.ID).Steps), 1)
}
