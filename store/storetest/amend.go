package storetest

import (
	"errors"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func amendClauses() []clause {
	return []clause{
		{"CancelOfAQueuedOne", cancelQueued},
		{"CancelOfALeasedOneVoidsTheLease", cancelLeased},
		{"CancelOfAnEndedOneIsAConflict", cancelEnded},
		{"CancelOfARedrivenOneDiscardsItsLetter", cancelRedriven},
		{"RetryNow", retryNow},
		{"RetryNowKeepsTheDueTimeOfADueOne", retryNowOfDue},
		{"AnUnknownMessageIsNotFound", amendUnknown},
		{"AnUnknownChangeIsInvalid", amendNonsense},
		{"HoldBuriesForReview", holdQueued},
		{"HoldIsItsOwnDecision", holdDecides},
		{"HoldFreesTheFollowers", holdFrees},
		{"HoldOfARedrivenOne", holdRedriven},
		{"ResetAttempts", resetAttempts},
		{"ResetAttemptsForgivesCrashes", resetForgives},
		{"Reschedule", reschedule},
		{"MoveToAnotherQueue", moveQueue},
		{"MoveNeedsTheDedupeKey", moveKey},
		{"MoveOfARedrivenOneIsRefused", moveRedriven},
		{"MoveIntoAClosedQueueIsRefused", moveIntoClosed},
		{"AMovedOneKeepsItsPositionInItsNextGeneration", movedGenerations},
		{"MayPassNeedsAStrictStream", mayPassRefused},
		{"EveryChangeIsInTheAudit", changesAudited},
	}
}

func cancelQueued(b *fixture) {
	plain, waiting := b.put("a"), b.put("b", nixie.Delay(time.Hour))
	b.put("c")
	b.ok(b.amend(plain, store.Cancel))
	b.ok(b.amend(waiting, store.Cancel))
	b.state(plain, nixie.Canceled)
	b.state(waiting, nixie.Canceled)
	if m := b.record(plain); !m.EndedAt.Equal(b.clock.Now()) || m.Attempts != 0 || m.Deliveries != 0 {
		b.Fatalf("canceled message is %+v", m.Message)
	}
	b.clock.Advance(2 * time.Hour)
	b.keys(b.claim(9), "c")
	same(b, "letters", len(b.letters(nixie.Filter{})), 0)
}

func cancelLeased(b *fixture) {
	b.put("a")
	b.put("b")
	b.put("c")
	ds := b.claim(3)
	b.ok(b.amend(ds[1].ID, store.Cancel))
	b.state(ds[1].ID, nixie.Canceled)
	b.code(b.settle(nixie.Settlement{Delivery: ds[1], Verb: nixie.Complete}), nixie.CodeLeaseLost)
	b.state(ds[1].ID, nixie.Canceled)
	b.ok(b.settle(nixie.Settlement{Delivery: ds[0], Verb: nixie.Complete}))
	b.clock.Advance(31 * time.Second)
	b.keys(b.claim(9), "c")
	b.keys(b.claim(9))
}

func cancelEnded(b *fixture) {
	done := b.took("a")
	b.ok(b.settle(nixie.Settlement{Delivery: done, Verb: nixie.Complete}))
	dead := b.dead("b", nixie.StatusOpen)
	b.unchanged(func() {
		for _, change := range []store.ChangeVerb{store.Cancel, store.RetryNow} {
			b.code(b.amend(done.ID, change), nixie.CodeConflict)
			b.code(b.amend(dead.Message.ID, change), nixie.CodeConflict)
		}
	})
}

func cancelRedriven(b *fixture) {
	for _, leased := range []bool{false, true} {
		l := b.dead("a", nixie.StatusOpen)
		b.ok(b.resolve(l.ID, store.OnRedrive))
		if leased {
			b.take("a")
		}
		b.ok(b.amend(l.Message.ID, store.Cancel))
		got := b.letter(l.ID)
		same(b, "status", got.Status, nixie.StatusDiscarded)
		same(b, "state", got.Message.State, nixie.Canceled)
		if !got.ResolvedAt.Equal(b.clock.Now()) {
			b.Fatalf("resolved at %s, want %s", got.ResolvedAt, b.clock.Now())
		}
		// The message is not dead, so there is nothing to restore.
		b.unchanged(func() { b.code(b.resolve(l.ID, store.OnRestore), nixie.CodeConflict) })
	}
}

func retryNow(b *fixture) {
	id := b.put("a", nixie.Delay(time.Hour))
	d := b.took("b")
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Delay: time.Hour}))
	b.keys(b.claim(9))
	b.ok(b.amend(id, store.RetryNow))
	b.ok(b.amend(d.ID, store.RetryNow))
	ds := b.claim(9)
	b.keys(ds, "a", "b")
	b.unchanged(func() { b.code(b.amend(id, store.RetryNow), nixie.CodeConflict) })
	same(b, "attempts", ds[1].Attempts, 2)
}

func retryNowOfDue(b *fixture) {
	first := b.put("a", nixie.Priority(1))
	b.clock.Advance(time.Second)
	b.put("b", nixie.Priority(1))
	b.ok(b.amend(first, store.RetryNow))
	plain := b.put("c")
	b.put("d")
	b.ok(b.amend(plain, store.RetryNow))
	b.keys(b.claim(9), "a", "b", "c", "d")
}

func amendUnknown(b *fixture) {
	known := b.put("a", nixie.Delay(time.Hour))
	errs := b.st.Amend(b.ctx, []nixie.ID{new(store.IDs).New(b.clock.Now()), known, {}}, change(store.RetryNow))
	b.code(errs[0], nixie.CodeNotFound)
	b.ok(errs[1])
	b.code(errs[2], nixie.CodeNotFound)
}

func amendNonsense(b *fixture) {
	id := b.put("a")
	b.unchanged(func() { b.code(b.amend(id, "explode"), nixie.CodeInvalid) })
}

func holdQueued(b *fixture) {
	d := b.took("b")
	b.retry(d, time.Hour)
	plain := b.put("a")
	for _, id := range []nixie.ID{plain, d.ID} {
		before := len(b.record(id).History)
		b.ok(b.change(id, b.holding("poison")))
		l := b.letterOf(id)
		if l.Status != nixie.StatusReview || l.Reason != nixie.ReasonPoison || len(l.History) != before+1 ||
			l.History[before].Text != "held" || l.Message.State != nixie.Dead {
			b.Fatalf("letter of a message on hold is %+v", l)
		}
		b.unchanged(func() { b.code(b.change(id, b.holding("poison")), nixie.CodeConflict) })
	}
	b.clock.Advance(2 * time.Hour)
	b.keys(b.claim(9))
	b.ok(b.resolve(b.letterOf(plain).ID, store.OnRedrive))
	b.complete(b.take("a"))
	leased := b.took("c")
	b.unchanged(func() { b.code(b.change(leased.ID, b.holding("poison")), nixie.CodeConflict) })
}

// holdDecides holds messages with failures that name no decision, or another one. Whole listings
// show the decision hold, also among the failures of a later generation.
func holdDecides(b *fixture) {
	for _, said := range []nixie.Verb{"", nixie.Retry} {
		id := b.put("a")
		c := b.holding("poison")
		c.Hold.Decision = said
		b.ok(b.change(id, c))
		l := b.letterOf(id)
		same(b, "decision of the only failure", l.History[0].Decision, nixie.Hold)
		same(b, "decision that the caller's failure has", c.Hold.Decision, said)
		b.ok(b.resolve(l.ID, store.OnRedrive))
		b.ok(b.settle(b.dying(b.take("a"), nixie.StatusOpen)))
		again := b.letterOf(id)
		same(b, "failures", len(again.History), 2)
		same(b, "decision of the first failure", again.History[0].Decision, nixie.Hold)
	}
}

// holdFrees unblocks a stream in an emergency: one call and one audit entry, and the followers go
// on.
func holdFrees(b *fixture) {
	for _, free := range []bool{true, false} {
		b.ordered(nixie.OrderStrict, "")
		head := b.put("m1", nixie.Stream("s"))
		b.inStream("m2")
		b.retry(b.take("m1"), time.Hour)
		entries, err := allEntries(b.ctx, b.st, work)
		b.ok(err)
		c := b.holding("poison")
		c.Free = free
		b.ok(b.change(head, c))
		after, err := allEntries(b.ctx, b.st, work)
		b.ok(err)
		same(b, "new audit entries", len(after)-len(entries), 1)
		if e := after[len(after)-1]; e.Event != store.OnHold || e.Actor != "ann" || e.Reason != "poison" {
			b.Fatalf("audit entry is %+v", e)
		}
		if free {
			b.complete(b.take("m2"))
			b.emptyStreams()
			continue
		}
		b.keys(b.claim(9))
		same(b, "state of the stream", b.stream().State, store.StreamBlocked)
	}
}

func holdRedriven(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.ok(b.change(l.Message.ID, b.holding("wait")))
	same(b, "letters", len(b.letters(nixie.Filter{})), 1)
	b.status(l.ID, nixie.StatusReview)
}

func resetAttempts(b *fixture) {
	d := b.took("a")
	b.retry(d, 0)
	b.take("a")
	b.clock.Advance(31 * time.Second)
	b.claimBy(b.st, 0) // ends the lease and claims the message to judge it
	b.clock.Advance(31 * time.Second)
	if ds := b.claim(1); len(ds) == 1 { // the process that has it releases it
		b.ok(b.settle(nixie.Settlement{Delivery: ds[0], Verb: nixie.Release}))
	}
	if r := b.record(d.ID); r.Attempts == 0 || r.Crashes == 0 {
		b.Fatalf("message is %+v, want attempts and crashes", r.Message)
	}
	b.ok(b.amend(d.ID, store.ResetAttempts))
	if r := b.record(d.ID); r.Attempts+r.Deliveries+r.Crashes != 0 || len(r.History) != 1 {
		b.Fatalf("message is %+v", r.Message)
	}
	again := b.take("a")
	if again.Abandoned || again.Attempts != 1 || again.Deliveries != 1 || again.Lease.Number <= d.Lease.Number {
		b.Fatalf("delivery after a reset is %+v", again)
	}
}

// resetForgives resets a message that vanished with its holders twice, alone. When one more holder
// vanishes the message is no culprit: what convicts was forgiven.
func resetForgives(b *fixture) {
	b.suspected("a")
	b.keys(b.group(1), "a")
	b.clock.Advance(31 * time.Second)
	d := b.take("a")
	same(b, "alone twice", d.AbandonedAlone, true)
	b.judged([]*nixie.Delivery{d})
	b.ok(b.amend(d.ID, store.ResetAttempts))
	b.put("b")
	b.keys(b.claim(2), "a", "b")
	b.clock.Advance(31 * time.Second)
	for _, d := range b.claim(2) {
		if !d.Abandoned || d.AbandonedAlone || d.Crashes != 1 {
			b.Fatalf("%s: abandoned %v, alone twice %v, %d crashes", d.Key, d.Abandoned, d.AbandonedAlone, d.Crashes)
		}
	}
}

func reschedule(b *fixture) {
	id := b.put("a")
	b.put("b")
	at := change(store.Reschedule)
	at.At = b.clock.Now().Add(time.Hour)
	b.ok(b.change(id, at))
	b.complete(b.take("b"))
	same(b, "scheduled", b.info().Scheduled, 1)
	at.At = b.clock.Now().Add(time.Minute)
	b.ok(b.change(id, at))
	b.clock.Advance(time.Minute)
	b.keys(b.claim(9), "a")
	later := b.put("c", nixie.Delay(time.Hour))
	at.At = b.clock.Now().Add(-time.Hour) // a moment in the past means now
	b.ok(b.change(later, at))
	b.keys(b.claim(9), "c")
	b.unchanged(func() {
		b.code(b.change(later, at), nixie.CodeConflict)
		b.code(b.change(id, change(store.Reschedule)), nixie.CodeConflict, nixie.CodeInvalid)
	})
}

func moveQueue(b *fixture) {
	to := change(store.Move)
	to.Queue = "elsewhere"
	d := b.took("b")
	b.retry(d, time.Minute)
	plain := b.put("a", nixie.Stream("s"))
	b.put("stays")
	for _, id := range []nixie.ID{plain, d.ID} {
		b.ok(b.change(id, to))
		same(b, "queue", b.record(id).Queue, "elsewhere")
		b.unchanged(func() { b.code(b.change(id, to), nixie.CodeConflict) })
	}
	b.keys(b.claim(9), "stays")
	ds, err := b.st.Claim(b.ctx, "elsewhere", nixie.Want{Max: 9})
	b.ok(err)
	b.keys(ds, "a")
	b.complete(ds...)
	b.clock.Advance(time.Minute)
	ds, err = b.st.Claim(b.ctx, "elsewhere", nixie.Want{Max: 9})
	b.ok(err)
	b.keys(ds, "b")
	same(b, "attempts", ds[0].Attempts, 2)
	same(b, "failures", len(b.record(d.ID).History), 1)
	b.complete(ds...)
}

func moveKey(b *fixture) {
	to := change(store.Move)
	to.Queue = "elsewhere"
	id := b.put("a", nixie.DedupeKey("k"))
	there, err := b.st.Enqueue(b.ctx, nixie.Message{Queue: "elsewhere", Key: "there", DedupeKey: "k"})
	b.ok(err)
	b.unchanged(func() {
		var taken *nixie.DuplicateError
		if err := b.change(id, to); !errors.As(err, &taken) || taken.Key != "k" || taken.Existing != there[0].ID {
			b.Fatalf("error is %v, want the holder of the key", err)
		}
	})
	to.Queue = "third"
	b.ok(b.change(id, to))
	b.put("free again", nixie.DedupeKey("k"))
	rs, err := b.st.Enqueue(b.ctx, nixie.Message{Queue: "third", DedupeKey: "k"})
	b.ok(err)
	same(b, "holder of the key", rs[0].ID, id)
}

func moveIntoClosed(b *fixture) {
	to := change(store.Move)
	to.Queue = "elsewhere"
	fresh, waits := b.put("a", nixie.DedupeKey("k")), b.put("b", nixie.Delay(time.Hour))
	closing := func(closed bool) {
		_, err := b.st.Adjust(b.ctx, to.Queue, "ann", "because", func(q *nixie.QueueSettings) error {
			q.Closed = closed
			return nil
		})
		b.ok(err)
	}
	closing(true)
	b.unchanged(func() {
		b.code(b.change(fresh, to), nixie.CodeConflict)
		b.code(b.change(waits, to), nixie.CodeConflict)
	})
	closing(false)
	b.ok(b.change(fresh, to))
	b.ok(b.change(waits, to))
}

func moveRedriven(b *fixture) {
	to := change(store.Move)
	to.Queue = "elsewhere"
	l := b.dead("a", nixie.StatusOpen)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.unchanged(func() { b.code(b.change(l.Message.ID, to), nixie.CodeConflict) })
}

// movedGenerations redrives a message that was moved behind another one. It is behind that one
// again.
func movedGenerations(b *fixture) {
	x := b.put("x", nixie.Queue("other"))
	b.put("y")
	to := change(store.Move)
	to.Queue = work
	b.ok(b.change(x, to))
	ds := b.claim(2)
	b.keys(ds, "y", "x")
	b.ok(b.settle(nixie.Settlement{Delivery: ds[0], Verb: nixie.Release}))
	b.ok(b.settle(b.dying(ds[1], nixie.StatusOpen)))
	b.ok(b.resolve(b.letterOf(x).ID, store.OnRedrive))
	b.keys(b.claim(2), "y", "x")
}

func mayPassRefused(b *fixture) {
	id := b.put("a", nixie.Stream("s"))
	b.unchanged(func() { b.code(b.amend(id, store.MayPass), nixie.CodeConflict) })
	b.take("a")
	b.unchanged(func() { b.code(b.amend(id, store.MayPass), nixie.CodeConflict) })
}

func changesAudited(b *fixture) {
	b.ordered(nixie.OrderStrict, "")
	for _, verb := range store.ChangeVerbs() {
		id := b.put("a", nixie.Stream(string(verb)))
		c := b.holding("because")
		c.Verb, c.At, c.Queue = verb, b.clock.Now().Add(time.Hour), "elsewhere"
		b.ok(b.change(id, c))
		entries, err := allEntries(b.ctx, b.st, work)
		b.ok(err)
		e := entries[len(entries)-1]
		if e.Actor != "ann" || !strings.Contains(e.Reason, "because") ||
			e.Event == store.OnAmend && !strings.HasPrefix(e.Reason, string(verb)) {
			b.Fatalf("audit entry of %s is %+v", verb, e)
		}
		c.Actor = ""
		b.code(b.change(b.put("b"), c), nixie.CodeInvalid)
	}
}
