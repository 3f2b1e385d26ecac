package storetest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

func claimClauses() []clause {
	return []clause{
		{"AnImpossibleQueueIsInvalid", impossibleQueue},
		{"NewMessagesByPosition", newByPosition},
		{"ByPriorityThenDueThenPosition", byPriority},
		{"ByDueRank", byDueRank},
		{"PriorityAges", priorityAges},
		{"PriorityWithoutAge", priorityWithoutAge},
		{"RetriesDoNotStarveOneAtATime", retriesDoNotStarve},
		{"NewMessagesDoNotStarveOneAtATime", newDoNotStarve},
		{"AtMostMax", atMostMax},
		{"QueuesAreSeparate", queuesAreSeparate},
		{"AnUnknownQueueHandsOutNothing", unknownQueue},
		{"APausedQueueHandsOutNothing", pausedQueue},
		{"EachClaimCounts", eachClaimCounts},
		{"LeaseOfWantQueueOrDefault", leaseLength},
		{"LeaseBounds", leaseBounds},
		{"ShownWhileLeased", shownWhileLeased},
		{"R11_NoTwoHolders", noTwoHolders},
	}
}

func newByPosition(b *fixture) {
	for i := range 5 {
		b.put(fmt.Sprint(i))
		b.clock.Advance(time.Second)
	}
	b.keys(b.claim(3), "0", "1", "2")
	b.keys(b.claim(3), "3", "4")
	b.keys(b.claim(3))
}

func byPriority(b *fixture) {
	b.put("low", nixie.Priority(-1))
	b.put("later", nixie.Priority(2), nixie.Delay(2*time.Second))
	b.put("sooner", nixie.Priority(2), nixie.Delay(time.Second))
	b.put("zero", nixie.Delay(time.Second))
	b.put("zero too", nixie.Delay(time.Second))
	b.put("high", nixie.Priority(4))
	b.put("not due", nixie.Priority(4), nixie.Delay(time.Minute))
	b.clock.Advance(2 * time.Second)
	b.keys(b.claim(20), "high", "sooner", "later", "zero", "zero too", "low")
}

// retried makes n messages that were retried and are due.
func (b *fixture) retried(n int) {
	b.Helper()
	for i := range n {
		b.put(fmt.Sprintf("retry-%d", i))
	}
	for _, d := range b.claim(n) {
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry}))
	}
}

// byDueRank mixes retries, new messages and scheduled messages.
func byDueRank(b *fixture) {
	b.retried(2)
	b.clock.Advance(time.Second)
	b.put("new-0")
	b.put("later", nixie.Delay(2*time.Second))
	b.clock.Advance(time.Second)
	b.put("new-1")
	b.put("urgent", nixie.Priority(1))
	b.put("idle", nixie.Priority(-1))
	b.clock.Advance(2 * time.Second)
	b.put("new-2")
	b.keys(b.claim(3), "urgent", "retry-0", "retry-1")
	b.keys(b.claim(2), "new-0", "new-1")
	b.keys(b.claim(9), "later", "new-2", "idle")
}

// priorityAges shows that a message that has waited one priority age comes before a new message of
// the next higher priority.
func priorityAges(b *fixture) {
	b.configure(nixie.QueueSettings{PriorityAge: time.Minute})
	b.put("low", nixie.Priority(-1))
	b.put("zero")
	b.clock.Advance(time.Minute - time.Second)
	b.put("high", nixie.Priority(1))
	b.put("zero too")
	b.clock.Advance(2 * time.Second)
	b.put("high too", nixie.Priority(1))
	b.put("zero three")
	b.keys(b.claim(9), "high", "zero", "high too", "zero too", "low", "zero three")
}

func priorityWithoutAge(b *fixture) {
	b.configure(nixie.QueueSettings{PriorityAge: -1})
	b.put("low", nixie.Priority(-4))
	b.put("zero")
	b.clock.Advance(10_000 * time.Hour)
	b.put("high", nixie.Priority(1))
	b.put("zero too")
	b.keys(b.claim(9), "high", "zero", "zero too", "low")
}

// retriesDoNotStarve claims one message at a time while new messages keep coming. A due retry has
// to come within a bounded number of claims.
func retriesDoNotStarve(b *fixture) {
	b.retried(1)
	for i := range 20 {
		b.clock.Advance(time.Second)
		b.put(fmt.Sprintf("new-%d", i))
		b.put(fmt.Sprintf("more-%d", i))
		ds := b.claim(1)
		same(b, "claimed", len(ds), 1)
		if ds[0].Key == "retry-0" {
			return
		}
	}
	b.Fatal("a due retry waited for 20 claims of one message while new messages kept coming")
}

// newDoNotStarve keeps failing messages due. New messages still come within a bounded number of
// claims.
func newDoNotStarve(b *fixture) {
	b.retried(3)
	b.put("new")
	for range 20 {
		b.clock.Advance(time.Second)
		ds := b.claim(1)
		same(b, "claimed", len(ds), 1)
		if ds[0].Key == "new" {
			return
		}
		b.ok(b.settle(nixie.Settlement{Delivery: ds[0], Verb: nixie.Retry}))
	}
	b.Fatal("a new message waited for 20 claims of one message while retries kept coming")
}

func atMostMax(b *fixture) {
	var ms []nixie.Message
	for i := range 100 {
		ms = append(ms, message(fmt.Sprint(i)))
	}
	_, err := b.st.Enqueue(b.ctx, ms...)
	b.ok(err)
	for _, n := range []int{1, 2, 7, 64} {
		same(b, "claimed", len(b.claim(n)), n)
	}
	same(b, "claimed of the rest", len(b.claim(1000)), 26)
}

func queuesAreSeparate(b *fixture) {
	b.put("a")
	b.put("b", nixie.Queue("other"))
	b.keys(b.claim(9), "a")
	ds, err := b.st.Claim(b.ctx, "other", nixie.Want{Max: 9})
	b.ok(err)
	b.keys(ds, "b")
	same(b, "queue", ds[0].Queue, "other")
}

func unknownQueue(b *fixture) {
	ds, err := b.st.Claim(b.ctx, "unknown", nixie.Want{Max: 9})
	b.ok(err)
	b.keys(ds)
	infos, err := b.st.Queues(b.ctx, store.QueueQuery{})
	b.ok(err)
	same(b, "queues", len(infos), 0)
}

func pausedQueue(b *fixture) {
	b.put("new")
	b.put("urgent", nixie.Priority(1))
	b.configure(nixie.QueueSettings{Paused: true, PausedNote: "ann: maintenance"})
	b.keys(b.claim(9))
	b.put("later")
	info := b.info()
	if info.Ready != 3 || !info.Settings.Paused || info.Settings.PausedNote != "ann: maintenance" {
		b.Fatalf("paused queue is %+v", info)
	}
	b.configure(nixie.QueueSettings{})
	b.keys(b.claim(9), "urgent", "new", "later")
}

func eachClaimCounts(b *fixture) {
	began := b.clock.Now()
	b.put("a")
	for i := 1; i <= 4; i++ {
		d := b.take("a")
		if d.Attempts != i || d.Deliveries != i || d.Crashes != 0 || d.Lease.Number != int64(i) || d.Abandoned ||
			!d.FirstReceivedAt.Equal(began) {
			b.Fatalf("claim %d: %+v, lease %d", i, d.Message, d.Lease.Number)
		}
		same(b, "owner", d.Lease.Owner, "owner-1")
		if want := b.clock.Now().Add(30 * time.Second); !d.Lease.ExpiresAt.Equal(want) {
			b.Fatalf("lease ends at %s, want %s", d.Lease.ExpiresAt, want)
		}
		b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Retry}))
		b.clock.Advance(time.Second)
	}
}

func leaseLength(b *fixture) {
	length := func(key string, want nixie.Want) time.Duration {
		b.put(key)
		ds, err := b.st.Claim(b.ctx, work, want)
		b.ok(err)
		b.keys(ds, key)
		return ds[0].Lease.ExpiresAt.Sub(b.clock.Now())
	}
	same(b, "default lease", length("a", nixie.Want{Max: 1}), nixie.DefaultLease)
	b.configure(nixie.QueueSettings{Lease: time.Minute})
	same(b, "lease of the queue", length("b", nixie.Want{Max: 1}), time.Minute)
	same(b, "wanted lease", length("c", nixie.Want{Max: 1, Lease: time.Second}), time.Second)
}

func leaseBounds(b *fixture) {
	b.put("a")
	b.unchanged(func() {
		for _, lease := range []time.Duration{-1, nixie.MinLease - 1, nixie.MaxLease + 1} {
			_, err := b.st.Claim(b.ctx, work, nixie.Want{Max: 1, Lease: lease})
			b.code(err, nixie.CodeInvalid)
		}
	})
	ds, err := b.st.Claim(b.ctx, work, nixie.Want{Max: 1, Lease: nixie.MaxLease})
	b.ok(err)
	b.unchanged(func() {
		for _, lease := range []time.Duration{-1, nixie.MinLease - 1, nixie.MaxLease + 1} {
			b.code(b.st.Extend(b.ctx, ds, lease)[0], nixie.CodeInvalid)
		}
	})
	b.ok(b.st.Extend(b.ctx, ds, nixie.MinLease)[0])
}

func shownWhileLeased(b *fixture) {
	d := b.took("a")
	m := b.record(d.ID)
	same(b, "state", m.State, nixie.Leased)
	same(b, "owner", m.LeaseOwner, "owner-1")
	if !m.LeaseExpiresAt.Equal(d.Lease.ExpiresAt) {
		b.Fatalf("lease is shown to end at %s, want %s", m.LeaseExpiresAt, d.Lease.ExpiresAt)
	}
	b.ok(b.settle(nixie.Settlement{Delivery: d, Verb: nixie.Complete}))
	m = b.record(d.ID)
	same(b, "owner after the end", m.LeaseOwner, "")
	if !m.EndedAt.Equal(b.clock.Now()) {
		b.Fatalf("ended at %s, want %s", m.EndedAt, b.clock.Now())
	}
}

// noTwoHolders lets four processes claim and complete at once. Every message has one holder, once.
func noTwoHolders(b *fixture) {
	const total, processes = 400, 4
	var ms []nixie.Message
	for i := range total {
		ms = append(ms, message(fmt.Sprint(i), nixie.Priority(i%3)))
	}
	_, err := b.st.Enqueue(b.ctx, ms...)
	b.ok(err)
	var mu sync.Mutex
	held := map[nixie.ID]int{}
	var wg sync.WaitGroup
	for p := range processes {
		st := b.join()
		wg.Go(func() {
			if err := drain(b, st, 1+p*5, func(ds []*nixie.Delivery) {
				mu.Lock()
				defer mu.Unlock()
				for _, d := range ds {
					held[d.ID]++
				}
			}); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	same(b, "messages held", len(held), total)
	for id, n := range held {
		if n != 1 {
			b.Errorf("message %s was held %d times", id, n)
		}
	}
	same(b, "succeeded", b.info().Succeeded, total)
}

// drain claims and completes until the queue is empty.
func drain(b *fixture, st store.Store, batch int, seen func([]*nixie.Delivery)) error {
	for {
		ds, err := st.Claim(b.ctx, work, nixie.Want{Max: batch})
		if err != nil || len(ds) == 0 {
			return err
		}
		seen(ds)
		settlements := make([]nixie.Settlement, 0, len(ds))
		for _, d := range ds {
			settlements = append(settlements, nixie.Settlement{Delivery: d, Verb: nixie.Complete})
		}
		for _, err := range st.Settle(b.ctx, settlements) {
			if err != nil {
				return err
			}
		}
	}
}

// impossibleQueue refuses a queue name that no message can have, before the store is asked.
func impossibleQueue(b *fixture) {
	for _, name := range []string{"a\x00b", "\xff", strings.Repeat("x", nixie.MaxName+1)} {
		_, err := b.st.Claim(b.ctx, name, nixie.Want{Max: 1})
		b.code(err, nixie.CodeInvalid)
	}
}
