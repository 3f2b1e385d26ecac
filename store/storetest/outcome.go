package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
)

func outcomeClauses() []clause {
	return []clause{
		{"OfEachEnd", outcomeOfEachEnd},
		{"Stay", outcomesStay},
		{"AreOfOneRedriveEach", outcomesOfTwo},
		{"BeginAnewWithARepeat", outcomesAnew},
		{"AreUnobservedUntilALetterComes", outcomesUnobserved},
		{"ThatComeBeforeTheirConfirmation", outcomesEarly},
		{"AreOfRedrivesOnly", outcomesOfRedrives},
		{"AreOfTheGroupThatTheirRedriveNames", outcomesOfNamedGroups},
	}
}

// outcome reads the outcome of a redrive.
func (b *fixture) outcome(id nixie.ID) store.Outcome {
	b.Helper()
	op, _ := b.operation(id, 0)
	return op.Outcome
}

// redriven plans a redrive of letters and moves them.
func (b *fixture) redriven(on store.Event, letters ...nixie.Letter) nixie.ID {
	b.Helper()
	var ids []nixie.ID
	for _, l := range letters {
		ids = append(ids, l.ID)
	}
	op := b.plan(store.OnRedrive, nixie.Filter{IDs: ids}, 0)
	b.moves(op.ID, on, letters...)
	return op.ID
}

func (b *fixture) moves(operation nixie.ID, on store.Event, letters ...nixie.Letter) {
	b.Helper()
	for _, l := range letters {
		b.ok(b.resolution(store.Resolution{Letter: l.ID, Event: on, Actor: "ann", Reason: "r", Operation: operation, Force: true}))
	}
}

// diesOf buries a delivery with a fingerprint.
func (b *fixture) diesOf(key, fingerprint string) {
	b.Helper()
	st := b.dying(b.take(key), nixie.StatusOpen)
	st.Burial.Fingerprint = fingerprint
	b.ok(b.settle(st))
}

// outcomeOfEachEnd ends a redriven message in every way, and wants its outcome in the same moment.
func outcomeOfEachEnd(b *fixture) {
	succeeded, same1, new1 := store.Outcome{Succeeded: 1}, store.Outcome{SameFailure: 1}, store.Outcome{NewFailure: 1}
	gone, unobserved := store.Outcome{Gone: 1}, store.Outcome{Unobserved: 1}
	settled := func(verb nixie.Verb, fingerprint string, status nixie.Status) func(nixie.Letter) {
		return func(l nixie.Letter) {
			st := b.dying(b.take(l.Message.Key), status)
			st.Verb, st.Burial.Fingerprint = verb, fingerprint
			if st.Failure.Decision = verb; verb == nixie.Complete {
				st.Failure, st.Burial = nil, nil
			}
			b.ok(b.settle(st))
		}
	}
	for _, end := range []struct {
		what string
		want store.Outcome
		do   func(nixie.Letter)
	}{
		{"completed", succeeded, settled(nixie.Complete, "", "")},
		{"dead as before", same1, settled(nixie.Bury, "v1:aa", nixie.StatusOpen)},
		{"dead of another cause", new1, settled(nixie.Bury, "v1:bb", nixie.StatusOpen)},
		{"quarantined", same1, settled(nixie.Bury, "v1:aa", nixie.StatusQuarantined)},
		{"in review", new1, settled(nixie.Hold, "v1:bb", nixie.StatusReview)},
		{"discarded", gone, settled(nixie.Discard, "v1:aa", nixie.StatusOpen)},
		{"canceled", gone, func(l nixie.Letter) { b.ok(b.amend(l.Message.ID, store.Cancel)) }},
		{"canceled while it is leased", gone, func(l nixie.Letter) {
			b.take(l.Message.Key)
			b.ok(b.amend(l.Message.ID, store.Cancel))
		}},
		{"purged with its queue", gone, func(nixie.Letter) {
			n, err := b.st.Purge(b.ctx, work, nixie.Filter{}, 10, "ann", "empty it")
			b.ok(err)
			same(b, "canceled", n, 1)
		}},
		{"held by an operator", same1, func(l nixie.Letter) { b.ok(b.change(l.Message.ID, b.holding("wait"))) }},
		{"taken by a broker", unobserved, func(l nixie.Letter) { b.ok(b.resolve(l.ID, store.OnConfirm)) }},
		{"taken by a broker for another redrive", gone, func(l nixie.Letter) { b.redriven(store.OnConfirm, l) }},
		{"succeeded as its holder logged", succeeded, func(l nixie.Letter) {
			st := b.join()
			log, ok := st.(lease.ProgressLog)
			ds := b.claimBy(st, 1)
			b.keys(ds, l.Message.Key)
			if !ok {
				b.ok(b.settleBy(st, nixie.Settlement{Delivery: ds[0], Verb: nixie.Complete}))
				return
			}
			b.ok(log.LogProgress(lease.Begun, ds...))
			b.ok(log.LogProgress(lease.Succeeded, ds...))
			b.shared.Crash(st)
			b.keys(b.claim(1))
		}},
		{"judged after its holder vanished", new1, func(l nixie.Letter) {
			st := b.join()
			b.keys(b.claimBy(st, 1), l.Message.Key)
			b.shared.Crash(st)
			b.diesOf(l.Message.Key, "v1:poison")
		}},
	} {
		l := b.dead(end.what, nixie.StatusOpen)
		op := b.redriven(store.OnRedrive, l)
		moved, _ := b.operation(op, 0)
		same(b, "outcome of what is on its way", moved.Outcome, store.Outcome{UnderWay: 1})
		b.clock.Advance(time.Second)
		end.do(l)
		ended, _ := b.operation(op, 0)
		same(b, "outcome of what is "+end.what, ended.Outcome, end.want)
		if moved.ChangedAt.Before(moved.CreatedAt) || ended.ChangedAt.Sub(moved.ChangedAt) < time.Second {
			b.Errorf("what is %s was planned at %s, moved at %s and ended at %s", end.what, moved.CreatedAt, moved.ChangedAt,
				ended.ChangedAt)
		}
	}
}

// outcomesStay shows that nothing which is done to letters afterwards changes the outcomes of the
// redrive that moved them, or whose they are.
func outcomesStay(b *fixture) {
	ls := b.deaths(6)
	op := b.redriven(store.OnRedrive, ls...)
	want := store.Outcome{SameFailure: 4, NewFailure: 1, Succeeded: 1}
	for i, l := range ls {
		switch i {
		case 4:
			b.diesOf(l.Message.Key, "v1:other")
		case 5:
			b.ok(b.settle(nixie.Settlement{Delivery: b.take(l.Message.Key), Verb: nixie.Complete}))
		default:
			b.diesOf(l.Message.Key, "v1:aa")
		}
	}
	same(b, "outcome", b.outcome(op), want)
	for _, on := range []store.Event{store.OnNote, store.OnHold, store.OnUnhold, store.OnDiscard, store.OnRestore} {
		by := b.plan(on, nixie.Filter{IDs: []nixie.ID{ls[0].ID, ls[4].ID}}, 0)
		b.moves(by.ID, on, ls[0], ls[4])
		same(b, "outcome after "+string(on), b.outcome(op), want)
		same(b, "redrive of the letter after "+string(on), b.letter(ls[0].ID).Operation, op)
	}
	b.ok(b.resolve(ls[1].ID, store.OnRedrive))
	same(b, "redrive of a letter that none moved", b.letter(ls[1].ID).Operation, nixie.ID{})
	same(b, "outcome with a letter on its way", b.outcome(op), want)
	b.ok(b.settle(nixie.Settlement{Delivery: b.take(ls[1].Message.Key), Verb: nixie.Complete}))
	purge := b.plan(store.OnPurge, nixie.Filter{IDs: []nixie.ID{ls[1].ID}}, 0)
	b.moves(purge.ID, store.OnPurge, ls[1])
	b.configure(nixie.QueueSettings{LetterRetention: time.Minute})
	b.clock.Advance(time.Hour)
	_, err := b.st.Prune(b.ctx, store.Pruning{Limit: 10})
	b.ok(err)
	same(b, "letters left", len(b.letters(nixie.Filter{})), 4)
	same(b, "outcome after a purge and a prune", b.outcome(op), want)
}

// outcomesOfTwo redrives letters twice: each redrive has the outcome of its own generation.
func outcomesOfTwo(b *fixture) {
	ls := b.deaths(3)
	first := b.redriven(store.OnRedrive, ls...)
	for _, l := range ls {
		b.diesOf(l.Message.Key, "v1:other")
	}
	second := b.redriven(store.OnRedrive, ls...)
	same(b, "first, while the second is on its way", b.outcome(first), store.Outcome{NewFailure: 3})
	b.ok(b.settle(nixie.Settlement{Delivery: b.take(ls[0].Message.Key), Verb: nixie.Complete}))
	b.diesOf(ls[1].Message.Key, "v1:other") // the same as in the plan of the second
	b.ok(b.amend(ls[2].Message.ID, store.Cancel))
	same(b, "first", b.outcome(first), store.Outcome{NewFailure: 3})
	same(b, "second", b.outcome(second), store.Outcome{Succeeded: 1, SameFailure: 1, Gone: 1})
}

// outcomesAnew repeats a redrive: what died again and waits is pending, and nothing else.
func outcomesAnew(b *fixture) {
	ls := b.deaths(4)
	op := b.redriven(store.OnRedrive, ls...)
	for _, l := range ls {
		b.diesOf(l.Message.Key, "v1:aa")
	}
	b.ok(b.resolve(ls[1].ID, store.OnDiscard))
	b.redriven(store.OnRedrive, ls[2])
	again, err := b.st.Plan(b.ctx, store.Operation{ID: op}, nixie.Filter{}, 0)
	b.ok(err)
	same(b, "pending", again.Pending, 2)
	same(b, "outcome", again.Outcome, store.Outcome{SameFailure: 2})
	b.clock.Advance(time.Second)
	b.moves(op, store.OnRedrive, ls[0])
	b.ok(b.settle(nixie.Settlement{Delivery: b.take(ls[2].Message.Key), Verb: nixie.Complete})) // of the other redrive
	same(b, "outcome on the way", b.outcome(op), store.Outcome{SameFailure: 2, UnderWay: 1})
	b.diesOf(ls[0].Message.Key, "v1:new")
	same(b, "outcome at the end", b.outcome(op), store.Outcome{SameFailure: 2, NewFailure: 1})
}

// outcomesUnobserved shows that a letter of what a broker took ends its outcome: one that moves the
// letter on, also if it names another redrive, or another one of the same job. A repeat changes
// nothing.
func outcomesUnobserved(b *fixture) {
	for i, came := range []struct {
		what        string
		fingerprint string
		names       func(operation nixie.ID) nixie.ID
		want        store.Outcome
	}{
		{"as before", "v1-bb", func(operation nixie.ID) nixie.ID { return operation }, store.Outcome{SameFailure: 1}},
		{"without its header", "v1-cc", func(nixie.ID) nixie.ID { return nixie.ID{} }, store.Outcome{NewFailure: 1}},
		{"of another redrive", "v1-cc", func(nixie.ID) nixie.ID { return b.idOf("elsewhere") }, store.Outcome{NewFailure: 1}},
	} {
		for _, another := range []bool{false, true} {
			l := b.adopted(b.foreign(fmt.Sprint(came.what, another)))
			op := b.redriven(store.OnConfirm, l)
			same(b, "outcome of what a broker took", b.outcome(op), store.Outcome{Unobserved: 1})
			b.clock.Advance(time.Minute)
			next := b.later(l, 1, "worse")
			if another {
				next = b.foreign(fmt.Sprint("next of ", came.what))
				next.Message.Origin.Earlier = l.ID
			}
			next.Operation, next.Fingerprint = came.names(op), came.fingerprint
			for range 2 {
				_, err := b.buryOne(next)
				b.ok(err)
				same(b, fmt.Sprint("outcome after a letter ", came.what, another, i), b.outcome(op), came.want)
			}
		}
	}
}

// outcomesEarly shows letters of deaths that come before the broker's confirmation was written.
// Another letter lets the item wait for that, and one that moves the letter on does not.
func outcomesEarly(b *fixture) {
	ls := []nixie.Letter{b.adopted(b.foreign("a")), b.adopted(b.foreign("b"))}
	op := b.plan(store.OnRedrive, nixie.Filter{IDs: []nixie.ID{ls[0].ID, ls[1].ID}}, 0).ID
	other := b.foreign("c")
	other.Message.Origin.Earlier, other.Operation, other.Fingerprint = ls[0].ID, op, "v1-other"
	b.adopted(other)
	same(b, "outcome before", b.outcome(op), store.Outcome{})
	b.moves(op, store.OnConfirm, ls[0])
	same(b, "outcome of another letter", b.outcome(op), store.Outcome{NewFailure: 1})
	same(b, "its letter is", b.letter(ls[0].ID).Status, nixie.StatusResolved)
	under := b.redriven(store.OnRedrive, ls[1])
	late := b.foreign("d")
	late.Message.Origin.Earlier, late.Operation = ls[1].ID, under
	b.adopted(late)
	same(b, "outcome of what is on its way here", b.outcome(under), store.Outcome{UnderWay: 1})
	d := b.claim(1)[0]
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	b.clock.Advance(time.Minute)
	next := b.later(b.letter(ls[1].ID), 1, "worse")
	next.Operation, next.Fingerprint = op, ls[1].Fingerprint
	_, err := b.buryOne(next)
	b.ok(err)
	want := store.Outcome{NewFailure: 1, SameFailure: 1}
	same(b, "outcome of the letter that was moved on", b.outcome(op), want)
	b.code(b.resolution(store.Resolution{Letter: ls[1].ID, Event: store.OnConfirm, Actor: "ann", Operation: op}), nixie.CodeConflict)
	same(b, "outcome after a late confirmation", b.outcome(op), want)
	same(b, "the letter that was moved on is", b.letter(ls[1].ID).Status, nixie.StatusOpen)
	again, err := b.st.Plan(b.ctx, store.Operation{ID: op}, nixie.Filter{}, 0)
	b.ok(err)
	same(b, "pending again", again.Pending, 1)
	b.moves(op, store.OnConfirm, ls[1])
	same(b, "outcome of the repeat", b.outcome(op), store.Outcome{NewFailure: 1, Unobserved: 1})
}

// outcomesOfRedrives shows that other operations have no outcomes, and that each takes its own
// event only.
func outcomesOfRedrives(b *fixture) {
	ls := b.deaths(2)
	hold := b.plan(store.OnHold, nixie.Filter{}, 0)
	if planned, _ := b.operation(hold.ID, 0); !planned.ChangedAt.IsZero() {
		b.Errorf("what is only planned changed at %s", planned.ChangedAt)
	}
	b.moves(hold.ID, store.OnHold, ls[0])
	if held, _ := b.operation(hold.ID, 0); held.ChangedAt.Before(held.CreatedAt) {
		b.Errorf("what was planned at %s changed at %s", held.CreatedAt, held.ChangedAt)
	}
	for _, on := range []store.Event{store.OnRedrive, store.OnConfirm, store.OnNote} {
		b.code(b.resolution(store.Resolution{Letter: ls[1].ID, Event: on, Actor: "ann", Reason: "r", Operation: hold.ID}),
			nixie.CodeInvalid)
	}
	redrive := b.plan(store.OnRedrive, nixie.Filter{}, 0)
	b.code(b.resolution(store.Resolution{Letter: ls[1].ID, Event: store.OnDiscard, Actor: "ann", Reason: "r", Operation: redrive.ID}),
		nixie.CodeInvalid)
	for _, id := range []nixie.ID{hold.ID, redrive.ID} {
		got, _ := b.operation(id, 0)
		same(b, "outcome", got.Outcome, store.Outcome{})
		same(b, "pending", got.Pending+got.Done, 2)
	}
}

// follow notes what the audit says of the letters that redrives moved.
func (c *inspector) follow(e *store.AuditEntry) {
	of := c.moved[e.Subject]
	switch e.Event {
	case store.OnRedrive, store.OnConfirm:
		if e.Operation.IsZero() && e.Event == store.OnConfirm && c.outcomes[of][e.Subject] == store.OnRedrive {
			break // it goes on with that redrive
		}
		if e.Event == store.OnConfirm && c.outcomes[of][e.Subject] == store.OnRedrive {
			c.outcomes[of][e.Subject] = store.OnGone
		}
		if of = e.Operation; c.outcomes[of] == nil {
			c.outcomes[of] = map[nixie.ID]store.Event{}
		}
		c.moved[e.Subject] = of
	case store.OnSuccess, store.OnGone, store.OnDieAgain, store.OnExceed, store.OnHold:
		if of.IsZero() && e.Event == store.OnDieAgain {
			c.unasked++
		}
		if was := c.outcomes[of][e.Subject]; was != store.OnRedrive && was != store.OnConfirm {
			return
		}
	default:
		return
	}
	c.outcomes[of][e.Subject] = e.Event
}

// lookAtOperations adds up the items of operations, and compares outcomes with the audit. That does
// not tell which items a repeat has made pending again, which letters died as other ones, and which
// redrive a death named that was told before its confirmation.
func (c *inspector) lookAtOperations(ctx context.Context, st store.Operations) error {
	for page := (store.Page{Limit: 1000}); ; {
		list, next, err := st.Operations(ctx, store.OperationQuery{}, page)
		if err != nil {
			return err
		}
		for i := range list {
			op, o := &list[i], &list[i].Outcome
			c.want(op.Selected == op.Done+op.Skipped+op.Failed+op.Pending && addsUp(op), "the counts of operation %+v do not add up", op)
			told := map[store.Event]int64{}
			for _, on := range c.outcomes[op.ID] {
				told[on]++
			}
			died := told[store.OnDieAgain] + told[store.OnExceed] + told[store.OnHold]
			ended := o.Unobserved + o.DiedAgain()
			c.want(len(c.pruned) > 0 && slices.Contains(slices.Collect(maps.Values(c.pruned)), true) || op.Event != store.OnRedrive ||
				o.Succeeded == told[store.OnSuccess] && o.Gone == told[store.OnGone] && o.UnderWay == told[store.OnRedrive] &&
					o.Unobserved <= told[store.OnConfirm] && ended <= told[store.OnConfirm]+died+c.unasked &&
					ended >= told[store.OnConfirm]+died-op.Pending,
				"the outcomes of operation %+v are not what the audit says: %v", op, told)
		}
		if page.Cursor = next; next == "" {
			return nil
		}
	}
}

// addsUp reports whether the outcomes of a redrive add up to what it moved.
func addsUp(op *store.Operation) bool {
	o := &op.Outcome
	sum := o.Succeeded + o.SameFailure + o.NewFailure + o.Gone + o.Unobserved + o.UnderWay
	return sum == 0 && op.Event != store.OnRedrive || sum == op.Done && op.Event == store.OnRedrive
}

// outcomesOfNamedGroups shows that a resolution may name the group that the next death is compared
// with. Then the planned one does not count.
func outcomesOfNamedGroups(b *fixture) {
	ls := b.deaths(2)
	op := b.plan(store.OnRedrive, nixie.Filter{}, 0)
	for _, l := range ls {
		b.ok(b.resolution(store.Resolution{Letter: l.ID, Event: store.OnRedrive, Actor: "ann", Reason: "r", Operation: op.ID, Force: true,
			Group: "v1:bb"}))
	}
	b.diesOf(ls[0].Message.Key, "v1:bb")
	b.diesOf(ls[1].Message.Key, "v1:aa")
	same(b, "outcome", b.outcome(op.ID), store.Outcome{SameFailure: 1, NewFailure: 1})
	again, err := b.st.Plan(b.ctx, store.Operation{ID: op.ID}, nixie.Filter{}, 0)
	b.ok(err)
	same(b, "taken up again", again.Pending, 2)
	b.moves(op.ID, store.OnRedrive, ls...)
	b.diesOf(ls[0].Message.Key, "v1:bb")
	b.diesOf(ls[1].Message.Key, "v1:bb")
	same(b, "outcome of the second try, which compares with the first", b.outcome(op.ID), store.Outcome{SameFailure: 1, NewFailure: 1})
}
