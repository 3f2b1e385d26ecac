package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func thenClauses() []clause {
	return []clause{
		{"ThenIsEnqueuedWithEachOutcome", thenEnqueued},
		{"ThenOfALostLeaseIsNotEnqueued", thenOfLost},
		{"ThenKeepsItsOrderInAStream", thenOrdered},
		{"ThenToAClosedQueueRefusesTheSettlement", thenClosed},
		{"ThenBeyondALimitIsRefused", thenRefused},
		{"ThenWaitsForItsTime", thenWaits},
		{"ThenTakesTheKeyOfItsOwnMessage", thenTakesKey},
		{"ThenWithATakenKeyAddsNothing", thenOfTakenKey},
	}
}

// next is the queue of the messages that follow.
const next = "next"

// followed returns a settlement with messages of these keys.
func followed(st nixie.Settlement, keys ...string) nixie.Settlement {
	for _, key := range keys {
		st.Then = append(st.Then, message(key, nixie.Queue(next)))
	}
	return st
}

// waiting expects the messages of these keys in the queue next, in this order, and completes them.
func (b *fixture) waiting(keys ...string) []*nixie.Delivery {
	b.Helper()
	ds, err := b.st.Claim(b.ctx, next, nixie.Want{Max: 100, Lease: 30 * time.Second})
	b.ok(err)
	b.keys(ds, keys...)
	for _, d := range ds {
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	}
	return ds
}

func thenEnqueued(b *fixture) {
	d := b.took("a")
	b.ok(b.settle(followed(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Failure: b.failure(d, "it fails")}, "tried")))
	b.waiting("tried")
	d = b.take("a")
	b.ok(b.settle(followed(nixie.Settlement{Delivery: d, Verb: nixie.Complete}, "one", "two")))
	for i, d := range b.waiting("one", "two") {
		same(b, "body", string(d.Body), "body of "+[]string{"one", "two"}[i])
		same(b, "attempts", d.Attempts, 1)
		same(b, "dedupe key", d.DedupeKey, "")
	}
	d = b.took("b")
	b.ok(b.settle(followed(b.dying(d, nixie.StatusOpen), "died")))
	b.letterOf(d.ID)
	b.waiting("died")
	d = b.took("c")
	b.ok(b.settle(followed(nixie.Settlement{Delivery: d, Verb: nixie.Discard, Failure: b.failure(d, "it fails")}, "dropped")))
	b.waiting("dropped")
}

// thenOfLost shows that a settlement that is repeated, or comes too late, is followed by nothing.
func thenOfLost(b *fixture) {
	d := b.took("a")
	st := followed(nixie.Settlement{Delivery: d, Verb: nixie.Complete}, "one")
	b.ok(b.settle(st))
	b.code(b.settle(st), nixie.CodeLeaseLost)
	b.waiting("one")
	late := followed(nixie.Settlement{Delivery: b.took("b"), Verb: nixie.Complete}, "late")
	late.Then[0].Queue = "never"
	b.clock.Advance(time.Minute)
	b.code(b.settle(late), nixie.CodeLeaseLost)
	b.waiting()
	queues, err := b.st.Queues(b.ctx, store.QueueQuery{Names: []string{"never"}})
	b.ok(err)
	same(b, "queues of what did not follow", len(queues), 0)
}

func thenOrdered(b *fixture) {
	b.ok(store.Configure(b.ctx, b.st, next, keeping(nixie.QueueSettings{Order: nixie.OrderStrict}), "ann", "r"))
	ordered := func(st nixie.Settlement) nixie.Settlement {
		for i := range st.Then {
			st.Then[i].Stream = "s"
		}
		return st
	}
	first := b.took("a")
	second := b.took("b")
	errs := b.st.Settle(b.ctx, []nixie.Settlement{
		ordered(followed(nixie.Settlement{Delivery: second, Verb: nixie.Complete}, "1", "2")),
		ordered(followed(nixie.Settlement{Delivery: first, Verb: nixie.Complete}, "3")),
	})
	for _, err := range errs {
		b.ok(err)
	}
	for _, want := range []string{"1", "2", "3"} {
		b.waiting(want)
	}
}

// thenClosed shows that a refused message refuses its settlement, which names the queue, and no
// other of the call.
func thenClosed(b *fixture) {
	b.ok(store.Configure(b.ctx, b.st, "closed", nixie.QueueSettings{Closed: true}, "ann", "r"))
	refused, fine := b.took("a"), b.took("b")
	st := followed(nixie.Settlement{Delivery: refused, Verb: nixie.Complete}, "one", "two")
	st.Then[1].Queue = "closed"
	errs := b.st.Settle(b.ctx, []nixie.Settlement{st, followed(nixie.Settlement{Delivery: fine, Verb: nixie.Complete}, "three")})
	b.code(errs[0], nixie.CodeConflict)
	var told *nixie.Error
	same(b, "the error names the queue", errors.As(errs[0], &told) && told.Queue == "closed", true)
	b.ok(errs[1])
	b.waiting("three")
	b.ok(b.settle(nixie.Settlement{Delivery: refused, Verb: nixie.Complete}))
	b.waiting()
}

func thenRefused(b *fixture) {
	d := b.took("a")
	of := func(list ...nixie.Message) nixie.Settlement {
		return nixie.Settlement{Delivery: d, Verb: nixie.Complete, Then: list}
	}
	many := make([]nixie.Message, nixie.MaxThen+1)
	for i := range many {
		many[i] = message("one", nixie.Queue(next))
	}
	half := make([]byte, nixie.MaxThenBytes/2+1)
	b.code(b.settle(of(many...)), nixie.CodeLimit)
	b.code(b.settle(of(nixie.Message{Queue: next, Body: half}, nixie.Message{Queue: next, Body: half})), nixie.CodeLimit)
	for _, m := range []nixie.Message{
		{}, {Queue: next, Priority: nixie.MaxPriority + 1}, {Queue: next, ID: d.ID},
		{Queue: next, Origin: &nixie.Origin{System: "elsewhere"}}, {Queue: next, OnConflict: nixie.FailOnConflict},
	} {
		b.code(b.settle(of(message("one", nixie.Queue(next)), m)), nixie.CodeInvalid)
	}
	release := of(message("one", nixie.Queue(next)))
	release.Verb = nixie.Release
	b.code(b.settle(release), nixie.CodeInvalid)
	b.waiting()
	b.ok(b.settle(of(many[1:]...)))
	same(b, "messages that follow", len(b.waiting(slices.Repeat([]string{"one"}, nixie.MaxThen)...)), nixie.MaxThen)
}

func thenWaits(b *fixture) {
	st := followed(nixie.Settlement{Delivery: b.took("a"), Verb: nixie.Complete}, "later", "low", "high")
	st.Then[0].Delay, st.Then[2].Priority = time.Minute, 4
	b.ok(b.settle(st))
	b.waiting("high", "low")
	b.clock.Advance(time.Minute)
	b.waiting("later")
}

// thenTakesKey goes round: each run enqueues the next one, under the key that the run itself holds.
// A death frees the key as well.
func thenTakesKey(b *fixture) {
	again := message("tick", nixie.DedupeKey("k"))
	b.put("tick", nixie.DedupeKey("k"))
	for _, verb := range []nixie.Verb{nixie.Complete, nixie.Discard, nixie.Complete, nixie.Bury} {
		d := b.take("tick")
		st := nixie.Settlement{Delivery: d, Verb: verb, Then: []nixie.Message{again, again}}
		if verb == nixie.Bury {
			st.Burial = burial("")
		}
		b.ok(b.settle(st))
		same(b, "messages that wait", b.info().Ready, 1)
	}
	b.again(b.take("tick").ID)
	b.sound()
}

// thenOfTakenKey shows that a key that is held adds nothing, and refuses neither the settlement nor
// what follows besides: of another message, or of a scope that ends do not free.
func thenOfTakenKey(b *fixture) {
	d := b.took("a", nixie.DedupeKey("own"))
	holder := b.put("holder", nixie.DedupeKey("k"))
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Then: []nixie.Message{
		message("dropped", nixie.DedupeKey("own")), message("dropped", nixie.DedupeKey("k")), message("fresh", nixie.DedupeKey("new")),
	}}))
	b.again(holder)
	same(b, "claimed: that holder, the retry and what is new", len(b.claim(9)), 3)
	b.configure(nixie.QueueSettings{DedupeScope: nixie.DedupeEver})
	b.ok(b.settle(nixie.Settlement{Delivery: b.took("b", nixie.DedupeKey("ever")), Verb: nixie.Complete,
		Then: []nixie.Message{message("dropped", nixie.DedupeKey("ever"))}}))
	same(b, "messages that wait", b.info().Ready, 0)
	b.sound()
}
