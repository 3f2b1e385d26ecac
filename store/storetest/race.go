package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// raceClauses make many calls at once, in several processes. Any goroutine may call, so they report
// with Error and go on.
func raceClauses() []clause {
	return []clause{
		{"B007_ManyClaimersOfDueJobs", claimersOfDue},
		{"B008_TwoSweepers", twoSweepers},
		{"B011_EndedTwice", endedTwice},
		{"B034_CloseDuringCalls", closeDuringCalls},
		{"B042_CallersThatLeave", callersThatLeave},
		{"B062_ProducersOfOneKey", producersOfOneKey},
	}
}

// together runs n calls at once.
func together(n int, call func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { call(i) })
	}
	all.Wait()
}

// crowd joins n more processes.
func (b *fixture) crowd(n int) []store.Store {
	list := make([]store.Store, n)
	for i := range list {
		list[i] = b.join()
	}
	return list
}

// B007: one scheduled task was taken by several workers.
func claimersOfDue(b *fixture) {
	const rounds, messages, claimers = 6, 80, 32
	list := b.crowd(4)
	for round := range rounds {
		ms := make([]nixie.Message, messages)
		for i := range ms { // delayed, urgent and ordinary messages
			ms[i] = nixie.Message{Queue: work, Key: fmt.Sprint(round, "/", i), Delay: time.Duration(i%2) * time.Second, Priority: i % 3}
		}
		_, err := b.st.Enqueue(b.ctx, ms...)
		b.ok(err)
		b.clock.Advance(2 * time.Second)
		var mu sync.Mutex
		holders := map[string]int{}
		together(claimers, func(i int) {
			for n := 1; n > 0; {
				ds, err := list[i%len(list)].Claim(b.ctx, work, nixie.Want{Max: 3, Lease: time.Hour})
				if err != nil {
					b.Error(err)
				}
				n = len(ds)
				mu.Lock()
				for _, d := range ds {
					holders[d.Key]++
					if d.Deliveries != 1 || d.Lease.Number != 1 {
						b.Errorf("message %s has %d deliveries and lease %d", d.Key, d.Deliveries, d.Lease.Number)
					}
				}
				mu.Unlock()
			}
		})
		same(b, "messages that were claimed", len(holders), messages)
		for key, n := range holders {
			same(b, "holders of "+key, n, 1)
		}
	}
}

// B008: two recoverers listed the same expired lease. Here many processes see leases that are over,
// by time or because their holder died, and one of them counts each.
func twoSweepers(b *fixture) {
	const messages = 60
	list := b.crowd(4)
	for _, order := range []nixie.Order{nixie.OrderNone, nixie.OrderStrict} {
		for _, crash := range []bool{false, true} {
			queue := fmt.Sprint("crash-", crash, "-", order)
			b.ok(store.Configure(b.ctx, b.st, queue, nixie.QueueSettings{Order: order}, "ann", "test"))
			ms := make([]nixie.Message, messages)
			for i := range ms {
				ms[i] = nixie.Message{Queue: queue, Key: fmt.Sprint(i), Stream: fmt.Sprint("s", i)}
			}
			_, err := b.st.Enqueue(b.ctx, ms...)
			b.ok(err)
			holder := b.join()
			ds, err := holder.Claim(b.ctx, queue, nixie.Want{Max: messages, Lease: time.Minute})
			b.ok(err)
			same(b, "claimed", len(ds), messages)
			if crash {
				b.shared.Crash(holder)
			} else {
				b.clock.Advance(time.Minute)
			}
			together(20, func(i int) {
				if _, err := list[i%len(list)].Claim(b.ctx, "nothing", nixie.Want{Max: 1}); err != nil {
					b.Error(err)
				}
			})
			records, err := allMessages(b.ctx, b.st, nixie.Filter{Queues: []string{queue}})
			b.ok(err)
			same(b, "messages", len(records), messages)
			for _, r := range records {
				same(b, "state of "+r.Key+" in "+queue, r.State, nixie.Queued)
				same(b, "crashes of "+r.Key+" in "+queue, r.Crashes, 1)
			}
		}
	}
}

// B011: a job was both finished and failed.
func endedTwice(b *fixture) {
	list := b.crowd(2)
	for priority := range 2 { // a member of a batch, and a message with a row of its own
		d := b.took(fmt.Sprint(priority), nixie.Priority(priority))
		var ended atomic.Int64
		together(20, func(i int) {
			st := list[i%len(list)]
			var err error
			if i%3 == 0 {
				err = st.Amend(b.ctx, []nixie.ID{d.ID}, change(store.Cancel))[0]
			} else {
				verb := [...]nixie.Verb{nixie.Complete, nixie.Discard}[i/2%2]
				err = st.Settle(b.ctx, []nixie.Settlement{{Delivery: d, Verb: verb}})[0]
			}
			if err == nil {
				ended.Add(1)
			}
		})
		same(b, "actors who ended the message", ended.Load(), 1)
	}
}

// B034: a close did not wait for fetched messages. Here a close serves or refuses each call, hangs
// in none, and leaves no lease behind.
func closeDuringCalls(b *fixture) {
	const rounds, callers = 5, 12
	for round := range rounds {
		b.fill(100, 100)
		st := b.join()
		busy := make(chan bool, 64)
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				for err := error(nil); nixie.CodeOf(err) != nixie.CodeUnavailable; {
					if err = anyCall(b.ctx, st, i%4); err != nil && nixie.CodeOf(err) != nixie.CodeUnavailable {
						b.Error(err)
						return
					}
					select {
					case busy <- true:
					default:
					}
				}
			})
		}
		for range 20 + round*5 {
			<-busy
		}
		together(2, func(int) {
			if err := st.Close(); err != nil {
				b.Error(err)
			}
		})
		all.Wait()
		_, err := b.st.Claim(b.ctx, "nothing", nixie.Want{Max: 1}) // a claim ends the leases that were left
		b.ok(err)
		same(b, "leased after the end of their holder", b.info().Leased, 0)
	}
}

// anyCall makes one of four kinds of calls.
func anyCall(ctx context.Context, st store.Store, kind int) error {
	switch kind {
	case 0:
		_, err := st.Enqueue(ctx, nixie.Message{Queue: work})
		return err
	case 1:
		_, err := st.Queues(ctx, store.QueueQuery{})
		return err
	case 2:
		_, _, err := st.Messages(ctx, nixie.Filter{}, store.Page{})
		return err
	}
	ds, err := st.Claim(ctx, work, nixie.Want{Max: 2})
	for _, d := range ds {
		if err := st.Settle(ctx, []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0]; err != nil {
			return err
		}
	}
	return err
}

// B042: a context that ended inside a transaction left a broken connection for other callers. Here
// callers leave at every moment. An unknown outcome is one of the two, and the store is used a
// thousand times afterwards.
func callersThatLeave(b *fixture) {
	const callers, uses = 300, 1000
	together(callers, func(i int) {
		ctx, leave := context.WithTimeout(b.ctx, time.Duration(i*i)*500*time.Nanosecond) // up to 45 ms, most of them soon
		defer leave()
		body := []byte("body")
		_, err := b.st.Enqueue(ctx, nixie.Message{Queue: work, Key: fmt.Sprint(i), Body: body})
		copy(body, "mine") // the body belongs to the caller again
		if c := nixie.CodeOf(err); c != "" && c != nixie.CodeOutcomeUnknown && c != nixie.CodeUnavailable {
			b.Error(err)
		}
		ds, err := b.st.Claim(ctx, work, nixie.Want{Max: 1, Lease: time.Hour})
		if c := nixie.CodeOf(err); c == nixie.CodeOutcomeUnknown {
			b.Error("a claim that no caller has")
		}
		for _, d := range ds {
			if string(d.Body) != "body" {
				b.Errorf("the body of message %s is %q", d.Key, d.Body)
			}
			answer := b.st.Settle(ctx, []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})
			was := nixie.CodeOf(answer[0])
			ms, _, err := b.st.Messages(b.ctx, nixie.Filter{IDs: []nixie.ID{d.ID}}, store.Page{})
			if err != nil || len(ms) != 1 || ms[0].Key != d.Key {
				b.Errorf("of message %s there are %v, %v", d.Key, ms, err)
				return
			}
			if done := ms[0].State == nixie.Succeeded; was == "" && !done || was == nixie.CodeUnavailable && done {
				b.Errorf("settling said %q, the message is %s", was, ms[0].State)
			}
			if nixie.CodeOf(answer[0]) != was {
				b.Errorf("an answer changed from %q to %v after it was given", was, answer[0])
			}
		}
	})
	for i := range uses {
		key := fmt.Sprint(i)
		_, err := b.st.Enqueue(b.ctx, nixie.Message{Queue: "after", Key: key})
		b.ok(err)
		ds, err := b.st.Claim(b.ctx, "after", nixie.Want{Max: 1})
		b.ok(err)
		b.keys(ds, key)
		b.complete(ds...)
	}
}

// B062: a refused insert returned neither a reason nor a job. Here many producers offer one key at
// once. One of them makes a message; the others get its ID, whether they are refused or not.
func producersOfOneKey(b *fixture) {
	const rounds, producers = 20, 32
	list := b.crowd(2)
	for round := range rounds {
		var made atomic.Int64
		told := make([]nixie.ID, producers)
		together(producers, func(i int) {
			m := nixie.Message{Queue: work, DedupeKey: fmt.Sprint(round)}
			if i%4 < 2 {
				m.OnConflict = nixie.FailOnConflict
			}
			receipts, err := list[i%len(list)].Enqueue(b.ctx, m)
			var taken *nixie.DuplicateError
			switch {
			case errors.As(err, &taken):
				told[i] = taken.Existing
			case err != nil:
				b.Error(err)
			default:
				told[i] = receipts[0].ID
				if !receipts[0].Duplicate {
					made.Add(1)
				}
			}
		})
		same(b, "producers who made a message", made.Load(), 1)
		slices.SortFunc(told, func(x, y nixie.ID) int { return bytes.Compare(x[:], y[:]) })
		if told = slices.Compact(told); len(told) != 1 || told[0].IsZero() {
			b.Fatalf("round %d: the holders are %v", round, told)
		}
	}
}
