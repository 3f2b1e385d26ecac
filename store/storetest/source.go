package storetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
)

// sourceClauses wait for work, for which a store may have abilities: see [store.Features].
func sourceClauses() []clause {
	return []clause{
		{"WaitsForWork", waitsForWork},
		{"WaitsForARetry", waitsForRetry},
		{"WaitsForOthers", waitsForOthers},
		{"WaitsForWhatBecomesDue", waitsForDue},
		{"WaitsForAnEndedLease", waitsForAnEndedLease},
		{"WaitsForAResume", waitsForAResume},
		{"WaitsInVain", waitsInVain},
		{"ManyWait", manyWait},
		{"TellsWhatWasCanceled", tellsCanceled},
	}
}

// patience is the longest wait of a clause for something that has to come.
const patience = time.Minute

type received struct {
	ds  []*nixie.Delivery
	err error
}

// receive waits for work in the background.
func (b *fixture) receive(ctx context.Context, n int) <-chan received {
	got := make(chan received, 1)
	go func() {
		ds, err := store.NewSource(b.st, work).Receive(ctx, nixie.Want{Max: n, Wait: patience, Lease: time.Minute})
		got <- received{ds, err}
	}()
	return got
}

func waitsForWork(b *fixture) {
	b.put("elsewhere", nixie.Queue("other"))
	got := b.receive(b.ctx, 10)
	id := b.put("a")
	r := <-got
	b.ok(r.err)
	b.keys(r.ds, "a")
	same(b, "lease", r.ds[0].Lease.Number, 1)
	same(b, "attempts", r.ds[0].Attempts, 1)
	same(b, "body", string(r.ds[0].Body), "body of a")
	b.keys(b.claim(10))
	b.ok(b.settle(nixie.Settlement{Delivery: r.ds[0], Verb: nixie.Complete}))
	b.state(id, nixie.Succeeded)
}

func waitsForRetry(b *fixture) {
	d := b.took("a")
	got := b.receive(b.ctx, 10)
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry, Failure: b.failure(d, "no")}))
	r := <-got
	b.ok(r.err)
	b.keys(r.ds, "a")
	same(b, "lease", r.ds[0].Lease.Number, 2)
	b.code(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}), nixie.CodeLeaseLost)
	b.ok(b.settle(nixie.Settlement{Delivery: r.ds[0], Verb: nixie.Complete}))
}

// idle receives in the background, and returns once a claim has found nothing.
func (b *fixture) idle(n int) <-chan received {
	b.keys(b.claim(n))
	return b.receive(b.ctx, n)
}

// waitsForOthers waits in one process for messages of another, in each kind of queue.
func waitsForOthers(b *fixture) {
	other := b.join()
	for _, order := range []nixie.Order{nixie.OrderNone, nixie.OrderStrict, nixie.OrderRelaxed} {
		b.configure(nixie.QueueSettings{Order: order})
		for _, m := range []nixie.Message{
			message("plain"), message("in a stream", nixie.Stream("s")), message("urgent", nixie.Priority(2)),
			message("once", nixie.DedupeKey("d")),
		} {
			got := b.idle(10)
			_, err := other.Enqueue(b.ctx, m)
			b.ok(err)
			r := <-got
			b.ok(r.err)
			b.keys(r.ds, m.Key)
			b.ok(b.settle(nixie.Settlement{Delivery: r.ds[0], Verb: nixie.Complete}))
		}
	}
}

// waitsForDue waits for a message that is due later and for a retry, in a stream and without one.
func waitsForDue(b *fixture) {
	b.configure(nixie.QueueSettings{Order: nixie.OrderStrict})
	for _, options := range [][]nixie.Option{nil, {nixie.Stream("s")}} {
		b.put("a", append(options, nixie.Delay(time.Hour))...)
		got := b.idle(10)
		b.clock.Advance(time.Hour)
		r := <-got
		b.ok(r.err)
		b.keys(r.ds, "a")
		b.ok(b.settle(nixie.Settlement{Delivery: r.ds[0], Verb: nixie.Retry, Delay: time.Hour, Failure: b.failure(r.ds[0], "no")}))
		got = b.idle(10)
		b.clock.Advance(time.Hour)
		r = <-got
		b.ok(r.err)
		b.keys(r.ds, "a")
		b.ok(b.settle(nixie.Settlement{Delivery: r.ds[0], Verb: nixie.Complete}))
	}
}

// waitsForAnEndedLease waits in one process for a lease of another to end.
func waitsForAnEndedLease(b *fixture) {
	for _, options := range [][]nixie.Option{nil, {nixie.Priority(1)}} {
		b.put("a", options...)
		b.take("a")
		got := make(chan received, 1)
		other := b.join()
		ds, err := other.Claim(b.ctx, work, nixie.Want{Max: 1, Lease: time.Minute})
		b.ok(err)
		b.keys(ds)
		go func() {
			ds, err := store.NewSource(other, work).Receive(b.ctx, nixie.Want{Max: 1, Wait: patience, Lease: time.Minute})
			got <- received{ds, err}
		}()
		b.clock.Advance(time.Hour)
		r := <-got
		b.ok(r.err)
		b.keys(r.ds, "a")
		same(b, "abandoned", r.ds[0].Abandoned, true)
		b.ok(other.Settle(b.ctx, []nixie.Settlement{{Delivery: r.ds[0], Verb: nixie.Complete}})[0])
	}
}

// waitsForAResume waits while the queue is paused, until another process resumes it.
func waitsForAResume(b *fixture) {
	b.configure(nixie.QueueSettings{Paused: true, PausedNote: "no work"})
	b.put("a")
	got := b.idle(10)
	b.ok(store.Configure(b.ctx, b.join(), work, nixie.QueueSettings{}, "ann", ""))
	r := <-got
	b.ok(r.err)
	b.keys(r.ds, "a")
}

// waitsInVain ends a wait by its time and by its context. No message is delivered to a caller that
// has left.
func waitsInVain(b *fixture) {
	b.configure(nixie.QueueSettings{Paused: true, PausedNote: "no work"})
	got, err := store.NewSource(b.st, work).Receive(b.ctx, nixie.Want{Max: 1, Wait: 2 * time.Millisecond})
	b.ok(err)
	b.keys(got)
	ctx, stop := context.WithCancel(b.ctx)
	waiting := b.receive(ctx, 1)
	b.put("a")
	stop()
	if r := <-waiting; r.err == nil || len(r.ds) > 0 {
		b.Fatalf("a wait that was stopped returned %d deliveries and error %v", len(r.ds), r.err)
	}
	b.configure(nixie.QueueSettings{})
	b.keys(b.claim(1), "a")
}

// manyWait lets several processes wait for messages that several bring, one at a time. Each message
// goes to one of them.
func manyWait(b *fixture) {
	const n = 8
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	var all sync.WaitGroup
	var mu sync.Mutex
	times := map[string]int{}
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				r := <-b.receive(ctx, 1)
				mu.Lock()
				for _, d := range r.ds {
					times[d.Key]++
				}
				if len(times) == n {
					stop()
				}
				mu.Unlock()
			}
		})
	}
	for i := range n {
		all.Go(func() {
			if _, err := b.st.Enqueue(b.ctx, message(fmt.Sprint(i))); err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
	for key, n := range times {
		same(b, "deliveries of "+key, n, 1)
	}
}

// tellsCanceled asks for messages that run, ended, do not exist, or were canceled, also after a
// redrive.
func tellsCanceled(b *fixture) {
	runs, done, canceled := b.took("runs"), b.took("done"), b.took("canceled")
	b.ok(b.settle(nixie.Settlement{Delivery: done, Verb: nixie.Complete}))
	l := b.dead("again", nixie.StatusOpen)
	b.ok(b.resolve(l.ID, store.OnRedrive))
	again := b.take("again")
	src := store.NewSource(b.st, work)
	ask := func() map[nixie.ID]lease.Cancel {
		got, err := src.Canceled(b.ctx, []nixie.ID{runs.ID, canceled.ID, done.ID, again.ID, {1}})
		b.ok(err)
		return got
	}
	same(b, "canceled before", len(ask()), 0)
	b.ok(b.amend(canceled.ID, store.Cancel))
	b.ok(b.amend(again.ID, store.Cancel))
	got := ask()
	same(b, "canceled", len(got), 2)
	for _, d := range []*nixie.Delivery{canceled, again} {
		same(b, "cancel of "+d.Key, got[d.ID], lease.Cancel{By: "ann", Reason: "because"})
		b.code(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}), nixie.CodeLeaseLost)
	}
	none, err := src.Canceled(b.ctx, nil)
	b.ok(err)
	same(b, "canceled of none", len(none), 0)
}
