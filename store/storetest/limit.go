package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func limitClauses() []clause {
	return []clause{
		{"MessagesOfACall", messagesOfACall},
		{"PartsOfOtherCalls", partsOfCalls},
		{"BodySize", bodySize},
		{"BytesOfACall", bytesOfACall},
		{"BytesOfAClaim", bytesOfAClaim},
		{"AnEndedContextDoesNothing", endedContext},
		{"AClosedStoreIsUnavailable", closedStore},
		{"CloseTwice", closeTwice},
		{"WakeTellsOfDueWork", wakeTells},
	}
}

func messagesOfACall(b *fixture) {
	ms := slices.Repeat([]nixie.Message{message("a")}, nixie.MaxBatch+1)
	b.unchanged(func() {
		_, err := b.st.Enqueue(b.ctx, ms...)
		b.code(err, nixie.CodeLimit)
	})
	receipts, err := b.st.Enqueue(b.ctx, ms[:nixie.MaxBatch]...)
	b.ok(err)
	same(b, "receipts", len(receipts), nixie.MaxBatch)
	ds := b.claim(nixie.MaxBatch)
	same(b, "claimed", len(ds), nixie.MaxBatch)
	var ss []nixie.Settlement
	for _, d := range ds {
		ss = append(ss, nixie.Settlement{Delivery: d, Verb: nixie.Complete})
	}
	for _, err := range b.st.Settle(b.ctx, ss) {
		b.ok(err)
	}
	same(b, "succeeded", b.info().Succeeded, nixie.MaxBatch)
}

func partsOfCalls(b *fixture) {
	const over = nixie.MaxBatch + 1
	d := b.took("a")
	l := b.dead("b", nixie.StatusOpen)
	b.unchanged(func() {
		all := func(errs []error) {
			b.Helper()
			same(b, "answers", len(errs), over)
			for _, err := range errs {
				b.code(err, nixie.CodeLimit)
			}
		}
		all(b.st.Settle(b.ctx, slices.Repeat([]nixie.Settlement{{Delivery: d, Verb: nixie.Complete}}, over)))
		all(b.st.Extend(b.ctx, slices.Repeat([]*nixie.Delivery{d}, over), time.Minute))
		all(b.st.Amend(b.ctx, slices.Repeat([]nixie.ID{d.ID}, over), change(store.Cancel)))
		all(b.st.Resolve(b.ctx, slices.Repeat([]store.Resolution{{Letter: l.ID, Event: store.OnHold, Actor: "ann"}}, over)))
	})
}

func bodySize(b *fixture) {
	body := make([]byte, nixie.MaxBody+1)
	for _, size := range []int{0, nixie.MaxBody - 1, nixie.MaxBody} {
		b.put("a", func(m *nixie.Message) { m.Body = body[:size] })
		d := b.take("a")
		same(b, "size of the body", len(d.Body), size)
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	}
	b.unchanged(func() {
		_, err := b.st.Enqueue(b.ctx, message("a", func(m *nixie.Message) { m.Body = body }))
		b.code(err, nixie.CodeLimit)
	})
}

func bytesOfACall(b *fixture) {
	big := message("big", func(m *nixie.Message) { m.Body = make([]byte, nixie.MaxBody) })
	n := nixie.MaxBatchBytes / nixie.MaxBody
	b.unchanged(func() {
		_, err := b.st.Enqueue(b.ctx, append(slices.Repeat([]nixie.Message{big}, n), message("one"))...)
		b.code(err, nixie.CodeLimit)
	})
}

// bytesOfAClaim claims more bodies than one call may carry, each in a stream of its own: new
// messages, and suspects together with new ones.
func bytesOfAClaim(b *fixture) {
	const fit = nixie.MaxBatchBytes / nixie.MaxBody
	body := make([]byte, nixie.MaxBody)
	b.ordered(nixie.OrderStrict, "")
	for _, tried := range []int{0, 2} {
		for i := range fit + 1 {
			key := fmt.Sprintf("m%d", i)
			b.put(key, nixie.Stream(key), func(m *nixie.Message) { m.Body = body })
			if i < tried {
				b.retry(b.take(key), time.Hour)
			}
		}
		b.clock.Advance(time.Hour)
		same(b, "messages of a claim", len(b.claim(fit+1)), fit)
		same(b, "messages of the next claim", len(b.claim(fit+1)), 1)
		b.empty()
	}
}

// calls tries every method with a context and collects the errors.
func calls(ctx context.Context, st store.Store, d *nixie.Delivery, l nixie.ID) []error {
	var errs []error
	add := func(err error) { errs = append(errs, err) }
	_, err := st.Enqueue(ctx, message("x"))
	add(err)
	_, err = st.Claim(ctx, work, nixie.Want{Max: 1})
	add(err)
	errs = append(errs, st.Extend(ctx, []*nixie.Delivery{d}, time.Minute)...)
	errs = append(errs, st.Settle(ctx, []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})...)
	errs = append(errs, st.Amend(ctx, []nixie.ID{d.ID}, change(store.Cancel))...)
	errs = append(errs, st.Resolve(ctx, []store.Resolution{{Letter: l, Event: store.OnHold, Actor: "ann"}})...)
	_, err = st.Queues(ctx, store.QueueQuery{Names: []string{work}, Settings: true})
	add(err)
	_, _, err = st.Letters(ctx, nixie.Filter{}, store.Page{})
	add(err)
	_, _, err = st.Count(ctx, nixie.Filter{}, store.Counting{By: []store.GroupBy{store.ByReason}, Scan: store.ScanAll, Described: true})
	add(err)
	_, err = st.Plan(ctx, store.Operation{Event: store.OnRedrive, Actor: "ann"}, nixie.Filter{}, 0)
	add(err)
	_, err = store.FindOperation(ctx, st, store.OperationQuery{ID: l, Next: 1})
	add(err)
	_, _, err = st.Audit(ctx, store.AuditFilter{Chain: work}, store.Page{})
	add(err)
	_, err = st.Queues(ctx, store.QueueQuery{})
	add(err)
	_, _, err = st.Messages(ctx, nixie.Filter{}, store.Page{})
	add(err)
	add(store.Configure(ctx, st, work, nixie.QueueSettings{}, "ann", ""))
	_, err = st.Features().Check(ctx)
	add(err)
	_, err = st.Queues(ctx, store.QueueQuery{Brief: true})
	add(err)
	if ping := st.Features().Ping; ping != nil {
		_, _, err = ping(ctx)
		add(err)
	}
	return errs
}

func endedContext(b *fixture) {
	l := b.dead("dead", nixie.StatusOpen)
	d := b.took("a")
	b.put("b")
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	b.unchanged(func() {
		for i, err := range calls(ctx, b.st, d, l.ID) {
			if code := nixie.CodeOf(err); code != nixie.CodeUnavailable && code != nixie.CodeOutcomeUnknown {
				b.Fatalf("call %d with an ended context: error is %v", i, err)
			}
		}
	})
}

func closedStore(b *fixture) {
	l := b.dead("dead", nixie.StatusOpen)
	other := b.join()
	b.put("a")
	d := b.claimBy(other, 1)[0]
	b.ok(other.Close())
	for i, err := range calls(b.ctx, other, d, l.ID) {
		if nixie.CodeOf(err) != nixie.CodeUnavailable || !errors.Is(err, nixie.ErrClosed) {
			b.Fatalf("call %d on a closed store: error is %v, want ErrClosed and unavailable", i, err)
		}
	}
	b.keys(b.claim(1), "a")
}

func closeTwice(b *fixture) {
	other := b.join()
	b.ok(other.Close())
	b.ok(other.Close())
}

func wakeTells(b *fixture) {
	wake := b.st.Features().Wake
	if wake == nil {
		b.Skip("the store has no Wake")
	}
	rang := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	c := wake(work)
	b.put("x", nixie.Queue("other"))
	same(b, "woken by another queue", rang(c), false)
	b.put("a")
	same(b, "woken by an enqueue", rang(c), true)
	c = wake(work)
	same(b, "woken at once", rang(c), false)
	b.ok(b.settle(nixie.Settlement{Delivery: b.take("a"), Verb: nixie.Retry}))
	same(b, "woken by a retry that is due", rang(c), true)
}
