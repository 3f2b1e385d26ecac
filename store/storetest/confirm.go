package storetest

import (
	"fmt"
	"maps"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// confirmed shows a redrive to a broker that took the message: no worker gets the message here, and
// the item is done. It makes no difference whether the message was queued again before.
func confirmed(b *fixture) {
	for n, before := range [...]bool{true, false} {
		l := b.dead("a", nixie.StatusOpen)
		op := b.plan(store.OnRedrive, nixie.Filter{IDs: []nixie.ID{l.ID}}, 0)
		var list []store.Resolution
		own := op.ID
		if before {
			list, own = append(list, store.Resolution{Letter: l.ID, Event: store.OnRedrive, Actor: "ann", Reason: "fixed",
				Operation: own}), nixie.ID{}
		}
		b.clock.Advance(time.Second)
		for _, err := range b.st.Resolve(b.ctx, append(list,
			store.Resolution{Letter: l.ID, Event: store.OnConfirm, Actor: "ann", Reason: "fixed", Operation: own})) {
			b.ok(err)
		}
		same(b, "claimed", len(b.claim(10)), 0)
		got := b.letter(l.ID)
		same(b, "status", got.Status, nixie.StatusResolved)
		same(b, "resolved", got.ResolvedAt.Equal(b.clock.Now()), true)
		same(b, "state", got.Message.State, nixie.Canceled)
		same(b, "ended", got.Message.EndedAt.Equal(b.clock.Now()), true)
		same(b, "redrives", got.Message.Redrives, 1)
		same(b, "redriven", got.Message.RedrivenAt.Equal(b.clock.Now()), true)
		same(b, "generation", got.Message.Generation, 2)
		same(b, "attempts", got.Message.Attempts+got.Message.Deliveries+got.Message.Crashes, 0)
		same(b, "operation", got.Operation, op.ID)
		after, err := store.FindOperation(b.ctx, b.st, store.OperationQuery{ID: op.ID, Next: 10})
		b.ok(err)
		same(b, "done", after.Done, 1)
		same(b, "pending", len(after.Next), 0)
		counts, _, err := b.st.Count(b.ctx, nixie.Filter{Redrives: exactly(1), Attempts: exactly(0)},
			store.Counting{By: []store.GroupBy{store.ByStatus}, Scan: store.ScanAll})
		b.ok(err)
		same(b, "counted", store.Sizes(counts[0])["resolved"], int64(n+1))
		b.code(b.resolve(l.ID, store.OnConfirm), nixie.CodeConflict)
	}
}

func exactly(n int64) nixie.Range { return nixie.Range{Min: &n, Max: &n} }

// confirmedKeyAndStream shows that a message that a broker took blocks nothing: neither its key,
// which another message may hold by now, nor its stream.
func confirmedKeyAndStream(b *fixture) {
	for _, scope := range [...]nixie.DedupeScope{nixie.DedupeActive, nixie.DedupeUnresolved} {
		b.configure(nixie.QueueSettings{Order: nixie.OrderStrict, DedupeScope: scope})
		d := b.took("head", nixie.DedupeKey("k"), nixie.Stream("s"))
		b.ok(b.settle(b.dying(d, nixie.StatusReview)))
		b.put("follower", nixie.Stream("s"))
		same(b, "claimed behind the dead", len(b.claim(10)), 0)
		if scope == nixie.DedupeActive {
			b.put("holder", nixie.DedupeKey("k"))
			h := b.take("holder")
			b.ok(b.settle(nixie.Settlement{Delivery: h, Verb: nixie.Retry, Delay: time.Hour, Failure: b.failure(h, "later")}))
		}
		b.ok(b.resolve(b.letterOf(d.ID).ID, store.OnConfirm))
		b.ok(b.settle(nixie.Settlement{Delivery: b.take("follower"), Verb: nixie.Complete}))
		if scope == nixie.DedupeUnresolved {
			b.ok(b.settle(nixie.Settlement{Delivery: b.took("next", nixie.DedupeKey("k")), Verb: nixie.Complete}))
			return
		}
		b.clock.Advance(2 * time.Hour)
		b.ok(b.settle(nixie.Settlement{Delivery: b.take("holder"), Verb: nixie.Complete}))
	}
}

// confirmedMany confirms all letters of an operation in one call, of the same kind and of others.
// Each has the answer that it would have alone, and a repeat changes nothing.
func confirmedMany(b *fixture) {
	const letters = 30
	var ids []nixie.ID
	for i := range letters {
		var opts []nixie.Option
		status := nixie.StatusOpen
		switch i {
		case 3:
			opts = append(opts, nixie.DedupeKey("k"))
		case 4:
			opts = append(opts, nixie.Stream("s"))
		case 5:
			status = nixie.StatusReview
		}
		ids = append(ids, b.dead(fmt.Sprintf("%02d", i), status, opts...).ID)
	}
	op := b.plan(store.OnRedrive, nixie.Filter{}, 0)
	b.ok(b.resolve(ids[7], store.OnDiscard))
	var list []store.Resolution
	for i, id := range ids {
		r := store.Resolution{Letter: id, Event: store.OnConfirm, Actor: "ann", Reason: "fixed", Operation: op.ID}
		if i == 8 {
			r.Skip = "too large"
		}
		list = append(list, r)
	}
	list = append(list, store.Resolution{Letter: b.idOf("unknown"), Event: store.OnConfirm, Actor: "ann", Reason: "fixed",
		Operation: op.ID})
	for i, err := range b.st.Resolve(b.ctx, list) {
		switch i {
		case 7, 8:
			b.code(err, nixie.CodeConflict)
		case letters:
			b.code(err, nixie.CodeNotFound)
		default:
			b.ok(err)
			same(b, "operation", b.letter(ids[i]).Operation, op.ID)
			same(b, "redrives", b.letter(ids[i]).Message.Redrives, 1)
		}
	}
	got, next := b.operation(op.ID, 1)
	if got.Done != letters-2 || got.Skipped != 2 || len(next) > 0 {
		b.Errorf("operation is %+v", got)
	}
	counts, _, err := b.st.Count(b.ctx, nixie.Filter{}, store.Counting{By: []store.GroupBy{store.ByStatus}, Scan: store.ScanAll})
	b.ok(err)
	if want := map[string]int64{"resolved": letters - 2, "discarded": 1, "open": 1}; !maps.Equal(store.Sizes(counts[0]), want) {
		b.Errorf("%v; want %v", counts[0], want)
	}
	same(b, "claimed", len(b.claim(letters)), 0)
	entries, _, err := b.st.Audit(b.ctx, store.AuditFilter{Events: []store.Event{store.OnConfirm}}, store.Page{Limit: 2 * letters})
	b.ok(err)
	same(b, "entries of the audit", len(entries), letters-2)
	b.unchanged(func() {
		for _, err := range b.st.Resolve(b.ctx, list[:letters]) {
			b.code(err, nixie.CodeConflict)
		}
	})
}

// confirmedInOrder shows that many confirmations of one call are applied in its order. That holds
// also if some of them free a key and the store cannot apply them with the others.
func confirmedInOrder(b *fixture) {
	var list []store.Resolution
	for i := range 20 {
		var opts []nixie.Option
		if i%3 == 0 {
			opts = append(opts, nixie.DedupeKey(fmt.Sprint(i)))
		}
		list = append(list, store.Resolution{Letter: b.dead("a", nixie.StatusOpen, opts...).ID, Event: store.OnConfirm, Actor: "ann",
			Reason: "fixed"})
	}
	op := b.plan(store.OnRedrive, nixie.Filter{}, 0)
	for i := range list {
		list[i].Operation = op.ID
	}
	for _, err := range b.st.Resolve(b.ctx, list) {
		b.ok(err)
	}
	entries, err := allEntries(b.ctx, b.st, work)
	b.ok(err)
	for i, e := range entries[len(entries)-len(list):] {
		same(b, fmt.Sprintf("letter of entry %d", i), e.Subject, list[i].Letter)
	}
}
