package storetest

import (
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
)

// recorder is a store that notes stages.
func (b *fixture) recorder(st store.Store) lease.ProgressLog {
	b.Helper()
	r, ok := st.(lease.ProgressLog)
	if !ok {
		b.Skip("the store has no ProgressLog")
	}
	return r
}

// loggedProgress lets holders vanish, by death and by time, and looks at what becomes
// of deliveries in each stage.
func loggedProgress(b *fixture) {
	for _, priority := range []int{0, 1} { // a lease of many, and leases one by one
		for _, frozen := range []bool{false, true} {
			other := b.join()
			keys := []string{"waits", "begun", "done", "unknown", "settled", "released"}
			for _, key := range keys {
				b.put(key, nixie.Priority(priority), nixie.DedupeKey(key))
			}
			ds := b.claimBy(other, len(keys))
			b.keys(ds, keys...)
			r := b.recorder(other)
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

// claimsAreLogged shows that what waits is noted by the claim itself, if it asks
// for that, from the first moment.
func claimsAreLogged(b *fixture) {
	for _, priority := range []int{0, 1} {
		other := b.join()
		b.recorder(other)
		b.put("a", nixie.Priority(priority))
		b.put("b", nixie.Priority(priority))
		ds, err := other.Claim(b.ctx, work, nixie.Want{Max: 9, Lease: 30 * time.Second, LogProgress: true})
		b.ok(err)
		b.keys(ds, "a", "b")
		b.ok(b.recorder(other).LogProgress(lease.Begun, ds[0]))
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

// progressOfOneLease shows that what was noted under one lease says nothing of the
// next, also when the same process has it.
func progressOfOneLease(b *fixture) {
	r := b.recorder(b.st)
	for _, priority := range []int{0, 1} {
		for _, stage := range []lease.Progress{lease.Waiting, lease.Succeeded} {
			d := b.took("a", nixie.Priority(priority))
			b.ok(r.LogProgress(stage, d))
			b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry}))
			b.take("a")
			b.ok(r.LogProgress(stage, d)) // late, of a lease that is over
			b.clock.Advance(31 * time.Second)
			d = b.take("a")
			if !d.Abandoned || d.Crashes != 1 {
				b.Fatalf("abandoned %v, %d crashes", d.Abandoned, d.Crashes)
			}
			b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
		}
	}
}

// begunLate shows that a message is judged whose holder began it after it heard that the
// lease is over, but before anybody has looked at what it noted.
func begunLate(b *fixture) {
	r := b.recorder(b.st)
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

// newStepIsRefused shows that a success with a step that the store does not know is
// refused: the note has no room for it.
func newStepIsRefused(b *fixture) {
	r := b.recorder(b.st)
	d := b.took("a")
	b.ok(d.Step("one", func() error { return nil }))
	if r.LogProgress(lease.Succeeded, d) == nil {
		b.Error("a success with a new step was noted")
	}
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	same(b, "steps", len(b.record(d.ID).Steps), 1)
}
