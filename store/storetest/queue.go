package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func auditClauses() []clause {
	return []clause{
		{"EachMoveHasItsEntry", eachMoveHasEntry},
		{"CancelAndConfigureHaveEntries", cancelHasEntry},
		{"TheChainHolds", chainHolds},
		{"WhatIsRefusedHasNone", refusedHasNone},
		{"PagesOfEntries", pagesOfEntries},
	}
}

// events lists the audit's events of a subject; the zero subject is the queue.
func (b *fixture) events(subject nixie.ID) []store.Event {
	b.Helper()
	entries, err := allEntries(b.ctx, b.st, work)
	b.ok(err)
	var events []store.Event
	for _, e := range entries {
		if e.Subject == subject {
			events = append(events, e.Event)
		}
	}
	return events
}

func eachMoveHasEntry(b *fixture) {
	l := b.quarantined("a")
	for _, on := range []store.Event{store.OnRequalify, store.OnHold, store.OnUnhold, store.OnDiscard, store.OnRestore, store.OnRedrive} {
		b.ok(b.resolve(l.ID, on))
	}
	b.ok(b.settle(b.dying(b.take("a"), nixie.StatusOpen)))
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Complete}))
	want := []store.Event{
		store.OnBury, store.OnRedrive, store.OnExceed, store.OnRequalify, store.OnHold, store.OnUnhold, store.OnDiscard,
		store.OnRestore, store.OnRedrive, store.OnDieAgain, store.OnRedrive, store.OnSuccess,
	}
	if got := b.events(l.ID); !slices.Equal(got, want) {
		b.Fatalf("audit of the letter is %q, want %q", got, want)
	}
	entries, err := allEntries(b.ctx, b.st, work)
	b.ok(err)
	for _, e := range entries {
		if e.Actor == "" {
			b.Fatalf("entry %d has no actor: %+v", e.Number, e)
		}
		if e.Event == store.OnDiscard && (e.Actor != "ann" || e.Reason != "because" || !e.At.Equal(b.clock.Now())) {
			b.Fatalf("entry of the operator is %+v", e)
		}
	}
}

func cancelHasEntry(b *fixture) {
	id := b.put("a")
	b.ok(b.amend(id, store.Cancel))
	if got := b.events(id); !slices.Equal(got, []store.Event{store.OnCancel}) {
		b.Fatalf("audit of a canceled message is %q", got)
	}
	b.ok(store.Configure(b.ctx, b.st, work, nixie.QueueSettings{Paused: true}, "bob", "full moon"))
	b.ok(store.Configure(b.ctx, b.st, work, nixie.QueueSettings{Paused: true}, "cy", "without a change, so without an entry"))
	entries, err := allEntries(b.ctx, b.st, work)
	b.ok(err)
	last := entries[len(entries)-1]
	if last.Actor != "bob" || last.Reason != "full moon" || last.Event != store.OnConfigure {
		b.Fatalf("entry of a configure is %+v", last)
	}
	l := b.unpausedDeath(nixie.StatusReview)
	if got := b.events(l.ID); !slices.Equal(got, []store.Event{store.OnHold}) {
		b.Fatalf("audit of a letter born for review is %q", got)
	}
}

// unpausedDeath makes a letter in a queue that was paused.
func (b *fixture) unpausedDeath(status nixie.Status) nixie.Letter {
	b.Helper()
	b.configure(nixie.QueueSettings{})
	return b.dead("dead", status)
}

func chainHolds(b *fixture) {
	for i := range 10 {
		l := b.dead(fmt.Sprint(i), nixie.StatusOpen)
		b.ok(b.resolve(l.ID, store.OnHold))
		b.clock.Advance(time.Second)
	}
	entries, err := allEntries(b.ctx, b.st, work)
	b.ok(err)
	same(b, "entries", len(entries), 20)
	var before nixie.Hash
	for i := range entries {
		e := &entries[i]
		same(b, "number", e.Number, int64(i+1))
		same(b, "queue", e.Queue, work)
		same(b, "hash", e.Hash, e.Sum(before))
		before = e.Hash
	}
}

func refusedHasNone(b *fixture) {
	l := b.dead("a", nixie.StatusOpen)
	before := len(b.events(l.ID))
	b.code(b.resolve(l.ID, store.OnUnhold), nixie.CodeConflict)
	same(b, "entries", len(b.events(l.ID)), before)
	entries, err := allEntries(b.ctx, b.st, "unknown")
	b.ok(err)
	same(b, "entries of an unknown queue", len(entries), 0)
}

func pagesOfEntries(b *fixture) {
	for i := range 23 {
		b.ok(b.amend(b.put(fmt.Sprint(i)), store.Cancel))
	}
	page, number := store.Page{Limit: 5}, int64(0)
	for {
		es, next, err := b.st.Audit(b.ctx, store.AuditFilter{Chain: work}, page)
		b.ok(err)
		for _, e := range es {
			number++
			same(b, "number", e.Number, number)
		}
		if next == "" {
			break
		}
		page.Cursor = next
	}
	same(b, "entries", number, 23)
}

func queueClauses() []clause {
	return []clause{
		{"CountsMatchARecount", countsMatch},
		{"OldestAndNext", oldestAndNext},
		{"TheLastHour", lastHour},
		{"ByName", queuesByName},
		{"AClaimIsNotedNowAndThen", claimIsNoted},
		{"ConfigureMakesAQueue", configureMakes},
		{"ConfigureRefusesNonsense", configureNonsense},
	}
}

func countsMatch(b *fixture) {
	random := rand.New(rand.NewPCG(9, 9))
	verbs := []nixie.Verb{nixie.Complete, nixie.Retry, nixie.Release, nixie.Discard, nixie.Bury, nixie.Hold, ""}
	for i := range 150 {
		b.put(fmt.Sprint(i), nixie.Delay(time.Duration(random.IntN(3))*time.Minute), nixie.Priority(random.IntN(2)))
		if i%3 == 0 {
			b.clock.Advance(time.Second)
		}
		for _, d := range b.claim(2) {
			verb := pick(random, verbs...)
			if verb == "" {
				continue
			}
			b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: verb, Delay: time.Duration(random.IntN(2)) * time.Hour,
				Failure: b.failure(d, "x"), Burial: burial("")}))
		}
		if i%10 == 0 {
			checkCounts(b, b.st, b.clock.Now())
		}
	}
	checkCounts(b, b.st, b.clock.Now())
}

func oldestAndNext(b *fixture) {
	began := b.clock.Now()
	b.put("later", nixie.Delay(time.Hour))
	b.put("next", nixie.Delay(time.Minute))
	info := b.info()
	if !info.OldestAt.IsZero() || !info.NextAt.Equal(began.Add(time.Minute)) || info.Scheduled != 2 || info.Ready != 0 {
		b.Fatalf("queue is %+v", info)
	}
	b.clock.Advance(time.Second)
	b.put("a")
	b.clock.Advance(time.Second)
	b.put("b")
	if info = b.info(); !info.OldestAt.Equal(began.Add(time.Second)) || info.Ready != 2 {
		b.Fatalf("queue is %+v", info)
	}
	b.take("a")
	if info = b.info(); !info.OldestAt.Equal(began.Add(2*time.Second)) || info.Ready != 1 || info.Leased != 1 {
		b.Fatalf("queue is %+v", info)
	}
}

func lastHour(b *fixture) {
	d := b.took("a")
	retry := func() {
		f := b.failure(d, "x")
		f.Decision = nixie.Retry
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Failure: f}))
	}
	retry()
	b.clock.Advance(30 * time.Minute)
	d = b.take("a")
	retry()
	d = b.take("a")
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	info := b.info()
	same(b, "retried", info.Retried, 2)
	same(b, "died", info.Died, 1)
	b.clock.Advance(31 * time.Minute)
	info = b.info()
	same(b, "retried", info.Retried, 1)
	same(b, "died", info.Died, 1)
	b.clock.Advance(30 * time.Minute)
	info = b.info()
	same(b, "retried", info.Retried, 0)
	same(b, "died", info.Died, 0)
	same(b, "dead", info.Dead, 1)
}

func queuesByName(b *fixture) {
	for _, name := range []string{"c", "a", "b"} {
		b.put("x", nixie.Queue(name))
	}
	infos, err := b.st.Queues(b.ctx, store.QueueQuery{})
	b.ok(err)
	same(b, "queues", len(infos), 3)
	for i, name := range []string{"a", "b", "c"} {
		same(b, "name", infos[i].Name, name)
	}
}

// claimIsNoted: also a claim that finds nothing, but only of a queue that exists and is not paused.
func claimIsNoted(b *fixture) {
	asked := func(what string, want time.Time, never bool) {
		b.Helper()
		info := b.info()
		if !info.AskedAt.Equal(want) || info.NeverAsked() != never {
			b.Fatalf("%s: asked at %s (never: %v), want %s (never: %v)", what, info.AskedAt, info.NeverAsked(), want, never)
		}
	}
	b.claim(1)
	infos, err := b.st.Queues(b.ctx, store.QueueQuery{})
	b.ok(err)
	same(b, "queues after a claim of one that does not exist", len(infos), 0)
	b.ok(store.Configure(b.ctx, b.st, work, nixie.QueueSettings{Paused: true}, "ann", ""))
	b.put("later", nixie.Delay(time.Hour))
	b.claim(1)
	asked("a claim of a paused queue", time.Time{}, false)
	b.ok(store.Configure(b.ctx, b.st, work, nixie.QueueSettings{}, "ann", ""))
	asked("before a claim", time.Time{}, true)
	began := b.clock.Now()
	b.keys(b.claim(1))
	asked("a claim that finds nothing", began, false)
	b.clock.Advance(store.AskedEvery - time.Second)
	b.put("a")
	b.take("a")
	asked("a claim soon after", began, false)
	b.clock.Advance(time.Second)
	b.put("b")
	b.take("b")
	asked("a claim later, of a message", b.clock.Now(), false)
	b.clock.Advance(store.AskedEvery)
	b.claimBy(b.join(), 1)
	asked("a claim of another process, still later", b.clock.Now(), false)
}

func configureMakes(b *fixture) {
	want := nixie.QueueSettings{Paused: true, PausedNote: "n", Lease: time.Minute, DedupeScope: nixie.DedupeEver}
	b.ok(store.Configure(b.ctx, b.st, work, want, "ann", ""))
	same(b, "settings", b.info().Settings, want)
	other := b.join()
	infos, err := other.Queues(b.ctx, store.QueueQuery{})
	b.ok(err)
	same(b, "settings in another process", infos[0].Settings, want)
}

func configureNonsense(b *fixture) {
	b.put("a")
	b.unchanged(func() {
		b.code(store.Configure(b.ctx, b.st, "", nixie.QueueSettings{}, "ann", ""), nixie.CodeInvalid)
		b.code(store.Configure(b.ctx, b.st, work, nixie.QueueSettings{}, "", ""), nixie.CodeInvalid)
		b.code(store.Configure(b.ctx, b.st, work, nixie.QueueSettings{DedupeScope: "sometimes"}, "ann", ""), nixie.CodeInvalid)
		b.code(store.Configure(b.ctx, b.st, work, nixie.QueueSettings{Lease: -1}, "ann", ""), nixie.CodeInvalid)
		b.code(store.Configure(b.ctx, b.st, work, nixie.QueueSettings{Lease: nixie.MaxLease + 1}, "ann", ""), nixie.CodeInvalid)
	})
}
