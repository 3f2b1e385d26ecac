//go:build unix

package sqlite_test

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// Messages in the store that no worker can handle. A quick run has fewest of them.
const (
	followers = 100_000
	scheduled = 1_000_000
	fewest    = 10 // a tenth
)

// mostBurden is by how much the drain of other queues and streams may be slower
// next to it.
const mostBurden = 1.10

// TestShow4BurdenCostsOthersNothing drains other queues and other streams of the
// same queue on an empty store and on one that carries a blocked stream with
// 100,000 followers and 1,000,000 scheduled messages, in rounds, and compares the
// processor time of both.
//
// Rounds are short and begin with the other side each time: what other programs of the machine do
// to its caches meets both alike, and the median of the rounds counts.
func TestShow4BurdenCostsOthersNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("loads many messages")
	}
	proof.Run(t, "burden-sqlite", func(t *testing.T, _ uint64) int {
		part := 1
		if proof.Current() < proof.Long {
			part = fewest
		}
		compareBurdened(t, followers/part, scheduled/part, proof.Count("burden-sqlite"))
		return proof.Count("burden-sqlite")
	})
}

func compareBurdened(t *testing.T, followers, scheduled, rounds int) {
	t.Helper()
	free, burdened := open(t, "", sqlite.Options{}), open(t, "", sqlite.Options{})
	for _, s := range []*sqlite.Store{free, burdened} {
		must(t, store.Configure(t.Context(), s, "orders", nixie.QueueSettings{Order: nixie.OrderStrict}, "ann", "test"))
		fill(t, s, "plain", 1) // queues lie in the order in which they were made: the same in both
		fill(t, s, "later", 1)
		drainAll(t, s, "plain")
		drainAll(t, s, "later")
	}
	burden(t, burdened, followers, scheduled)
	for _, c := range []struct {
		name  string
		fill  func(testing.TB, *sqlite.Store)
		queue string
		count int
	}{
		{"another queue", func(t testing.TB, s *sqlite.Store) { fill(t, s, "plain", 5_000) }, "plain", 5_000},
		{"other streams of the queue", fillStreams, "orders", 1_000},
		{"the queue of the scheduled ones", func(t testing.TB, s *sqlite.Store) { fill(t, s, "later", 5_000) }, "later", 5_000},
	} {
		var took [2]time.Duration // by all rounds
		ratios := make([]float64, rounds)
		for round := range rounds {
			var spent [2]time.Duration
			for side := range 2 {
				side = (side + round) % 2
				s := []*sqlite.Store{free, burdened}[side]
				c.fill(t, s)
				busy := cpuTime(t)
				if got := drainAll(t, s, c.queue); got != c.count {
					t.Fatalf("%s: %d messages came, want %d", c.name, got, c.count)
				}
				spent[side] = cpuTime(t) - busy
				took[side] += spent[side]
			}
			ratios[round] = spent[1].Seconds() / spent[0].Seconds()
		}
		alone, loaded := took[0], took[1]
		slices.Sort(ratios)
		ratio := ratios[rounds/2] // a few rounds that others were in the way of say nothing
		messages := float64(rounds * c.count)
		t.Logf("drain of %s: %.0f per second of processor alone, %.0f with %d followers and %d scheduled: by the median round %+.1f %%",
			c.name,
			messages/alone.Seconds(), messages/loaded.Seconds(), followers, scheduled, (ratio-1)*100)
		if ratio > mostBurden {
			t.Errorf("drain of %s takes %.2f times as long with them, want at most %.2f", c.name, ratio, mostBurden)
		}
	}
}

// burden loads the store.
func burden(t *testing.T, s *sqlite.Store, followers, scheduled int) {
	t.Helper()
	ctx := t.Context()
	for lo := 0; lo < scheduled; lo += 10_000 {
		enqueueMany(t, s, 10_000, func(i int) nixie.Message {
			return nixie.Message{Queue: "later", Body: []byte("{}"), Delay: time.Hour + time.Duration(lo+i)*time.Millisecond}
		})
	}
	enqueueMany(t, s, 1, func(int) nixie.Message { return nixie.Message{Queue: "orders", Stream: "blocked"} })
	ds, err := s.Claim(ctx, "orders", nixie.Want{Max: 1})
	must(t, err)
	must(t, s.Settle(ctx, []nixie.Settlement{{Delivery: ds[0], Verb: nixie.Bury,
		Burial: &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen}}})[0])
	for range followers / 10_000 {
		enqueueMany(t, s, 10_000, func(int) nixie.Message { return nixie.Message{Queue: "orders", Stream: "blocked"} })
	}
}

// fillStreams adds 10 messages to each of 100 streams.
func fillStreams(t testing.TB, s *sqlite.Store) {
	t.Helper()
	enqueueMany(t, s, 1_000, func(i int) nixie.Message {
		return nixie.Message{Queue: "orders", Stream: fmt.Sprint("customer-", i%100), Body: []byte("{}")}
	})
}

func enqueueMany(t testing.TB, s *sqlite.Store, n int, message func(i int) nixie.Message) {
	t.Helper()
	ms := make([]nixie.Message, 0, n)
	for i := range n {
		ms = append(ms, message(i))
	}
	if _, err := s.Enqueue(context.Background(), ms...); err != nil {
		t.Fatal(err)
	}
}

// drainAll completes everything that can be claimed, by thousands.
func drainAll(t *testing.T, s *sqlite.Store, queue string) (done int) {
	t.Helper()
	for {
		ds, err := s.Claim(t.Context(), queue, nixie.Want{Max: 1000})
		must(t, err)
		if len(ds) == 0 {
			return done
		}
		settlements := make([]nixie.Settlement, len(ds))
		for i, d := range ds {
			settlements[i] = nixie.Settlement{Delivery: d, Verb: nixie.Complete}
		}
		for _, err := range s.Settle(t.Context(), settlements) {
			must(t, err)
		}
		done += len(ds)
	}
}

// cpuTime returns the processor time of this process, which other programs of the machine do not
// blur.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
