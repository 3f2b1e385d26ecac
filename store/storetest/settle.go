package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func settleClauses() []clause {
	return []clause{
		{"CompleteEnds", completeEnds},
		{"R9_DiscardLeavesItsRow", discardEnds},
		{"RetryWaits", retryWaits},
		{"R14_ReleaseRefundsAttempt", releaseRefunds},
		{"ReleaseWaits", releaseWaits},
		{"BuryMakesALetter", buryMakesLetter},
		{"HoldIsForReview", holdIsForReview},
		{"R9_HaltLeavesTheRestQueued", haltPauses},
		{"StepsAreSavedAndOnlyGrow", stepsGrow},
		{"StepsHaveOneLimitOverAllDeliveries", stepsLimited},
		{"WhatIsUnknownIsALostLease", unknownIsLost},
		{"EachWholeOrNotAtAll", eachWholeOrNot},
		{"NonsenseIsRefused", nonsense},
		{"R19_RepeatingAMoveIsANoOp", repeatedMove},
		{"OthersOfTheBatchStayLeased", othersStayLeased},
		{"AFailureSaysWhatWasDecided", failureDecided},
	}
}

// failureDecided shows that the history has the verb of the settlement for each failure, also if
// the caller gave another. It also has the steps done by then. A delivery has the reason, a listing
// the text.
func failureDecided(b *fixture) {
	d := b.took("a")
	d.Steps = []string{"fetched"}
	f := b.failure(d, "it fails")
	f.Decision = nixie.Bury
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Failure: f}))
	d = b.take("a")
	same(b, "reason of the delivery", d.LastReason, nixie.ReasonHandler)
	same(b, "text of the delivery", d.LastFailure, "")
	m := b.record(d.ID)
	same(b, "text of the list", m.LastFailure, "it fails")
	same(b, "failures", len(m.History), 1)
	same(b, "decision", m.History[0].Decision, nixie.Retry)
	same(b, "steps", fmt.Sprint(m.History[0].Steps), "[fetched]")
}

// stepsLimited refuses steps beyond the limit over all deliveries of a message. A step that the
// store forgot silently would run twice.
func stepsLimited(b *fixture) {
	names := func(from, to int) (list []string) {
		for i := range to - from {
			list = append(list, fmt.Sprint("step ", from+i))
		}
		return list
	}
	d := b.took("a")
	d.Steps = names(0, nixie.MaxSteps-1)
	b.retry(d, 0)
	d = b.take("a")
	d.Steps = names(nixie.MaxSteps-2, nixie.MaxSteps+1)
	b.unchanged(func() {
		b.code(b.st.Extend(b.ctx, []*nixie.Delivery{d}, time.Minute)[0], nixie.CodeLimit)
		b.code(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}), nixie.CodeLimit)
		b.code(b.settle(b.dying(d, nixie.StatusOpen)), nixie.CodeLimit)
	})
	d.Steps = d.Steps[:2]
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	same(b, "steps at the end", strings.Join(b.record(d.ID).Steps, " "), strings.Join(names(0, nixie.MaxSteps), " "))
	d.Steps = names(0, nixie.MaxSteps+1)
	b.code(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}), nixie.CodeLeaseLost)
}

// unknownIsLost answers a settlement of a message that was pruned, or that is of another store,
// with a lost lease.
func unknownIsLost(b *fixture) {
	b.put("a")
	d := &nixie.Delivery{Message: message("b"), Lease: nixie.Lease{Number: 1, Owner: "owner-1"}}
	d.ID = new(store.IDs).New(b.clock.Now())
	b.unchanged(func() {
		b.code(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}), nixie.CodeLeaseLost)
		b.code(b.st.Extend(b.ctx, []*nixie.Delivery{d}, time.Minute)[0], nixie.CodeLeaseLost)
	})
}

func completeEnds(b *fixture) {
	d := b.took("a")
	b.clock.Advance(time.Second)
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	m := b.record(d.ID)
	same(b, "state", m.State, nixie.Succeeded)
	same(b, "attempts", m.Attempts, 1)
	same(b, "deliveries", m.Deliveries, 1)
	if !m.EndedAt.Equal(b.clock.Now()) || !m.FirstReceivedAt.Equal(b.clock.Now().Add(-time.Second)) {
		b.Fatalf("ended at %s, first received at %s", m.EndedAt, m.FirstReceivedAt)
	}
	b.keys(b.claim(1))
	same(b, "letters", len(b.letters(nixie.Filter{})), 0)
}

func discardEnds(b *fixture) {
	d := b.took("a")
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Discard, Failure: b.failure(d, "not worth it"), Note: "policy"}))
	m := b.record(d.ID)
	same(b, "state", m.State, nixie.Discarded)
	same(b, "history", len(m.History), 1)
	same(b, "last failure", m.LastFailure, "not worth it")
	b.keys(b.claim(1))
	same(b, "letters", len(b.letters(nixie.Filter{})), 0)
}

func retryWaits(b *fixture) {
	d := b.took("a")
	b.clock.Advance(time.Second)
	f := b.failure(d, "first")
	f.Decision, f.NextAt = nixie.Retry, b.clock.Now().Add(time.Minute)
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Delay: time.Minute, Failure: f}))
	m := b.record(d.ID)
	same(b, "state", m.State, nixie.Queued)
	same(b, "last failure", m.LastFailure, "first")
	if !m.NotBefore.Equal(b.clock.Now().Add(time.Minute)) || len(m.History) != 1 {
		b.Fatalf("not before %s with %d failures", m.NotBefore, len(m.History))
	}
	b.clock.Advance(time.Minute - time.Millisecond)
	b.keys(b.claim(1))
	b.clock.Advance(time.Millisecond)
	d = b.take("a")
	same(b, "attempts", d.Attempts, 2)
	same(b, "reason of the newest failure", d.LastReason, nixie.ReasonHandler)
}

func releaseRefunds(b *fixture) {
	for _, priority := range []int{0, 1} {
		id := b.put("a", nixie.Priority(priority))
		for i := 1; i <= 100; i++ {
			d := b.take("a")
			same(b, "attempts while held", d.Attempts, 1)
			same(b, "deliveries", d.Deliveries, i)
			b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release}))
			m := b.record(id)
			same(b, "attempts after release", m.Attempts, 0)
			same(b, "deliveries after release", m.Deliveries, i)
			same(b, "crashes after release", m.Crashes, 0)
			same(b, "failures", len(m.History), 0)
		}
		b.empty()
	}
}

func releaseWaits(b *fixture) {
	d := b.took("a")
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release, Delay: time.Minute}))
	b.clock.Advance(time.Minute - time.Millisecond)
	b.keys(b.claim(1))
	b.clock.Advance(time.Millisecond)
	b.keys(b.claim(1), "a")
}

func buryMakesLetter(b *fixture) {
	enqueued := b.clock.Now()
	d := b.took("a")
	b.clock.Advance(time.Second)
	first := b.failure(d, "one")
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Failure: first}))
	b.clock.Advance(time.Second)
	d = b.take("a")
	last := b.failure(d, "two")
	last.Class, last.Reason = nixie.ClassPermanent, nixie.ReasonTimeout
	died := b.clock.Now()
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Bury, Failure: last, Burial: burial(nixie.StatusOpen)}))
	l := b.letterOf(d.ID)
	if l.ID.IsZero() || l.ID == d.ID {
		b.Fatalf("letter has the ID %s, its message %s", l.ID, d.ID)
	}
	same(b, "status", l.Status, nixie.StatusOpen)
	same(b, "cause", l.Cause, nixie.CauseExhausted)
	same(b, "class", l.Class, nixie.ClassPermanent)
	same(b, "reason", l.Reason, nixie.ReasonTimeout)
	same(b, "signature", l.Signature, "handler: it fails")
	same(b, "fingerprint", l.Fingerprint, "v1:aa")
	same(b, "redrivable", l.Redrivable, true)
	same(b, "needs review", l.NeedsReview, false)
	same(b, "rule", l.Rule, "attempts")
	same(b, "history", len(l.History), 2)
	same(b, "state of the message", l.Message.State, nixie.Dead)
	same(b, "attempts of the message", l.Message.Attempts, 2)
	if !l.FirstFailedAt.Equal(first.FailedAt) || !l.LastFailedAt.Equal(last.FailedAt) || !l.DiedAt.Equal(died) || !l.ResolvedAt.IsZero() {
		b.Fatalf("times of the letter are %s, %s, %s, %s", l.FirstFailedAt, l.LastFailedAt, l.DiedAt, l.ResolvedAt)
	}
	if !l.Message.EnqueuedAt.Equal(enqueued) || l.Revision < 1 {
		b.Fatalf("enqueued at %s, revision %d", l.Message.EnqueuedAt, l.Revision)
	}
	b.keys(b.claim(1))
}

func holdIsForReview(b *fixture) {
	d := b.took("a")
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Hold, Failure: b.failure(d, "odd"), Burial: burial(nixie.StatusReview)}))
	same(b, "status", b.letterOf(d.ID).Status, nixie.StatusReview)
	b.state(d.ID, nixie.Dead)
	l := b.dead("b", nixie.StatusReview)
	same(b, "status of a burial for review", l.Status, nixie.StatusReview)
	same(b, "needs review", l.NeedsReview, true)
}

func haltPauses(b *fixture) {
	b.put("a")
	b.put("b")
	b.configure(nixie.QueueSettings{Lease: time.Minute, DedupeScope: nixie.DedupeEver})
	d := b.take("a")
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Halt, Failure: b.failure(d, "stop"), Burial: burial(nixie.StatusOpen)}))
	same(b, "status", b.letterOf(d.ID).Status, nixie.StatusOpen)
	s := b.info().Settings
	if !s.Paused || s.PausedNote == "" || s.Lease != time.Minute || s.DedupeScope != nixie.DedupeEver {
		b.Fatalf("settings after a halt: %+v", s)
	}
	b.keys(b.claim(1))
	same(b, "ready", b.info().Ready, 1)
	b.configure(nixie.QueueSettings{})
	b.keys(b.claim(1), "b")
}

func stepsGrow(b *fixture) {
	b.put("a")
	for i, verb := range []nixie.Verb{nixie.Retry, nixie.Release, nixie.Retry} {
		d := b.take("a")
		same(b, "steps", len(d.Steps), i)
		b.ok(d.Step(fmt.Sprintf("step-%d", i), func() error { return nil }))
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: verb}))
	}
	d := b.take("a")
	b.ok(d.Step("last", func() error { return nil }))
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	l := b.letterOf(d.ID)
	want := []string{"step-0", "step-1", "step-2", "last"}
	if !slices.Equal(l.Message.Steps, want) {
		b.Fatalf("steps of the letter are %q, want %q", l.Message.Steps, want)
	}
	b.ok(b.resolve(l.ID, store.OnRedrive))
	d = b.take("a")
	if !slices.Equal(d.Steps, want) {
		b.Fatalf("steps after a redrive are %q, want %q", d.Steps, want)
	}
	d.Steps = nil
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	same(b, "steps at the end", len(b.record(d.ID).Steps), 4)
}

func eachWholeOrNot(b *fixture) {
	for i := range 5 {
		b.put(fmt.Sprint(i))
	}
	ds := b.claim(5)
	b.ok(b.settle(nixie.Settlement{Delivery: ds[1], Verb: nixie.Complete}))
	noBurial := nixie.Settlement{Delivery: ds[3], Verb: nixie.Bury, Failure: b.failure(ds[3], "x")}
	errs := b.st.Settle(b.ctx, []nixie.Settlement{
		{Delivery: ds[0], Verb: nixie.Complete}, {Delivery: ds[1], Verb: nixie.Discard},
		b.dying(ds[2], nixie.StatusOpen), noBurial, {Delivery: ds[4], Verb: nixie.Retry},
	})
	same(b, "answers", len(errs), 5)
	b.ok(errs[0])
	b.code(errs[1], nixie.CodeLeaseLost)
	b.ok(errs[2])
	b.code(errs[3], nixie.CodeInvalid)
	b.ok(errs[4])
	for i, want := range []nixie.State{nixie.Succeeded, nixie.Succeeded, nixie.Dead, nixie.Leased, nixie.Queued} {
		b.state(ds[i].ID, want)
	}
	same(b, "failures of the refused one", len(b.record(ds[3].ID).History), 0)
}

func nonsense(b *fixture) {
	d := b.took("a")
	b.unchanged(func() {
		for _, s := range []nixie.Settlement{
			{Verb: nixie.Complete},
			{Delivery: d},
			{Delivery: d, Verb: "explode"},
			{Delivery: d, Verb: nixie.Retry, Delay: -1},
			{Delivery: d, Verb: nixie.Retry, Delay: nixie.MaxDelay + 1},
			{Delivery: d, Verb: nixie.Retry, Failure: &nixie.Failure{}, Second: &nixie.Failure{}},
			{Delivery: d, Verb: nixie.Bury},
			{Delivery: d, Verb: nixie.Hold},
			{Delivery: d, Verb: nixie.Halt},
		} {
			b.code(b.settle(s), nixie.CodeInvalid)
		}
	})
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Delay: nixie.MaxDelay}))
}

// repeatedMove applies every settlement, amendment and resolution twice. The second changes
// nothing, and the letter keeps its ID.
func repeatedMove(b *fixture) {
	d := b.took("a")
	dying := b.dying(d, nixie.StatusOpen)
	b.ok(b.settle(dying))
	l := b.letterOf(d.ID)
	b.unchanged(func() { b.code(b.settle(dying), nixie.CodeLeaseLost) })
	same(b, "ID of the letter", b.letterOf(d.ID).ID, l.ID)
	for _, on := range []store.Event{store.OnHold, store.OnUnhold, store.OnDiscard, store.OnRestore, store.OnRedrive} {
		b.ok(b.resolve(l.ID, on))
		b.unchanged(func() { b.code(b.resolve(l.ID, on), nixie.CodeConflict) })
	}
	b.ok(b.amend(d.ID, store.Cancel))
	b.unchanged(func() { b.code(b.amend(d.ID, store.Cancel), nixie.CodeConflict) })
	same(b, "letters", len(b.letters(nixie.Filter{})), 1)
}

func othersStayLeased(b *fixture) {
	for i := range 6 {
		b.put(fmt.Sprint(i))
	}
	ds := b.claim(6)
	for i, verb := range []nixie.Verb{nixie.Complete, nixie.Retry, nixie.Discard, nixie.Bury} {
		b.ok(b.settle(nixie.Settlement{Delivery: ds[i], Verb: verb, Delay: time.Hour, Burial: burial("")}))
	}
	b.clock.Advance(29 * time.Second)
	b.keys(b.claim(9))
	b.ok(b.settle(nixie.Settlement{Delivery: ds[4], Verb: nixie.Complete}))
	b.clock.Advance(time.Second)
	b.keys(b.claim(9), "5")
}
