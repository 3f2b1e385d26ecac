package storetest

import (
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func patienceClauses() []clause {
	return []clause{
		{"WaivedReleasesAndTriesCostNothing", waivedCostNothing},
		{"PatienceOutlivesItsHolders", patienceOutlives},
		{"PatienceBeginsAnew", patienceBeginsAnew},
		{"MoveKeepsThePatience", moveKeepsPatience},
		{"AWaiverGoesWithItsVerb", waiverOfAnotherVerb},
	}
}

// patience expects what a message has, in its delivery or in a listing.
func (b *fixture) patience(what string, m nixie.Message, want nixie.Patience) {
	b.Helper()
	got := m.Patience
	got.FailingSince, got.RefusedSince = got.FailingSince.UTC(), got.RefusedSince.UTC()
	same(b, "patience of "+what, got, want)
}

// givenBack settles a delivery, and returns the next one of its message.
func (b *fixture) givenBack(d *nixie.Delivery, verb nixie.Verb, waiver nixie.Waiver) *nixie.Delivery {
	b.Helper()
	st := nixie.Settlement{Delivery: d, Verb: verb, Waiver: waiver}
	if verb == nixie.Retry {
		st.Failure = b.failure(d, "it fails")
	}
	b.ok(b.settle(st))
	b.clock.Advance(time.Second)
	return b.take(d.Key)
}

// waivedCostNothing gives a message back in all ways: a new one, one with a row of its own, and one
// in a stream.
func waivedCostNothing(b *fixture) {
	for _, of := range []struct {
		order   nixie.Order
		options []nixie.Option
	}{
		{nixie.OrderNone, nil}, {nixie.OrderNone, []nixie.Option{nixie.Priority(1)}},
		{nixie.OrderStrict, []nixie.Option{nixie.Stream("s")}}, {nixie.OrderRelaxed, []nixie.Option{nixie.Stream("s")}},
	} {
		b.configure(nixie.QueueSettings{Order: of.order})
		d := b.took("a", of.options...)
		refused := b.clock.Now()
		d = b.givenBack(d, nixie.Release, nixie.WaiveUnknown)
		d = b.givenBack(d, nixie.Release, nixie.WaiveSnooze)
		d = b.givenBack(d, nixie.Release, nixie.WaiveUntried)
		same(b, "attempts after releases", d.Attempts, 1)
		same(b, "deliveries after releases", d.Deliveries, 4)
		b.patience("a released one", d.Message, nixie.Patience{RefusedSince: refused, Free: 3})
		failed := b.clock.Now()
		d = b.givenBack(d, nixie.Retry, nixie.WaiveTry)
		d = b.givenBack(d, nixie.Release, nixie.NoWaiver)
		same(b, "attempts after a try", d.Attempts, 1)
		d = b.givenBack(d, nixie.Retry, nixie.NoWaiver)
		same(b, "attempts after a failure", d.Attempts, 2)
		want := nixie.Patience{FailingSince: failed, RefusedSince: refused, Free: 4, Tries: 1}
		b.patience("a delivery", d.Message, want)
		b.patience("a listed one", b.record(d.ID).Message, want)
		b.complete(d)
		b.patience("an ended one", b.record(d.ID).Message, nixie.Patience{})
	}
}

// patienceOutlives ends the process of a holder, twice.
func patienceOutlives(b *fixture) {
	d := b.took("a")
	failed := b.clock.Now()
	d = b.givenBack(d, nixie.Retry, nixie.WaiveTry)
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release, Waiver: nixie.WaiveSnooze}))
	want := nixie.Patience{FailingSince: failed, Free: 2, Tries: 1}
	b.shared.Crash(b.st)
	b.st = b.join()
	d = b.take("a")
	b.patience("a message while it waited", d.Message, want)
	b.shared.Crash(b.st)
	b.st = b.join()
	b.clock.Advance(31 * time.Second)
	d = b.take("a")
	same(b, "abandoned", d.Abandoned, true)
	b.patience("an abandoned one", d.Message, want)
	d = b.givenBack(d, nixie.Retry, nixie.NoWaiver) // it was only judged
	b.patience("a judged one", d.Message, want)
	same(b, "attempts", d.Attempts, 1)
}

func patienceBeginsAnew(b *fixture) {
	d := b.givenBack(b.took("a"), nixie.Retry, nixie.WaiveTry)
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release, Waiver: nixie.WaiveSnooze}))
	b.ok(b.amend(d.ID, store.ResetAttempts))
	d = b.take("a")
	b.patience("one whose attempts were reset", d.Message, nixie.Patience{})
	d = b.givenBack(d, nixie.Retry, nixie.WaiveTry)
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	b.patience("a dead one", b.letterOf(d.ID).Message, nixie.Patience{})
	b.ok(b.resolve(b.letterOf(d.ID).ID, store.OnRedrive))
	d = b.take("a")
	b.patience("a redriven one", d.Message, nixie.Patience{})
}

func moveKeepsPatience(b *fixture) {
	d := b.took("a")
	failed := b.clock.Now()
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Waiver: nixie.WaiveTry, Failure: b.failure(d, "it fails")}))
	to := change(store.Move)
	to.Queue = "elsewhere"
	b.ok(b.change(d.ID, to))
	b.patience("a moved one", b.record(d.ID).Message, nixie.Patience{FailingSince: failed, Free: 1, Tries: 1})
}

func waiverOfAnotherVerb(b *fixture) {
	d := b.took("a")
	b.unchanged(func() {
		b.code(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release, Waiver: nixie.WaiveTry}), nixie.CodeInvalid)
		b.code(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Waiver: nixie.WaiveSnooze}), nixie.CodeInvalid)
		b.code(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete, Waiver: "gift"}), nixie.CodeInvalid)
	})
}
