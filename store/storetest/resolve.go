package storetest

import (
	"maps"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func resolveClauses() []clause {
	return []clause{
		{"HoldAndUnhold", holdAndUnhold},
		{"DiscardAndRestore", discardAndRestore},
		{"RequalifyNeedsAReason", requalifyNeedsReason},
		{"ActorAndReasonAreRequired", actorRequired},
		{"NonsenseIsRefused", resolveNonsense},
		{"EachWholeOrNotAtAll", resolveEach},
		{"HoldDoesNotStopARedrivenOne", holdOfRedriving},
		{"RevisionsGrowByOne", revisionsGrow},
		{"TheNoteSaysWhoDiscardedOrHeld", noteOfDiscardAndHold},
		{"ConfirmedByABroker", confirmed},
		{"ConfirmedKeyAndStream", confirmedKeyAndStream},
		{"ConfirmationsAreRecordedInTheirOrder", confirmedInOrder},
		{"ConfirmedManyInOneCall", confirmedMany},
		{"ASkippedOneStaysAsItIs", skippedStays},
		{"ReviewedOnesGoWithoutForce", reviewedGo},
		{"ATakenKeyIsSaid", takenKeyIsSaid},
	}
}

func holdAndUnhold(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	b.ok(b.resolve(l.ID, store.OnHold))
	b.status(l.ID, nixie.StatusReview)
	b.ok(b.resolve(l.ID, store.OnUnhold))
	b.status(l.ID, nixie.StatusOpen)
	b.state(l.Message.ID, nixie.Dead)
	same(b, "note of a held letter is empty", b.held(l.ID).Note == "", false)
}

// held holds a letter and reads it.
func (b *fixture) held(id nixie.ID) nixie.Letter {
	b.Helper()
	b.ok(b.resolve(id, store.OnHold))
	return b.letter(id)
}

func discardAndRestore(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	b.clock.Advance(time.Second)
	b.ok(b.resolve(l.ID, store.OnDiscard))
	got := b.letter(l.ID)
	same(b, "status", got.Status, nixie.StatusDiscarded)
	same(b, "state", got.Message.State, nixie.Dead)
	if !got.ResolvedAt.Equal(b.clock.Now()) || got.Note == "" {
		b.Fatalf("resolved at %s, note %q", got.ResolvedAt, got.Note)
	}
	same(b, "dead", b.info().Dead, 0)
	b.ok(b.resolve(l.ID, store.OnRestore))
	got = b.letter(l.ID)
	same(b, "status", got.Status, nixie.StatusOpen)
	same(b, "resolved at is kept", got.ResolvedAt.IsZero(), true)
	same(b, "dead", b.info().Dead, 1)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.take("a")
}

func requalifyNeedsReason(b *fixture) {
	l := b.quarantined("a")
	r := store.Resolution{Letter: l.ID, Event: store.OnRequalify, Actor: "ann"}
	b.unchanged(func() { b.code(b.resolution(r), nixie.CodeInvalid) })
	r.Reason = "fixed"
	b.ok(b.resolution(r))
	b.status(l.ID, nixie.StatusOpen)
}

func actorRequired(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	b.unchanged(func() {
		for _, on := range []store.Event{store.OnRedrive, store.OnDiscard, store.OnHold} {
			b.code(b.resolution(store.Resolution{Letter: l.ID, Event: on, Reason: "r"}), nixie.CodeInvalid)
		}
		b.code(b.resolution(store.Resolution{Letter: l.ID, Event: store.OnDiscard, Actor: "ann"}), nixie.CodeInvalid)
	})
	b.ok(b.resolution(store.Resolution{Letter: l.ID, Event: store.OnRedrive, Actor: "ann"}))
}

func resolveNonsense(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	b.unchanged(func() {
		for _, on := range []store.Event{"", "explode", store.OnBury, store.OnSuccess, store.OnDieAgain, store.OnExceed, store.OnGone,
			store.OnClaim} {
			b.code(b.resolve(l.ID, on), nixie.CodeInvalid, nixie.CodeConflict)
		}
		b.code(b.resolve(new(store.IDs).New(b.clock.Now()), store.OnHold), nixie.CodeNotFound)
		b.code(b.resolve(nixie.ID{}, store.OnHold), nixie.CodeNotFound, nixie.CodeInvalid)
	})
}

func resolveEach(b *fixture) {
	x, y := b.dead("a", nixie.StatusOpen), b.dead("b", nixie.StatusReview)
	errs := b.st.Resolve(b.ctx, []store.Resolution{
		{Letter: y.ID, Event: store.OnHold, Actor: "ann"},
		{Letter: x.ID, Event: store.OnHold, Actor: "ann"},
		{Letter: x.ID, Event: store.OnHold, Actor: "ann"},
		{Letter: y.ID, Event: store.OnUnhold, Actor: "ann"},
	})
	same(b, "answers", len(errs), 4)
	b.code(errs[0], nixie.CodeConflict)
	b.ok(errs[1])
	b.code(errs[2], nixie.CodeConflict)
	b.ok(errs[3])
	b.status(x.ID, nixie.StatusReview)
	b.status(y.ID, nixie.StatusOpen)
}

// holdOfRedriving shows that an operator cannot hold a letter that is redriving. Otherwise a letter
// in review would have a message that runs.
func holdOfRedriving(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.unchanged(func() { b.code(b.resolve(l.ID, store.OnHold), nixie.CodeConflict) })
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Complete}))
	b.status(l.ID, nixie.StatusResolved)
}

func revisionsGrow(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	last := l.Revision
	for _, on := range []store.Event{store.OnHold, store.OnUnhold, store.OnDiscard, store.OnRestore, store.OnRedrive} {
		b.ok(b.resolve(l.ID, on))
		got := b.letter(l.ID).Revision
		if got != last+1 {
			b.Fatalf("revision went from %d to %d at %s", last, got, on)
		}
		last = got
	}
}

// noteOfDiscardAndHold shows that a discarded or held letter has the actor and the reason as its
// note, until its next move.
func noteOfDiscardAndHold(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	for _, step := range [...]struct {
		on   store.Event
		note string
	}{
		{store.OnHold, "ann: because"},
		{store.OnNote, "ann: because"},
		{store.OnUnhold, ""},
		{store.OnDiscard, "ann: because"},
		{store.OnRestore, ""},
		{store.OnRedrive, ""},
	} {
		b.ok(b.resolve(l.ID, step.on))
		same(b, "note after "+string(step.on), b.letter(l.ID).Note, step.note)
	}
	b.ok(b.settle(b.dying(b.take("a"), nixie.StatusQuarantined)))
	same(b, "note of a letter in quarantine", b.letter(l.ID).Note, "")
	b.ok(b.resolve(l.ID, store.OnRequalify))
	same(b, "note after requalify", b.letter(l.ID).Note, "")
	b.ok(b.resolution(store.Resolution{Letter: l.ID, Event: store.OnHold, Actor: "bob"}))
	same(b, "note without a reason", b.letter(l.ID).Note, "bob")
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Discard, Note: "not wanted"}))
	same(b, "note of what a handler discarded", b.letter(l.ID).Note, "not wanted")

	l = b.dead("b", nixie.StatusOpen)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.ok(b.amend(l.Message.ID, store.Cancel))
	same(b, "note of a canceled message", b.letter(l.ID).Note, "ann: because")
	id := b.put("c")
	b.ok(b.change(id, b.holding("poison")))
	same(b, "note of a held message", b.letterOf(id).Note, "ann: poison")
}

func operationClauses() []clause {
	return []clause{
		{"ThePlanIsFrozen", planIsFrozen},
		{"OldestDeathFirst", oldestFirst},
		{"R28_AtMostMax", planAtMost},
		{"R29_ResumeDoesEachOnce", resumeOnce},
		{"CountsAddUp", countsAddUp},
		{"RefusedAndUnknown", operationNonsense},
		{"WhatBecameOfARedrive", outcomes},
		{"WhatIsAskedIsKept", operationKept},
		{"AGuardedOneLeavesWhatChanged", guardedLeavesWhatChanged},
		{"WhatIsRefusedIsSkipped", refusedIsSkipped},
		{"OutcomesByFailure", outcomesByFailure},
		{"TheAuditNamesThem", auditNamesOperation},
	}
}

// plan makes an operation over the letters that match.
func (b *fixture) plan(on store.Event, f nixie.Filter, limit int) store.Operation {
	b.Helper()
	op, err := b.st.Plan(b.ctx, store.Operation{Event: on, Actor: "ann", Reason: "fixed", Filter: "as written", Force: true}, f, limit)
	b.ok(err)
	if op.ID.IsZero() || op.Event != on || op.Actor != "ann" || op.Reason != "fixed" || op.Filter != "as written" || !op.Force ||
		!op.CreatedAt.Equal(b.clock.Now()) {
		b.Fatalf("planned operation is %+v", op)
	}
	return op
}

func (b *fixture) operation(id nixie.ID, limit int) (store.Operation, []nixie.ID) {
	b.Helper()
	op, err := store.FindOperation(b.ctx, b.st, store.OperationQuery{ID: id, Next: limit})
	b.ok(err)
	if op.Selected != op.Done+op.Skipped+op.Failed+op.Pending {
		b.Fatalf("counts do not add up: %+v", op)
	}
	return op, op.Next
}

// deaths makes n letters, one second after another.
func (b *fixture) deaths(n int) []nixie.Letter {
	b.Helper()
	var ls []nixie.Letter
	for i := range n {
		b.clock.Advance(time.Second)
		ls = append(ls, b.dead(string(rune('a'+i)), nixie.StatusOpen))
	}
	return ls
}

func planIsFrozen(b *fixture) {
	ls := b.deaths(3)
	op := b.plan(store.OnRedrive, nixie.Filter{Statuses: []nixie.Status{nixie.StatusOpen}}, 0)
	same(b, "selected", op.Selected, 3)
	same(b, "pending", op.Pending, 3)
	b.dead("late", nixie.StatusOpen)
	b.ok(b.resolve(ls[1].ID, store.OnHold))
	_, next := b.operation(op.ID, 10)
	same(b, "pending letters", len(next), 3)
	empty := b.plan(store.OnRedrive, nixie.Filter{Queues: []string{"unknown"}}, 0)
	same(b, "selected", empty.Selected, 0)
}

func oldestFirst(b *fixture) {
	ls := b.deaths(5)
	op := b.plan(store.OnDiscard, nixie.Filter{}, 0)
	_, next := b.operation(op.ID, 3)
	same(b, "pending letters", len(next), 3)
	for i, id := range next {
		same(b, "letter in the order of the plan", id, ls[i].ID)
	}
}

func planAtMost(b *fixture) {
	ls := b.deaths(9)
	op := b.plan(store.OnRedrive, nixie.Filter{}, 7)
	same(b, "selected", op.Selected, 7)
	_, next := b.operation(op.ID, 100)
	same(b, "pending letters", len(next), 7)
	same(b, "last letter", next[6], ls[6].ID)
}

// resumeOnce drives an operation in parts, by two processes, while a letter dies again in between.
// Each letter is redriven once.
func resumeOnce(b *fixture) {
	b.deaths(6)
	op := b.plan(store.OnRedrive, nixie.Filter{}, 0)
	var rs []store.Resolution
	_, next := b.operation(op.ID, 4)
	for _, id := range next {
		rs = append(rs, store.Resolution{Letter: id, Event: store.OnRedrive, Actor: "ann", Operation: op.ID})
	}
	for _, err := range b.st.Resolve(b.ctx, rs) {
		b.ok(err)
	}
	same(b, "operation of the letter", b.letter(next[0]).Operation, op.ID)
	d := b.take("a")
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	b.unchanged(func() {
		for _, err := range b.st.Resolve(b.ctx, rs) {
			b.code(err, nixie.CodeConflict)
		}
	})
	same(b, "redrives", b.record(d.ID).Redrives, 1)
	got, rest := b.operation(op.ID, 100)
	same(b, "done", got.Done, 4)
	same(b, "pending", len(rest), 2)
	st := b.join()
	for _, id := range rest {
		for _, err := range st.Resolve(b.ctx, []store.Resolution{{Letter: id, Event: store.OnRedrive, Actor: "bob", Operation: op.ID}}) {
			b.ok(err)
		}
	}
	got, rest = b.operation(op.ID, 100)
	same(b, "done", got.Done, 6)
	same(b, "pending", len(rest), 0)
	same(b, "letters of the operation", len(b.letters(nixie.Filter{Operation: op.ID})), 6)
}

func countsAddUp(b *fixture) {
	ls := b.deaths(4)
	op := b.plan(store.OnRedrive, nixie.Filter{}, 0)
	b.ok(b.resolve(ls[1].ID, store.OnDiscard)) // another operator was faster
	d := b.took("again", nixie.DedupeKey("k"))
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	do := func(l nixie.Letter, in nixie.ID) error {
		return b.resolution(store.Resolution{Letter: l.ID, Event: store.OnRedrive, Actor: "ann", Operation: in})
	}
	b.ok(do(ls[0], op.ID))
	b.code(do(ls[1], op.ID), nixie.CodeConflict)
	got, next := b.operation(op.ID, 100)
	if got.Selected != 4 || got.Done != 1 || got.Skipped != 1 || got.Failed != 0 || got.Pending != 2 || len(next) != 2 {
		b.Fatalf("operation is %+v, next %v", got, next)
	}
	b.put("holder", nixie.DedupeKey("k"))
	second := b.plan(store.OnRedrive, nixie.Filter{IDs: []nixie.ID{d.ID}}, 0)
	same(b, "selected", second.Selected, 1)
	b.code(do(b.letterOf(d.ID), second.ID), nixie.CodeConflict)
	got, next = b.operation(second.ID, 100)
	if got.Skipped+got.Failed != 1 || got.Done != 0 || len(next) != 0 {
		b.Fatalf("operation with a taken dedupe key is %+v, next %v", got, next)
	}
}

// outcomes counts the outcomes of a redrive by the letters that name it, also letters of another
// generation that were adopted.
func outcomes(b *fixture) {
	b.deaths(5)
	op := b.plan(store.OnRedrive, nixie.Filter{}, 4)
	_, next := b.operation(op.ID, 4)
	for _, id := range next {
		b.ok(b.resolution(store.Resolution{Letter: id, Event: store.OnRedrive, Actor: "ann", Operation: op.ID}))
	}
	b.ok(b.settle(b.dying(b.take("a"), nixie.StatusOpen)))
	b.ok(b.settle(b.dying(b.take("b"), nixie.StatusQuarantined)))
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("c"), Verb: nixie.Complete}))
	elsewhere := b.foreign("f")
	elsewhere.Operation = op.ID
	b.adopted(elsewhere)
	b.adopted(b.foreign("g"))
	for _, f := range []nixie.Filter{{Operation: op.ID},
		{Operation: op.ID, Statuses: []nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined}}} {
		got, looked, err := b.st.Count(b.ctx, f, store.Counting{By: []store.GroupBy{store.ByStatus}, Scan: store.ScanAll})
		b.ok(err)
		want := map[string]int64{"open": 2, "quarantined": 1}
		if len(f.Statuses) == 0 {
			want["resolved"], want["redriving"] = 1, 1
		}
		if !looked.All() || !maps.Equal(store.Sizes(got[0]), want) {
			b.Errorf("%v, %v; want %v", got, looked, want)
		}
	}
}

func operationNonsense(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	b.unchanged(func() {
		_, err := b.st.Plan(b.ctx, store.Operation{Event: store.OnRedrive}, nixie.Filter{}, 0)
		b.code(err, nixie.CodeInvalid)
		_, err = b.st.Plan(b.ctx, store.Operation{Event: "explode", Actor: "ann"}, nixie.Filter{}, 0)
		b.code(err, nixie.CodeInvalid)
		_, err = store.FindOperation(b.ctx, b.st, store.OperationQuery{ID: new(store.IDs).New(b.clock.Now()), Next: 1})
		b.code(err, nixie.CodeNotFound)
		b.code(b.resolution(store.Resolution{
			Letter: l.ID, Event: store.OnRedrive, Actor: "ann", Operation: new(store.IDs).New(b.clock.Now()),
		}), nixie.CodeNotFound)
	})
}

// skippedStays shows that an operation can skip a letter without changing it.
func skippedStays(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	op := b.plan(store.OnRedrive, nixie.Filter{}, 0)
	r := store.Resolution{Letter: l.ID, Event: store.OnRedrive, Actor: "ann", Reason: "fixed", Operation: op.ID,
		Skip: "it came from nowhere"}
	err := b.resolution(r)
	b.code(err, nixie.CodeConflict)
	same(b, "answer", err.Error(), r.Skip)
	b.status(l.ID, nixie.StatusOpen)
	same(b, "claimed", len(b.claim(10)), 0)
	after, err := store.FindOperation(b.ctx, b.st, store.OperationQuery{ID: op.ID, Next: 10})
	b.ok(err)
	same(b, "skipped", after.Skipped, 1)
	same(b, "pending", after.Pending, 0)
}
