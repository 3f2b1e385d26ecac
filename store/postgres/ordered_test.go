package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// strict is an order without anything else.
func strict() nixie.QueueSettings { return nixie.QueueSettings{Order: nixie.OrderStrict} }

// changesOfAStream lists changes of a strict stream while its first message is claimed.
func changesOfAStream(ctx context.Context) map[string]func(*postgres.Store, *nixie.Delivery) error {
	return map[string]func(*postgres.Store, *nixie.Delivery) error{
		"nothing": func(*postgres.Store, *nixie.Delivery) error { return nil },
		"marked": func(s *postgres.Store, _ *nixie.Delivery) error {
			_, err := s.Unblock(ctx, store.Unblocking{Queue: "q", Stream: "s", Actor: "ann", Reason: "because", Mark: true})
			return err
		},
		"loosened": func(s *postgres.Store, _ *nixie.Delivery) error {
			return store.Configure(ctx, s, "q", nixie.QueueSettings{Order: nixie.OrderRelaxed}, "ann", "because")
		},
		"loosened and strict again": func(s *postgres.Store, _ *nixie.Delivery) error {
			if err := store.Configure(ctx, s, "q", nixie.QueueSettings{Order: nixie.OrderRelaxed}, "ann", "because"); err != nil {
				return err
			}
			return store.Configure(ctx, s, "q", strict(), "ann", "because")
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

// TestRowsNextToAnOrderedPath hands out the first message of a strict stream, does
// something to the stream meanwhile, and lets the holder end it: the others follow in
// their order.
func TestRowsNextToAnOrderedPath(t *testing.T) {
	ctx := t.Context()
	for name, meanwhile := range changesOfAStream(ctx) {
		t.Run(name, func(t *testing.T) {
			list, _ := crowd(t, 1)
			s := list[0]
			must(t, store.Configure(ctx, s, "q", strict(), "ann", ""))
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
			_, err = store.FindStream(ctx, s, "q", "s")
			if nixie.CodeOf(err) != nixie.CodeNotFound {
				t.Errorf("the stream is still there: %v", err)
			}
		})
	}
}

// TestCallsOfPlainAndOthers enqueues messages of one stream in one call, some of which are not
// plain: they run in their order, with or without messages in the stream before.
func TestCallsOfPlainAndOthers(t *testing.T) {
	for before := range 3 {
		for plain := range 4 {
			list, _ := crowd(t, 1)
			s := list[0]
			must(t, store.Configure(t.Context(), s, "q", strict(), "ann", ""))
			var want, got []string
			add := func(n int) (ms []nixie.Message) {
				for range n {
					key := fmt.Sprint(len(want))
					want = append(want, key)
					ms = append(ms, nixie.Message{Queue: "q", Stream: "s", Key: key})
				}
				return ms
			}
			for range before { // one that waits, one that has ended
				_, err := s.Enqueue(t.Context(), add(1)...)
				must(t, err)
				if before == 2 && len(want) == 1 {
					must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: one(t, s), Verb: nixie.Complete}})[0])
					got = append(got, "0")
				}
			}
			ms := add(4)
			for i := range ms {
				if i != plain {
					ms[i].Priority = 1
				}
			}
			_, err := s.Enqueue(t.Context(), ms...)
			must(t, err)
			sound(t, s)
			for range len(want) - len(got) {
				ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 9})
				must(t, err)
				if len(ds) != 1 {
					t.Fatalf("%d before, plain is %d: %d came after %v", before, plain, len(ds), got)
				}
				got = append(got, ds[0].Key)
				must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: ds[0], Verb: nixie.Complete}})[0])
				sound(t, s)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d before, plain is %d: ran %v", before, plain, got)
			}
		}
	}
}

// TestStreamsThatFillAndEmpty lets some add to few streams what others end at once, so
// that streams come and go, and the last message of one ends while the next is added,
// half of them in transactions of callers: no message stays behind, and none is claimed before its
// predecessor succeeded.
func TestStreamsThatFillAndEmpty(t *testing.T) {
	const streams, each, producers = 3, 60, 4
	list, _ := crowd(t, 2)
	pool, err := pgxpool.New(t.Context(), server.URL)
	must(t, err)
	defer pool.Close()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	must(t, store.Configure(ctx, list[0], "q", strict(), "ann", ""))
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
				add := func() error { _, err := list[p%2].Enqueue(ctx, ms...); return err }
				if (p+i)%2 == 0 {
					add = func() error {
						return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
							_,
								err := list[p%2].Tx(tx).Enqueue(ctx, ms...)
							return err
						})
					}
				}
				if err := add(); err != nil {
					t.Error(err)
					stop()
				}
			}
		})
	}
	for c := range 2 {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(c), 1))
			for ended.Load() < streams*each*producers && ctx.Err() == nil {
				ds, err := list[c].Claim(ctx, "q", nixie.Want{Max: 1 + rng.IntN(streams)})
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
	must(t, store.Configure(t.Context(), plain, "strict", strict(), "ann", ""))
	must(t, store.Configure(t.Context(), plain, "none", nixie.QueueSettings{}, "ann", ""))
	for _, queue := range []string{"strict", "none"} {
		var before *nixie.Delivery
		for _, url := range []string{server.URL, with(server.URL, "default_query_exec_mode=exec")} {
			s := open(t, url, postgres.Options{Schema: schema})
			given := nixie.Message{Queue: queue, Type: "task", Key: "k", Stream: "s", Body: []byte{0, 1, 255},
				ExpiresAt: time.Unix(1<<33, 0), Headers: []nixie.Header{{Name: "a", Value: "b"}}}
			_, err := plain.Enqueue(t.Context(), given)
			must(t, err)
			ds, err := s.Claim(t.Context(), queue, nixie.Want{Max: 9})
			must(t, err)
			if len(ds) != 1 || len(ds[0].Damage) > 0 || ds[0].EnqueuedAt.IsZero() || ds[0].FirstReceivedAt.Before(ds[0].EnqueuedAt) ||
				ds[0].Lease.Number != 1 {
				t.Fatalf("claimed %+v", ds)
			}
			d := ds[0]
			must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0])
			same := func(d *nixie.Delivery) string {
				return fmt.Sprint(d.Type, d.Key, d.Stream, string(d.Body), d.Hash, d.ExpiresAt.UTC(), d.Headers, d.Attempts, d.Deliveries,
					d.Generation, d.State)
			}
			if before != nil && same(d) != same(before) {
				t.Errorf("as texts %s, else %s", same(d), same(before))
			}
			before = d
		}
	}
}

// TestIdleStreamsGo counts the rows of streams: those that are idle go after a while,
// and a stream that comes again begins anew.
func TestIdleStreamsGo(t *testing.T) {
	a, b, clock, schema := pair(t)
	must(t, store.Configure(t.Context(), a, "q", strict(), "ann", ""))
	rows := func(want int64) {
		t.Helper()
		b.Beat(t.Context())
		conn, err := pgx.Connect(t.Context(), server.URL)
		must(t, err)
		var n int64
		must(t, conn.QueryRow(t.Context(), "select count(*) from "+schema+".stream").Scan(&n))
		must(t, conn.Close(t.Context()))
		if n != want {
			t.Errorf("%d streams are kept, want %d", n, want)
		}
		sound(t, a)
	}
	for round := range 2 {
		for _, stream := range []string{"x", "y", "z"} {
			_, err := a.Enqueue(t.Context(), nixie.Message{Queue: "q", Stream: stream}, nixie.Message{Queue: "q", Stream: stream})
			must(t, err)
		}
		for range 5 {
			if c := settle(t, a, one(t, a), nixie.Complete); c != "" {
				t.Fatal(c)
			}
		}
		rows(3)
		clock.Advance(2 * time.Minute)
		rows(1)
		if c := settle(t, a, one(t, a), nixie.Complete); c != "" {
			t.Fatal(c)
		}
		if list, _, err := a.Streams(t.Context(), store.StreamQuery{Queue: "q"}, store.Page{}); err != nil || len(list) > 0 {
			t.Errorf("round %d: listed are %v, error %v", round, list, err)
		}
		clock.Advance(2 * time.Minute)
		rows(0)
	}
}

// TestChecksOfOrderedPaths spoils the row of a stream, or its token, by hand: the store says what
// is wrong.
func TestChecksOfOrderedPaths(t *testing.T) {
	for spoil, want := range map[string]string{
		"delete from @.token":                                                             "stream-stuck",
		"update @.stream set has_token = false":                                           "stream-stuck",
		"insert into @.token select * from @.token":                                       "stream-two-leases",
		"update @.token set positions = array[positions[1] + 1]":                          "stream-two-leases",
		"update @.stream set mixed = true":                                                "stream-mixed",
		"update @.stream set at = at + 1 << 40":                                           "message-lost",
		"update @.stream set queue = queue + 1":                                           "stream-lost",
		"update @.stream set top = 1::bigint << 40":                                       "stream-mixed",
		"insert into @.ready select m.queue, 1, m.pos, m.ordered_stream from @.message m": "stream-two-leases",
	} {
		list, schema := crowd(t, 1)
		must(t, store.Configure(t.Context(), list[0], "q", strict(), "ann", ""))
		_, err := list[0].Enqueue(t.Context(), nixie.Message{Queue: "q", Stream: "s"}, nixie.Message{Queue: "q", Stream: "s"})
		must(t, err)
		sound(t, list[0])
		execute(t, strings.ReplaceAll(spoil, "@", schema))
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

// TestCompleteDuringAnEnqueue adds to a stream and completes its first message in one
// transaction of the caller.
func TestCompleteDuringAnEnqueue(t *testing.T) {
	list, _ := crowd(t, 1)
	s := list[0]
	must(t, store.Configure(t.Context(), s, "q", strict(), "ann", ""))
	_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Stream: "s", Key: "1"})
	must(t, err)
	d := one(t, s)
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(context.Background())) }()
	tx, err := conn.Begin(t.Context())
	must(t, err)
	_, err = s.Tx(tx).Enqueue(t.Context(), nixie.Message{Queue: "q", Stream: "s", Key: "2"})
	must(t, err)
	must(t, s.Tx(tx).Complete(t.Context(), d))
	must(t, tx.Commit(t.Context()))
	sound(t, s)
	if d := one(t, s); d.Key != "2" {
		t.Errorf("message %s came", d.Key)
	}
}
