package storetest

import (
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// operationKept shows that an operation keeps its parameters in fields of their own.
func operationKept(b *fixture) {
	b.deaths(2)
	want := store.Operation{
		Event: store.OnPurge, Actor: "ann", Reason: "old", Filter: `text:"tool --to here"`, Force: true,
		Destination: "kafka://host/a --quarantine b",
		Statuses:    []nixie.Status{nixie.StatusOpen, nixie.StatusReview}, Reviewed: true, Guarded: true,
	}
	planned, err := b.st.Plan(b.ctx, want, nixie.Filter{}, 0)
	b.ok(err)
	got, _ := b.operation(planned.ID, 0)
	for _, op := range []store.Operation{planned, got} {
		if op.Filter != want.Filter || op.Destination != want.Destination || !slices.Equal(op.Statuses, want.Statuses) || !op.Reviewed ||
			!op.Guarded {
			b.Errorf("operation is %+v, want %+v", op, want)
		}
	}
	other := b.plan(store.OnHold, nixie.Filter{}, 1)
	if got, _ := b.operation(other.ID, 0); got.Destination != "" || len(got.Statuses) != 0 || got.Reviewed || got.Guarded {
		b.Errorf("operation is %+v", got)
	}
	b.ok(b.resolution(store.Resolution{Letter: b.letters(nixie.Filter{})[1].ID, Event: store.OnHold, Actor: "ann", Operation: other.ID}))
	list, cursor, err := b.st.Operations(b.ctx, store.OperationQuery{}, store.Page{Limit: 1})
	b.ok(err)
	if len(list) != 1 || list[0].ID != other.ID || list[0].Done != 1 || list[0].Selected != 1 || cursor == "" {
		b.Fatalf("newest operation is %+v, cursor %q", list, cursor)
	}
	list, cursor, err = b.st.Operations(b.ctx, store.OperationQuery{}, store.Page{Limit: 2, Cursor: cursor})
	b.ok(err)
	if len(list) != 1 || list[0].ID != planned.ID || list[0].Pending != 2 || list[0].Destination != want.Destination || cursor != "" {
		b.Fatalf("oldest operation is %+v, cursor %q", list, cursor)
	}
	_, _, err = b.st.Operations(b.ctx, store.OperationQuery{}, store.Page{Cursor: "nonsense"})
	b.code(err, nixie.CodeInvalid)
}

// guardedLeavesWhatChanged shows that a guarded operation moves a selected letter only if it has
// not changed.
func guardedLeavesWhatChanged(b *fixture) {
	ls := b.deaths(2)
	op := store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "fixed", Guarded: true}
	guarded, err := b.st.Plan(b.ctx, op, nixie.Filter{}, 0)
	b.ok(err)
	op.Guarded = false
	free, err := b.st.Plan(b.ctx, op, nixie.Filter{IDs: []nixie.ID{ls[0].ID}}, 0)
	b.ok(err)
	b.ok(b.resolve(ls[0].ID, store.OnNote))
	move := func(letter, operation nixie.ID) error {
		return b.resolution(store.Resolution{Letter: letter, Event: store.OnRedrive, Actor: "ann", Operation: operation})
	}
	b.code(move(ls[0].ID, guarded.ID), nixie.CodeConflict)
	b.status(ls[0].ID, nixie.StatusOpen)
	b.ok(move(ls[1].ID, guarded.ID))
	b.ok(move(ls[0].ID, free.ID))
	got, _ := b.operation(guarded.ID, 0)
	same(b, "skipped", got.Skipped, 1)
	same(b, "done", got.Done, 1)
}

// outcomesByFailure counts the outcomes of a redrive, and plans the letters that died again once
// more, in their old positions.
func outcomesByFailure(b *fixture) {
	ls := b.deaths(6)
	op := b.plan(store.OnRedrive, nixie.Filter{}, 5)
	move := func(letters ...nixie.Letter) {
		for _, l := range letters {
			b.ok(b.resolution(store.Resolution{Letter: l.ID, Event: store.OnRedrive, Actor: "ann", Operation: op.ID}))
		}
	}
	outcome := func() store.Outcome {
		op, err := store.FindOperation(b.ctx, b.st, store.OperationQuery{ID: op.ID})
		b.ok(err)
		return op.Outcome
	}
	same(b, "outcome before", outcome(), store.Outcome{})
	move(ls[:5]...)
	b.ok(b.settle(b.dying(b.take("a"), nixie.StatusOpen)))
	other := b.dying(b.take("b"), nixie.StatusQuarantined)
	other.Burial.Fingerprint = "v1:other"
	b.ok(b.settle(other))
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("c"), Verb: nixie.Complete}))
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("d"), Verb: nixie.Discard}))
	same(b, "outcome", outcome(), store.Outcome{Succeeded: 1, SameFailure: 1, NewFailure: 1, Gone: 1, UnderWay: 1})
	again, err := b.st.Plan(b.ctx, store.Operation{ID: op.ID}, nixie.Filter{}, 0)
	b.ok(err)
	same(b, "taken up again", again.Pending, 2)
	got, next := b.operation(op.ID, 10)
	same(b, "pending", got.Pending, 2)
	same(b, "done", got.Done, 3)
	same(b, "first of those", next[0], ls[0].ID)
	same(b, "second of those", next[1], ls[1].ID)
	move(ls[0])
	same(b, "outcome of the second try", outcome(), store.Outcome{Succeeded: 1, Gone: 1, UnderWay: 2})
	unknown := new(store.IDs).New(b.clock.Now())
	_, err = b.st.Plan(b.ctx, store.Operation{ID: unknown}, nixie.Filter{}, 0)
	b.code(err, nixie.CodeNotFound)
	_, err = store.FindOperation(b.ctx, b.st, store.OperationQuery{})
	b.code(err, nixie.CodeNotFound)
	_, err = store.FindStream(b.ctx, b.st.Features().Streams, work, "")
	b.code(err, nixie.CodeNotFound)
	_, err = store.FindOperation(b.ctx, b.st, store.OperationQuery{ID: unknown})
	b.code(err, nixie.CodeNotFound)
}

// auditNamesOperation shows that the audit distinguishes the moves of an operation from other
// moves, one by one and many in one call.
func auditNamesOperation(b *fixture) {
	ls := b.deaths(20)
	op := b.plan(store.OnHold, nixie.Filter{}, 0)
	var together []store.Resolution
	for _, l := range ls {
		together = append(together, store.Resolution{Letter: l.ID, Event: store.OnHold, Actor: "ann", Reason: "wait", Operation: op.ID})
	}
	for _, err := range b.st.Resolve(b.ctx, together) {
		b.ok(err)
	}
	b.ok(b.resolve(ls[0].ID, store.OnUnhold))
	entries, _, err := b.st.Audit(b.ctx, store.AuditFilter{Events: []store.Event{store.OnHold, store.OnUnhold}}, store.Page{})
	b.ok(err)
	same(b, "entries", len(entries), 21)
	for _, e := range entries {
		same(b, "operation of "+string(e.Event), e.Operation == op.ID, e.Event == store.OnHold)
		same(b, "hash", e.Sum(e.Before), e.Hash)
	}
}

// reviewedGo shows that the word of a person replaces the decision of the policy.
func reviewedGo(b *fixture) {
	d := b.took("a")
	st := b.dying(d, nixie.StatusReview)
	st.Burial.Redrivable, st.Burial.NeedsReview = false, true
	b.ok(b.settle(st))
	l := b.letterOf(d.ID)
	b.ok(b.resolve(l.ID, store.OnUnhold))
	redrive := store.Resolution{Letter: l.ID, Event: store.OnRedrive, Actor: "ann"}
	b.code(b.resolution(redrive), nixie.CodeConflict)
	b.ok(b.resolve(l.ID, store.OnHold))
	b.ok(b.resolution(store.Resolution{Letter: l.ID, Event: store.OnUnhold, Actor: "ann", Reviewed: true}))
	got := b.letter(l.ID)
	if !got.Redrivable || got.NeedsReview || got.Rule != store.Reviewed || got.Status != nixie.StatusOpen {
		b.Fatalf("reviewed letter is %+v", got)
	}
	yes := true
	same(b, "letters that a filter finds", len(b.letters(nixie.Filter{Redrivable: &yes})), 1)
	counts, _, err := b.st.Count(b.ctx, nixie.Filter{},
		store.Counting{By: []store.GroupBy{store.ByRedrivable, store.ByReview}, Scan: store.ScanAll})
	b.ok(err)
	same(b, "redrivable", store.Sizes(counts[0])["yes"], 1)
	same(b, "to be reviewed", store.Sizes(counts[1])["yes"], 0)
	b.ok(b.resolution(redrive))
}

// takenKeyIsSaid shows that a letter says when a newer message with its dedupe key forbids its
// redrive.
func takenKeyIsSaid(b *fixture) {
	l := b.dead("a", nixie.StatusOpen, nixie.DedupeKey("k"))
	same(b, "key is taken", b.letter(l.ID).KeyTaken, false)
	b.put("b", nixie.DedupeKey("k"))
	same(b, "taken by a newer message", b.letter(l.ID).KeyTaken, true)
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("b"), Verb: nixie.Complete}))
	same(b, "free again", b.letter(l.ID).KeyTaken, false)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	same(b, "its own", b.letter(l.ID).KeyTaken, false)
}

// refusedIsSkipped counts a letter that an operation may not move as skipped, for any reason.
// Failed counts letters that cannot be read.
func refusedIsSkipped(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	for range nixie.MaxNotes {
		b.ok(b.resolve(l.ID, store.OnNote))
	}
	op := b.plan(store.OnNote, nixie.Filter{}, 0)
	note := store.Resolution{Letter: l.ID, Event: store.OnNote, Actor: "ann", Reason: "one more", Operation: op.ID}
	b.code(b.resolution(note), nixie.CodeLimit)
	got, _ := b.operation(op.ID, 1)
	same(b, "skipped", got.Skipped, 1)
	same(b, "failed", got.Failed, 0)
	same(b, "pending", got.Pending, 0)
	b.code(b.resolution(note), nixie.CodeConflict)
	note.Operation = new(store.IDs).New(b.clock.Now())
	b.code(b.resolution(note), nixie.CodeNotFound)
}
