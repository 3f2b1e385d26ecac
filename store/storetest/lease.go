package storetest

import (
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func leaseClauses() []clause {
	return []clause{
		{"R12_LateCallsAreFenced", lateCalls},
		{"ValidUntilItsEnd", validUntilEnd},
		{"AWrongNumberIsRefused", wrongNumber},
		{"TwoSettlementsOfOneDelivery", twoSettlements},
		{"TheFilingIsAShortCutOnly", withoutReceipt},
		{"NumbersGrowOverAllGenerations", numbersGrow},
		{"ExtendMovesTheEnd", extendMovesEnd},
		{"ExtendShortens", extendShortens},
		{"ExtendAnswersEachOne", extendAnswersEach},
		{"ExtendOfNothingIsInvalid", extendOfNothing},
		{"ExtendOfOneTwice", extendTwice},
		{"ExtendSavesSteps", extendSavesSteps},
		{"OneOfABatchIsExtended", extendOneOfBatch},
	}
}

// lost is a way in which a lease ends before its holder settles.
type lost struct {
	name string
	end  func(b *fixture, d *nixie.Delivery)
}

func waysToLose() []lost {
	complete := func(b *fixture, d *nixie.Delivery) {
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	}
	return []lost{
		{"expired", func(b *fixture, _ *nixie.Delivery) { b.clock.Advance(30 * time.Second) }},
		{"expired and seen", func(b *fixture, _ *nixie.Delivery) {
			b.clock.Advance(30 * time.Second)
			b.configure(nixie.QueueSettings{Paused: true})
			b.claim(1)
		}},
		{"claimed again", func(b *fixture, d *nixie.Delivery) {
			b.clock.Advance(30 * time.Second)
			same(b, "claimed again", len(b.claim(1)), 1)
		}},
		{"completed", complete},
		{"completed by the next holder", func(b *fixture, _ *nixie.Delivery) {
			b.clock.Advance(30 * time.Second)
			complete(b, b.claim(1)[0])
		}},
		{"retried", func(b *fixture, d *nixie.Delivery) { b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry})) }},
		{"released", func(b *fixture, d *nixie.Delivery) {
			b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release}))
		}},
		{"discarded", func(b *fixture, d *nixie.Delivery) {
			b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Discard}))
		}},
		{"buried", func(b *fixture, d *nixie.Delivery) { b.ok(b.settle(b.dying(d, nixie.StatusOpen))) }},
		{"buried and redriven", func(b *fixture, d *nixie.Delivery) {
			b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
			b.ok(b.resolve(b.letterOf(d.ID).ID, store.OnRedrive))
		}},
		{"canceled", func(b *fixture, d *nixie.Delivery) { b.ok(b.amend(d.ID, store.Cancel)) }},
	}
}

// lateCalls tries every verb and an extend on leases that ended in every way, of messages in
// batches and with rows of their own. Nothing changes.
func lateCalls(b *fixture) {
	verbs := []nixie.Verb{nixie.Complete, nixie.Retry, nixie.Release, nixie.Discard, nixie.Bury, nixie.Hold, nixie.Halt}
	for _, way := range waysToLose() {
		for _, priority := range []int{0, 1} {
			b.configure(nixie.QueueSettings{})
			d := b.took(way.name, nixie.Priority(priority))
			way.end(b, d)
			d.Steps = append(d.Steps, "late")
			b.unchanged(func() {
				for _, verb := range verbs {
					s := nixie.Settlement{Delivery: d, Verb: verb, Failure: b.failure(d, "late"), Burial: burial("")}
					if err := b.settle(s); nixie.CodeOf(err) != nixie.CodeLeaseLost {
						b.Fatalf("late %s, lease %s: error is %v, want lease-lost", verb, way.name, err)
					}
				}
				if err := b.st.Extend(b.ctx, []*nixie.Delivery{d}, time.Minute)[0]; nixie.CodeOf(err) != nixie.CodeLeaseLost {
					b.Fatalf("late extend, lease %s: error is %v, want lease-lost", way.name, err)
				}
			})
			b.empty()
		}
	}
}

// empty cancels everything that has not ended.
func (b *fixture) empty() {
	b.Helper()
	left, err := allMessages(b.ctx, b.st, nixie.Filter{States: []nixie.State{nixie.Queued, nixie.Leased}})
	b.ok(err)
	for _, m := range left {
		b.ok(b.amend(m.ID, store.Cancel))
	}
}

func validUntilEnd(b *fixture) {
	d := b.took("a")
	b.clock.Advance(30*time.Second - time.Millisecond)
	b.keys(b.claim(1))
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))

	d = b.took("b")
	b.clock.Advance(30 * time.Second)
	b.code(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}), nixie.CodeLeaseLost)
	b.keys(b.claim(1), "b")
}

func wrongNumber(b *fixture) {
	d := b.took("a")
	b.unchanged(func() {
		for _, number := range []int64{-1, 0, 2, 1 << 40} {
			wrong := *d
			wrong.Lease.Number = number
			b.code(b.settle(nixie.Settlement{Delivery: &wrong, Verb: nixie.Complete}), nixie.CodeLeaseLost)
			b.code(b.st.Extend(b.ctx, []*nixie.Delivery{&wrong}, time.Minute)[0], nixie.CodeLeaseLost)
		}
		stranger := *d
		stranger.ID = new(store.IDs).New(b.clock.Now())
		stranger.Lease.Handle = nixie.LeaseHandle{}
		b.code(b.settle(nixie.Settlement{Delivery: &stranger, Verb: nixie.Complete}), nixie.CodeLeaseLost, nixie.CodeNotFound)
	})
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
}

func twoSettlements(b *fixture) {
	for _, priority := range []int{0, 1} {
		d := b.took("a", nixie.Priority(priority))
		errs := b.st.Settle(b.ctx, []nixie.Settlement{
			{Delivery: d, Verb: nixie.Complete}, b.dying(d, nixie.StatusOpen), {Delivery: d, Verb: nixie.Complete},
		})
		b.ok(errs[0])
		b.code(errs[1], nixie.CodeLeaseLost)
		b.code(errs[2], nixie.CodeLeaseLost)
		b.state(d.ID, nixie.Succeeded)

		d = b.took("b", nixie.Priority(priority))
		errs = b.st.Settle(b.ctx, []nixie.Settlement{{Delivery: d, Verb: nixie.Retry}, {Delivery: d, Verb: nixie.Complete}})
		b.ok(errs[0])
		b.code(errs[1], nixie.CodeLeaseLost)
		b.state(d.ID, nixie.Queued)
		b.empty()
	}
	same(b, "letters", len(b.letters(nixie.Filter{})), 0)
}

func withoutReceipt(b *fixture) {
	for _, priority := range []int{0, 1} {
		b.put("a", nixie.Priority(priority))
		b.put("b", nixie.Priority(priority))
		ds := b.claim(2)
		b.keys(ds, "a", "b")
		for _, d := range ds {
			d.Lease.Handle = nixie.LeaseHandle{}
		}
		other := b.join()
		b.ok(other.Extend(b.ctx, ds[:1], time.Minute)[0])
		b.ok(b.settleBy(other, nixie.Settlement{Delivery: ds[0], Verb: nixie.Complete}))
		b.ok(b.settleBy(other, nixie.Settlement{Delivery: ds[1], Verb: nixie.Retry}))
		b.state(ds[0].ID, nixie.Succeeded)
		b.state(ds[1].ID, nixie.Queued)
		b.empty()
	}
}

func numbersGrow(b *fixture) {
	b.put("a")
	last := int64(0)
	for range 3 {
		for range 2 {
			d := b.take("a")
			if d.Lease.Number != last+1 {
				b.Fatalf("lease number %d follows %d", d.Lease.Number, last)
			}
			last++
			b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry}))
		}
		d := b.take("a")
		last++
		b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
		b.ok(b.resolve(b.letterOf(d.ID).ID, store.OnRedrive))
	}
	same(b, "lease number", b.take("a").Lease.Number, 10)
}

func extendMovesEnd(b *fixture) {
	d := b.took("a")
	for range 5 {
		b.clock.Advance(20 * time.Second)
		b.ok(b.st.Extend(b.ctx, []*nixie.Delivery{d}, 30*time.Second)[0])
		b.keys(b.claim(1))
	}
	b.clock.Advance(30*time.Second - time.Millisecond)
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
}

func extendShortens(b *fixture) {
	d := b.took("a")
	b.ok(b.st.Extend(b.ctx, []*nixie.Delivery{d}, time.Second)[0])
	b.clock.Advance(time.Second)
	b.code(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}), nixie.CodeLeaseLost)
	b.keys(b.claim(1), "a")
}

func extendAnswersEach(b *fixture) {
	b.put("a")
	b.put("b")
	b.put("c")
	ds := b.claim(3)
	b.ok(b.settle(nixie.Settlement{Delivery: ds[1], Verb: nixie.Complete}))
	errs := b.st.Extend(b.ctx, ds, time.Hour)
	same(b, "answers", len(errs), 3)
	b.ok(errs[0])
	b.code(errs[1], nixie.CodeLeaseLost)
	b.ok(errs[2])
	b.clock.Advance(time.Minute)
	b.ok(b.settle(nixie.Settlement{Delivery: ds[0], Verb: nixie.Complete}))
	b.ok(b.settle(nixie.Settlement{Delivery: ds[2], Verb: nixie.Complete}))
}

func extendOfNothing(b *fixture) {
	d := b.took("a")
	errs := b.st.Extend(b.ctx, []*nixie.Delivery{nil, d, nil}, time.Minute)
	same(b, "answers", len(errs), 3)
	b.code(errs[0], nixie.CodeInvalid)
	b.ok(errs[1])
	b.code(errs[2], nixie.CodeInvalid)
	b.clock.Advance(30 * time.Second)
	b.complete(d)
}

// extendTwice names deliveries of one batch twice in a call, with and without a new step.
func extendTwice(b *fixture) {
	b.put("a")
	b.put("b")
	b.put("c")
	ds := b.claim(3)
	b.ok(ds[0].Step("one", func() error { return nil }))
	for _, err := range b.st.Extend(b.ctx, []*nixie.Delivery{ds[0], ds[1], ds[0], ds[1]}, time.Minute) {
		b.ok(err)
	}
	b.clock.Advance(30 * time.Second)
	b.keys(b.claim(9), "c")
	for _, d := range ds[:2] {
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	}
}

func extendSavesSteps(b *fixture) {
	d := b.took("a")
	b.ok(d.Step("one", func() error { return nil }))
	b.ok(b.st.Extend(b.ctx, []*nixie.Delivery{d}, time.Second)[0])
	b.clock.Advance(time.Second)
	again := b.take("a")
	if !again.Done("one") {
		b.Fatal("the step that was saved by an extend is gone after the holder vanished")
	}
}

// extendOneOfBatch extends one of three messages that were claimed together. The other two leases
// end in time.
func extendOneOfBatch(b *fixture) {
	b.put("a")
	b.put("b")
	b.put("c")
	ds := b.claim(3)
	b.ok(b.st.Extend(b.ctx, ds[1:2], time.Minute)[0])
	b.clock.Advance(30 * time.Second)
	b.keys(b.claim(9), "a", "c")
	b.keys(b.claim(9))
	b.ok(b.settle(nixie.Settlement{Delivery: ds[1], Verb: nixie.Complete}))
	b.code(b.settle(nixie.Settlement{Delivery: ds[0], Verb: nixie.Complete}), nixie.CodeLeaseLost)
}
