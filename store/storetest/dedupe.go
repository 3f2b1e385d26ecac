package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func dedupeClauses() []clause {
	return []clause{
		{"ReturnExistingNamesTheHolder", returnExisting},
		{"WithinOneCall", dedupeWithinCall},
		{"KeysBelongToAQueue", keysBelongToAQueue},
		{"FailOnConflictRefusesTheCall", failOnConflict},
		{"ReplaceExistingTakesTheNewBody", replaceExisting},
		{"ReplaceExistingTakesHeadersTypeAndKey", replaceAll},
		{"ReplaceExistingIsInTheAudit", replaceAudited},
		{"ReplaceExistingFailsOnceClaimed", replaceClaimed},
		{"ReplaceExistingOfARedrivenOneCountsItsLetterByTheNewType", replaceRedriven},
		{"ScopeActive", scopeActive},
		{"ScopeQueuedEndsAtTheFirstClaim", scopeQueued},
		{"ScopeQueuedIsNeverTakenAgain", scopeQueuedOnce},
		{"ScopeQueuedOfAClaimOfMany", scopeQueuedMany},
		{"ScopeQueuedOfAMovedMessage", scopeQueuedMoved},
		{"ScopeQueuedFreesAtTheNextClaim", scopeQueuedLater},
		{"ScopeUnresolved", scopeUnresolved},
		{"ScopeEver", scopeEver},
		{"ANewScopeHoldsFromNowOn", scopeChanges},
		{"ARetryKeepsTheKey", retryKeepsKey},
		{"CancelFreesTheKey", cancelFreesKey},
		{"ALateFinisherDoesNotFreeTheKey", lateFinisherKeepsKey},
		{"B065_LateFinisherOfALeaseThatIsOver", lateFinisherOfLease},
		{"ALetterDoesNotFreeTheKeyOfANewerMessage", letterKeepsNewersKey},
		{"RedriveTakesTheKeyAgain", redriveTakesKey},
		{"R36_RedriveOfATakenKeyIsAConflict", redriveOfTakenKey},
	}
}

// again enqueues another message with the dedupe key k, and expects the key to be free or held.
func (b *fixture) again(holder nixie.ID) {
	b.Helper()
	r, err := b.st.Enqueue(b.ctx, message("other", nixie.DedupeKey("k")))
	b.ok(err)
	if holder.IsZero() {
		if r[0].Duplicate {
			b.Fatalf("the key is held by %s, want it free", r[0].ID)
		}
		return
	}
	if !r[0].Duplicate || r[0].ID != holder {
		b.Fatalf("receipt is %+v, want a duplicate of %s", r[0], holder)
	}
}

func returnExisting(b *fixture) {
	id := b.put("a", nixie.DedupeKey("k"))
	r, err := b.st.Enqueue(b.ctx, message("a", nixie.DedupeKey("k")), message("b", nixie.DedupeKey("k")), message("c"))
	b.ok(err)
	same(b, "same body", r[0], nixie.Receipt{ID: id, Duplicate: true})
	same(b, "other body", r[1], nixie.Receipt{ID: id, Duplicate: true, Different: true})
	same(b, "new message is a duplicate", r[2].Duplicate, false)
	b.keys(b.claim(9), "a", "c")
}

func dedupeWithinCall(b *fixture) {
	r, err := b.st.Enqueue(b.ctx, message("a", nixie.DedupeKey("k")), message("b", nixie.DedupeKey("k")))
	b.ok(err)
	same(b, "second", r[1], nixie.Receipt{ID: r[0].ID, Duplicate: true, Different: true})
	b.unchanged(func() {
		_, err := b.st.Enqueue(b.ctx, message("c", nixie.DedupeKey("l")),
			message("d", nixie.DedupeKey("l"), nixie.OnConflict(nixie.FailOnConflict)))
		b.code(err, nixie.CodeConflict)
	})
}

func keysBelongToAQueue(b *fixture) {
	b.put("a", nixie.DedupeKey("k"))
	r, err := b.st.Enqueue(b.ctx, message("a", nixie.DedupeKey("k"), nixie.Queue("other")))
	b.ok(err)
	same(b, "duplicate", r[0].Duplicate, false)
}

func failOnConflict(b *fixture) {
	id := b.put("a", nixie.DedupeKey("k"))
	b.unchanged(func() {
		_, err := b.st.Enqueue(b.ctx, message("b"), message("c", nixie.DedupeKey("k"), nixie.OnConflict(nixie.FailOnConflict)),
			message("d"))
		b.code(err, nixie.CodeConflict)
		var duplicate *nixie.DuplicateError
		if !errors.As(err, &duplicate) || duplicate.Existing != id || duplicate.Key != "k" {
			b.Fatalf("error is %#v, want a DuplicateError that names %s", err, id)
		}
	})
	r, err := b.st.Enqueue(b.ctx, message("b", nixie.DedupeKey("free"), nixie.OnConflict(nixie.FailOnConflict)))
	b.ok(err)
	same(b, "duplicate", r[0].Duplicate, false)
}

func replaceExisting(b *fixture) {
	id := b.put("a", nixie.DedupeKey("k"))
	b.put("b")
	next := message("a", nixie.DedupeKey("k"), nixie.OnConflict(nixie.ReplaceExisting))
	next.Body = []byte("new")
	r, err := b.st.Enqueue(b.ctx, next)
	b.ok(err)
	same(b, "receipt", r[0], nixie.Receipt{ID: id, Duplicate: true, Different: true})
	ds := b.claim(9)
	b.keys(ds, "a", "b")
	same(b, "body", string(ds[0].Body), "new")
	same(b, "hash", ds[0].Hash, nixie.HashBody([]byte("new")))
}

// replaceAll replaces a message by one with more fields, then by one with fewer. The holder keeps
// its key unless the new message has another.
func replaceAll(b *fixture) {
	first := message("a", nixie.DedupeKey("k"), nixie.WithHeader("old", "1"), nixie.Stream("s"), nixie.Priority(2))
	first.Origin = &nixie.Origin{System: "kafka", Channel: "c", MessageID: "1"}
	there, err := b.st.Enqueue(b.ctx, first)
	b.ok(err)
	id := there[0].ID
	for _, next := range []struct {
		given nixie.Message
		key   string
	}{
		{nixie.Message{Key: "b", Type: "other", Headers: []nixie.Header{{Name: "new", Value: "2"}, {Name: "new", Value: "3"}}, Stream: "t",
			Priority: -1, Delay: time.Hour}, "b"},
		{nixie.Message{Body: []byte("last")}, "b"},
	} {
		given := next.given
		given.Queue, given.DedupeKey, given.OnConflict = work, "k", nixie.ReplaceExisting
		r, err := b.st.Enqueue(b.ctx, given)
		b.ok(err)
		same(b, "receipt", r[0], nixie.Receipt{ID: id, Duplicate: true, Different: true})
		got := b.record(id)
		same(b, "body", string(got.Body), string(given.Body))
		same(b, "hash", got.Hash, nixie.HashBody(given.Body))
		same(b, "type", got.Type, given.Type)
		same(b, "key", got.Key, next.key)
		same(b, "origin", got.Origin.Same(first.Origin), true)
		same(b, "stream", got.Stream, "s")
		same(b, "priority", got.Priority, 2)
		same(b, "due later", got.NotBefore.After(b.clock.Now()), false)
		if !slices.Equal(got.Headers, given.Headers) {
			b.Fatalf("headers are %v, want %v", got.Headers, given.Headers)
		}
		if len(given.Headers) > 0 {
			given.Headers[0].Value = "changed by the caller"
			same(b, "header", b.record(id).Headers[0].Value, "2")
		}
	}
	b.keys(b.claim(9), "b")
}

// replaceAudited replaces a message twice in one call and finds the hash of each lost body in the
// audit. A refused replacement leaves no entry.
func replaceAudited(b *fixture) {
	var want []string
	given := message("a", nixie.DedupeKey("k"), nixie.OnConflict(nixie.ReplaceExisting))
	next := func(body string) nixie.Message {
		if given.Body != nil {
			want = append(want, store.Replaced(nixie.HashBody(given.Body)))
		}
		given.Body = []byte(body)
		return given
	}
	given.Body = nil
	receipts, err := b.st.Enqueue(b.ctx, next("first"), next("second"))
	b.ok(err)
	_, err = b.st.Enqueue(b.ctx, next("third"))
	b.ok(err)
	_, err = b.st.Enqueue(b.ctx, next("third"))
	b.ok(err)
	audited := func() (reasons []string) {
		entries, err := allEntries(b.ctx, b.st, work)
		b.ok(err)
		for _, e := range entries {
			if e.Subject != receipts[0].ID || e.Event != store.OnAmend || e.Actor != "nixie" {
				b.Fatalf("entry %+v", e)
			}
			reasons = append(reasons, e.Reason)
		}
		return reasons
	}
	if got := audited(); !slices.Equal(got, want) {
		b.Fatalf("the audit says %q, want %q", got, want)
	}
	b.take("a")
	_, err = b.st.Enqueue(b.ctx, next("fourth"))
	b.code(err, nixie.CodeConflict)
	same(b, "entries", len(audited()), 3)
}

func replaceClaimed(b *fixture) {
	d := b.took("a", nixie.DedupeKey("k"))
	next := message("a", nixie.DedupeKey("k"), nixie.OnConflict(nixie.ReplaceExisting))
	next.Body = []byte("new")
	refuse := func() {
		b.unchanged(func() {
			_, err := b.st.Enqueue(b.ctx, message("b"), next, message("c", nixie.DedupeKey("k")))
			b.code(err, nixie.CodeConflict)
		})
	}
	refuse()
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release}))
	refuse()
}

func replaceRedriven(b *fixture) {
	l := b.dead("a", nixie.StatusOpen, nixie.DedupeKey("k"))
	b.ok(b.resolve(l.ID, store.OnRedrive))
	next := message("a", nixie.DedupeKey("k"), nixie.OnConflict(nixie.ReplaceExisting))
	next.Type = "new"
	_, err := b.st.Enqueue(b.ctx, next)
	b.ok(err)
	counted, _, err := b.st.Count(b.ctx, nixie.Filter{},
		store.Counting{By: []store.GroupBy{store.ByType}, Scan: store.ScanAll, Described: true})
	b.ok(err)
	groups := counted[0]
	if len(groups) != 1 || groups[0].Key != "new" || groups[0].Count != 1 {
		b.Fatalf("letters by type are %+v", groups)
	}
	same(b, "letters of the new type", len(b.letters(nixie.Filter{Types: []string{"new"}})), 1)
	b.sound()
}

func scopeActive(b *fixture) {
	for _, verb := range []nixie.Verb{nixie.Complete, nixie.Discard, nixie.Bury, nixie.Hold} {
		id := b.put("a", nixie.DedupeKey("k"))
		b.again(id)
		d := b.take("a")
		b.again(id)
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: verb, Burial: burial("")}))
		b.again(nixie.ID{})
		b.ok(b.settle(nixie.Settlement{Delivery: b.take("other"), Verb: nixie.Complete}))
	}
}

// scopeQueued takes a message of each kind: new, due later, with a priority, in a stream. News that
// come while it runs are not dropped.
func scopeQueued(b *fixture) {
	b.configure(nixie.QueueSettings{DedupeScope: nixie.DedupeQueued, Order: nixie.OrderStrict})
	for _, opt := range []nixie.Option{nixie.Key("a"), nixie.Delay(time.Minute), nixie.Priority(2), nixie.Stream("s")} {
		id := b.put("a", nixie.DedupeKey("k"), opt)
		b.again(id)
		b.clock.Advance(time.Minute)
		d := b.take("a")
		b.again(nixie.ID{})
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
		other := b.take("other")
		news := b.put("news", nixie.DedupeKey("k"), nixie.OnConflict(nixie.FailOnConflict))
		b.ok(b.settle(nixie.Settlement{Delivery: other, Verb: nixie.Complete}))
		b.again(news)
		b.ok(b.settle(nixie.Settlement{Delivery: b.take("news"), Verb: nixie.Complete}))
		b.sound()
	}
}

// scopeQueuedOnce gives a claimed message back in each way. It does not take its key again, and
// does not free that of a newer message.
func scopeQueuedOnce(b *fixture) {
	b.configure(nixie.QueueSettings{DedupeScope: nixie.DedupeQueued})
	d := b.took("a", nixie.DedupeKey("k"))
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Delay: time.Hour}))
	newer := b.put("newer", nixie.DedupeKey("k"))
	held := func(what string) {
		b.Helper()
		r, err := b.st.Enqueue(b.ctx, message("other", nixie.DedupeKey("k")))
		b.ok(err)
		same(b, what, r[0].ID, newer)
		b.sound()
	}
	held("holder after a retry")
	later := change(store.Reschedule)
	later.At = b.clock.Now().Add(time.Hour)
	b.ok(b.change(newer, later))
	b.ok(b.amend(d.ID, store.RetryNow))
	d = b.take("a")
	held("holder after another claim")
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release}))
	held("holder after a release")
	b.take("a")
	b.clock.Advance(31 * time.Second)
	d = b.take("a")
	same(b, "abandoned", d.Abandoned, true)
	held("holder after a crash")
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	l := b.letterOf(d.ID)
	held("holder after a death")
	b.ok(b.resolve(l.ID, store.OnRedrive))
	held("holder after a redrive")
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Complete}))
	held("holder after a success")
}

// scopeQueuedMany claims many at once, some with keys and some without.
func scopeQueuedMany(b *fixture) {
	b.configure(nixie.QueueSettings{DedupeScope: nixie.DedupeQueued})
	key := func(i int) nixie.Option { return nixie.DedupeKey(fmt.Sprint("k", i)) }
	const n = 50
	for range 2 {
		var list []nixie.Message
		for i := range n {
			list = append(list, message("keyed", key(i)), message("plain"))
		}
		receipts, err := b.st.Enqueue(b.ctx, list...)
		b.ok(err)
		for i, r := range receipts {
			if r.Duplicate {
				b.Fatalf("message %d is a duplicate: its key was free", i)
			}
		}
		same(b, "claimed", len(b.claim(2*n)), 2*n)
		b.sound()
	}
}

// scopeQueuedMoved moves messages into a queue of this scope and out of it.
func scopeQueuedMoved(b *fixture) {
	const narrow = "narrow"
	b.ok(store.Configure(b.ctx, b.st, narrow, keeping(nixie.QueueSettings{DedupeScope: nixie.DedupeQueued}), "ann", "r"))
	enqueue := func(queue string, duplicate bool) {
		b.Helper()
		r, err := b.st.Enqueue(b.ctx, message("other", nixie.Queue(queue), nixie.DedupeKey("k"), nixie.Delay(time.Hour)))
		b.ok(err)
		same(b, "duplicate in "+queue, r[0].Duplicate, duplicate)
		if !duplicate {
			b.ok(b.amend(r[0].ID, store.Cancel))
		}
		b.sound()
	}
	move := func(id nixie.ID, queue string) {
		b.Helper()
		c := change(store.Move)
		c.Queue = queue
		b.ok(b.change(id, c))
	}
	d := b.took("a", nixie.DedupeKey("k"))
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry}))
	move(d.ID, narrow)
	enqueue(work, false)
	enqueue(narrow, false) // it was claimed before
	move(d.ID, work)
	enqueue(work, true)
	b.ok(b.amend(d.ID, store.Cancel))
	id := b.put("b", nixie.DedupeKey("k"))
	move(id, narrow)
	enqueue(narrow, true)
	enqueue(work, false)
}

// scopeQueuedLater changes to the scope and back: a claimed message keeps its key until its next
// claim, and what a claim freed stays free.
func scopeQueuedLater(b *fixture) {
	d := b.took("b", nixie.DedupeKey("l"))
	plain := b.put("a", nixie.DedupeKey("k"))
	b.configure(nixie.QueueSettings{DedupeScope: nixie.DedupeQueued})
	b.again(plain)
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release}))
	same(b, "claimed", len(b.claim(9)), 2)
	b.configure(nixie.QueueSettings{})
	b.sound()
	r, err := b.st.Enqueue(b.ctx, message("c", nixie.DedupeKey("k")), message("c", nixie.DedupeKey("l")))
	b.ok(err)
	same(b, "duplicates", r[0].Duplicate || r[1].Duplicate, false)
	b.sound()
}

func scopeUnresolved(b *fixture) {
	b.configure(nixie.QueueSettings{DedupeScope: nixie.DedupeUnresolved})
	l := b.dead("a", nixie.StatusOpen, nixie.DedupeKey("k"))
	id := l.Message.ID
	b.again(id)
	b.ok(b.resolve(l.ID, store.OnHold))
	b.again(id)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.again(id)
	b.ok(b.settle(b.dying(b.take("a"), nixie.StatusQuarantined)))
	b.again(id)
	b.ok(b.resolve(l.ID, store.OnDiscard))
	b.again(nixie.ID{})
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("other"), Verb: nixie.Complete}))

	l = b.dead("a", nixie.StatusOpen, nixie.DedupeKey("k"))
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Complete}))
	b.again(nixie.ID{})
}

func scopeEver(b *fixture) {
	b.configure(nixie.QueueSettings{DedupeScope: nixie.DedupeEver})
	d := b.took("a", nixie.DedupeKey("k"))
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	b.again(d.ID)
	l := b.dead("b", nixie.StatusOpen, nixie.DedupeKey("l"))
	b.ok(b.resolve(l.ID, store.OnDiscard))
	r, err := b.st.Enqueue(b.ctx, message("b", nixie.DedupeKey("l")))
	b.ok(err)
	same(b, "receipt", r[0], nixie.Receipt{ID: l.Message.ID, Duplicate: true})
}

// scopeChanges shows that held keys stay held until the message moves on, and that released keys
// stay free. The store finds no damage in either.
func scopeChanges(b *fixture) {
	b.configure(nixie.QueueSettings{DedupeScope: nixie.DedupeEver})
	done := b.took("a", nixie.DedupeKey("k"))
	b.ok(b.settle(nixie.Settlement{Delivery: done, Verb: nixie.Complete}))
	lies := b.dead("b", nixie.StatusOpen, nixie.DedupeKey("l"))
	for _, scope := range [...]nixie.DedupeScope{nixie.DedupeUnresolved, nixie.DedupeActive, ""} {
		b.configure(nixie.QueueSettings{DedupeScope: scope})
		b.again(done.ID)
		r, err := b.st.Enqueue(b.ctx, message("b", nixie.DedupeKey("l")))
		b.ok(err)
		same(b, "receipt", r[0], nixie.Receipt{ID: lies.Message.ID, Duplicate: true})
		b.sound()
	}
	b.ok(b.resolve(lies.ID, store.OnDiscard))
	r, err := b.st.Enqueue(b.ctx, message("b", nixie.DedupeKey("l")))
	b.ok(err)
	same(b, "the key is held after the discard", r[0].Duplicate, false)
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("b"), Verb: nixie.Complete}))

	freed := b.dead("c", nixie.StatusOpen, nixie.DedupeKey("m"))
	b.configure(nixie.QueueSettings{DedupeScope: nixie.DedupeEver})
	b.ok(b.resolve(freed.ID, store.OnDiscard))
	r, err = b.st.Enqueue(b.ctx, message("d", nixie.DedupeKey("m")))
	b.ok(err)
	same(b, "the released key is held", r[0].Duplicate, false)
	b.code(b.resolve(freed.ID, store.OnRestore), nixie.CodeConflict)
	b.sound()
}

func retryKeepsKey(b *fixture) {
	d := b.took("a", nixie.DedupeKey("k"))
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry}))
	b.again(d.ID)
	d = b.take("a")
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Release}))
	b.again(d.ID)
}

func cancelFreesKey(b *fixture) {
	id := b.put("a", nixie.DedupeKey("k"))
	b.ok(b.amend(id, store.Cancel))
	b.again(nixie.ID{})
	d := b.take("other")
	b.ok(b.amend(d.ID, store.Cancel))
	b.again(nixie.ID{})
}

func lateFinisherKeepsKey(b *fixture) {
	d := b.took("a", nixie.DedupeKey("k"))
	b.ok(b.amend(d.ID, store.Cancel))
	id := b.put("b", nixie.DedupeKey("k"))
	b.code(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}), nixie.CodeLeaseLost)
	b.again(id)
}

// B065: a job removed a key that it no longer held.
func lateFinisherOfLease(b *fixture) {
	late := b.took("a", nixie.DedupeKey("k"))
	b.clock.Advance(31 * time.Second)
	ds := b.claimBy(b.join(), 1)
	b.keys(ds, "a")
	b.complete(ds...)
	newer := b.put("b", nixie.DedupeKey("k"))
	b.code(b.settle(nixie.Settlement{Delivery: late, Verb: nixie.Complete}), nixie.CodeLeaseLost)
	b.again(newer)
}

// letterKeepsNewersKey discards the letter of a message that lost its key at its death, after a
// newer message took the key.
func letterKeepsNewersKey(b *fixture) {
	d := b.took("a", nixie.DedupeKey("k"))
	b.ok(b.settle(b.dying(d, nixie.StatusOpen)))
	newer := b.put("b", nixie.DedupeKey("k"))
	b.ok(b.resolve(b.letterOf(d.ID).ID, store.OnDiscard))
	b.again(newer)
}

func redriveTakesKey(b *fixture) {
	l := b.dead("a", nixie.StatusOpen, nixie.DedupeKey("k"))
	b.ok(b.resolve(l.ID, store.OnRedrive))
	b.again(l.Message.ID)
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Complete}))
	b.again(nixie.ID{})
}

func redriveOfTakenKey(b *fixture) {
	l := b.dead("a", nixie.StatusOpen, nixie.DedupeKey("k"))
	free := b.dead("b", nixie.StatusOpen)
	holder := b.put("c", nixie.DedupeKey("k"))
	b.unchanged(func() { b.code(b.resolve(l.ID, store.OnRedrive), nixie.CodeConflict) })
	errs := b.st.Resolve(b.ctx, []store.Resolution{
		{Letter: l.ID, Event: store.OnRedrive, Actor: "ann"}, {Letter: free.ID, Event: store.OnRedrive, Actor: "ann"},
	})
	b.code(errs[0], nixie.CodeConflict)
	b.ok(errs[1])
	b.again(holder)
}
