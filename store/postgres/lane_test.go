package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// strict is an order without anything else.
func strict() nixie.QueueSettings { return nixie.QueueSettings{Order: nixie.OrderStrict} }

// besideALane is what may happen to a strict stream while its first message is out.
func besideALane(ctx context.Context) map[string]func(*postgres.Store, *nixie.Delivery) error {
	return map[string]func(*postgres.Store, *nixie.Delivery) error{
		"nothing": func(*postgres.Store, *nixie.Delivery) error { return nil },
		"marked": func(s *postgres.Store, _ *nixie.Delivery) error {
			_, err := s.Unblock(ctx, store.Unblocking{Queue: "q", Stream: "s", Actor: "ann", Reason: "because", Mark: true})
			return err
		},
		"loosened": func(s *postgres.Store, _ *nixie.Delivery) error {
			return s.Configure(ctx, "q", nixie.QueueSettings{Order: nixie.OrderRelaxed}, "ann", "because")
		},
		"loosened and strict again": func(s *postgres.Store, _ *nixie.Delivery) error {
			if err := s.Configure(ctx, "q", nixie.QueueSettings{Order: nixie.OrderRelaxed}, "ann", "because"); err != nil {
				return err
			}
			return s.Configure(ctx, "q", strict(), "ann", "because")
		},
		"extended": func(s *postgres.Store, d *nixie.Delivery) error {
			return s.Extend(ctx, []*nixie.Delivery{d}, time.Hour)[0]
		},
		"extended with a step": func(s *postgres.Store, d *nixie.Delivery) error {
			d.Steps = []string{"half"}
			return s.Extend(ctx, []*nixie.Delivery{d}, time.Hour)[0]
		},
		"released": func(s *postgres.Store, d *nixie.Delivery) error {
			if err := s.Settle(ctx, []nixie.Settlement{{Delivery: d, Verb: nixie.Release}})[0]; err != nil {
				return err
			}
			ds, err := s.Claim(ctx, "q", nixie.Want{Max: 9})
			if err == nil {
				*d = *ds[0]
			}
			return err
		},
		"one with a priority": func(s *postgres.Store, _ *nixie.Delivery) error {
			_, err := s.Enqueue(ctx, nixie.Message{Queue: "q", Stream: "s", Key: "5", Priority: 4})
			return err
		},
		"one is canceled": func(s *postgres.Store, _ *nixie.Delivery) error {
			list, _, err := s.Messages(ctx, nixie.Filter{Keys: []string{"3"}}, store.Page{})
			if err != nil {
				return err
			}
			return s.Amend(ctx, []nixie.ID{list[0].ID}, store.Change{Verb: store.Cancel, Actor: "ann"})[0]
		},
	}
}

// TestWhatComesBesideALane hands out the first message of a strict stream, does
// something to the stream meanwhile, and lets the holder end it: the others follow in
// their order.
func TestWhatComesBesideALane(t *testing.T) {
	ctx := t.Context()
	for name, meanwhile := range besideALane(ctx) {
		t.Run(name, func(t *testing.T) {
			list, _ := crowd(t, 1)
			s := list[0]
			must(t, s.Configure(ctx, "q", strict(), "ann", ""))
			for i := 1; i <= 4; i++ {
				_, err := s.Enqueue(ctx, nixie.Message{Queue: "q", Stream: "s", Key: fmt.Sprint(i)})
				must(t, err)
			}
			ds, err := s.Claim(ctx, "q", nixie.Want{Max: 9})
			must(t, err)
			must(t, meanwhile(s, ds[0]))
			sound(t, s)
			var keys []string
			for len(ds) > 0 {
				if len(ds) > 1 {
					t.Fatalf("%d messages of one stream are out at once", len(ds))
				}
				keys = append(keys, ds[0].Key)
				must(t, s.Settle(ctx, []nixie.Settlement{{Delivery: ds[0], Verb: nixie.Complete}})[0])
				sound(t, s)
				ds, err = s.Claim(ctx, "q", nixie.Want{Max: 9})
				must(t, err)
			}
			want := map[string]string{"one with a priority": "1 2 3 4 5", "one is canceled": "1 2 4"}[name]
			if want == "" {
				want = "1 2 3 4"
			}
			if got := strings.Join(keys, " "); got != want {
				t.Errorf("ran %s, want %s", got, want)
			}
			_, err = s.Stream(ctx, "q", "s")
			if nixie.CodeOf(err) != nixie.CodeNotFound {
				t.Errorf("the stream is still there: %v", err)
			}
		})
	}
}

// TestStreamsThatFillAndEmpty lets some add to few streams what others end at once, so
// that streams come and go, and whoever ends the last message of one does it beside
// whoever adds the next: none stays behind, and none goes before its turn.
func TestStreamsThatFillAndEmpty(t *testing.T) {
	const streams, each, producers = 3, 60, 4
	list, _ := crowd(t, 2)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	must(t, list[0].Configure(ctx, "q", strict(), "ann", ""))
	var ended atomic.Int64
	var mu sync.Mutex
	newest := map[string]int{} // by producer and stream
	check := func(d *nixie.Delivery) {
		by, number, _ := strings.Cut(d.Key, " ")
		n, err := strconv.Atoi(number)
		mu.Lock()
		defer mu.Unlock()
		if last, ok := newest[by+d.Stream]; err != nil || ok && last >= n {
			t.Errorf("message %s of stream %s comes after %d", d.Key, d.Stream, last)
		}
		newest[by+d.Stream] = n
	}
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() {
			for i := range each {
				var ms []nixie.Message
				for s := range streams {
					ms = append(ms, nixie.Message{Queue: "q", Stream: fmt.Sprint(s), Key: fmt.Sprint(p, " ", i)})
				}
				if _, err := list[p%2].Enqueue(ctx, ms...); err != nil {
					t.Error(err)
					stop()
				}
			}
		})
	}
	for c := range 2 {
		all.Go(func() {
			dice := rand.New(rand.NewPCG(uint64(c), 1))
			for ended.Load() < streams*each*producers && ctx.Err() == nil {
				ds, err := list[c].Claim(ctx, "q", nixie.Want{Max: 1 + dice.IntN(streams)})
				if err != nil {
					t.Error(err)
					stop()
				}
				st := make([]nixie.Settlement, len(ds))
				for i, d := range ds {
					check(d)
					st[i] = nixie.Settlement{Delivery: d, Verb: nixie.Complete}
				}
				for _, err := range list[c].Settle(ctx, st) {
					if err != nil {
						t.Error(err)
						stop()
					}
					ended.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := ended.Load(); n != streams*each*producers {
		t.Errorf("%d of %d messages ended", n, streams*each*producers)
	}
	sound(t, list[0])
}

// TestClaimsOfAllDrivers claims plain messages, in a stream and in none, where the driver
// asks for texts, as it has to behind some poolers, and where it does not: they say the
// same.
func TestClaimsOfAllDrivers(t *testing.T) {
	schema := lend(t)
	plain := open(t, server.URL, postgres.Options{Schema: schema})
	must(t, plain.Configure(t.Context(), "strict", strict(), "ann", ""))
	must(t, plain.Configure(t.Context(), "none", nixie.QueueSettings{}, "ann", ""))
	for _, queue := range []string{"strict", "none"} {
		var before *nixie.Delivery
		for _, url := range []string{server.URL, with(server.URL, "default_query_exec_mode=exec")} {
			s := open(t, url, postgres.Options{Schema: schema})
			given := nixie.Message{Queue: queue, Type: "task", Key: "k", Stream: "s", Body: []byte{0, 1, 255}, ExpiresAt: time.Unix(1<<33, 0), Headers: []nixie.Header{{Name: "a", Value: "b"}}}
			_, err := plain.Enqueue(t.Context(), given)
			must(t, err)
			ds, err := s.Claim(t.Context(), queue, nixie.Want{Max: 9})
			must(t, err)
			if len(ds) != 1 || len(ds[0].Damage) > 0 || ds[0].EnqueuedAt.IsZero() || ds[0].FirstReceivedAt.Before(ds[0].EnqueuedAt) || ds[0].Lease.Number != 1 {
				t.Fatalf("claimed %+v", ds)
			}
			d := ds[0]
			must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0])
			same := func(d *nixie.Delivery) string {
				return fmt.Sprint(d.Type, d.Key, d.Stream, string(d.Body), d.Hash, d.ExpiresAt.UTC(), d.Headers, d.Attempts, d.Deliveries, d.Generation, d.State)
			}
			if before != nil && same(d) != same(before) {
				t.Errorf("as texts %s, else %s", same(d), same(before))
			}
			before = d
		}
	}
}

// TestChecksOfLanes spoils the row of a stream by hand: the store says what is wrong.
func TestChecksOfLanes(t *testing.T) {
	for spoil, want := range map[string]string{
		"ready = 0":                  "stream-stuck",
		"ready = ready + 1":          "stream-order",
		"mixed = true":               "stream-mixed",
		"owner = 1, until = 1 << 40": "stream-two-leases",
		"ready = 0, at = ready + 1":  "message-lost",
		"queue = queue + 1":          "stream-lost",
		"ready = 0, top = ready + 9, at = ready, until = 1": "stream-mixed",
	} {
		list, schema := crowd(t, 1)
		must(t, list[0].Configure(t.Context(), "q", strict(), "ann", ""))
		_, err := list[0].Enqueue(t.Context(), nixie.Message{Queue: "q", Stream: "s"}, nixie.Message{Queue: "q", Stream: "s"})
		must(t, err)
		sound(t, list[0])
		execute(t, "update "+schema+".stream set "+spoil)
		report, err := list[0].Check(t.Context())
		must(t, err)
		rules := map[string]bool{}
		for _, v := range report.Violations {
			rules[v.Rule] = true
		}
		if !rules[want] {
			t.Errorf("%s: told %v, want %s", spoil, rules, want)
		}
	}
}
