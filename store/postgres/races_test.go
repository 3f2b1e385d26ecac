package postgres_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/storetest"
)

// crowd is several processes on one store, by the clock of the database.
func crowd(t *testing.T, n int) (list []*postgres.Store, schema string) {
	t.Helper()
	return crowdAt(t, n, nil)
}

// crowdAt is one by another clock.
func crowdAt(t *testing.T, n int, clock func() time.Time) (list []*postgres.Store, schema string) {
	t.Helper()
	server.Need(t)
	schema = newSchema(t)
	t.Cleanup(func() { dropSchema(t, schema) })
	for i := range n {
		s, err := postgres.Open(t.Context(), server.URL, postgres.Options{Schema: schema, Owner: fmt.Sprintf("owner-%d", i), Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		list = append(list, s)
	}
	return list, schema
}

// each runs f for each process at once.
func each(list []*postgres.Store, f func(i int, s *postgres.Store) error) error {
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, s := range list {
		all.Go(func() { errs[i] = f(i, s) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sound(t *testing.T, s *postgres.Store) {
	t.Helper()
	storetest.Invariants(t, s)
}

// TestB061_WinnersThatRollBack lets many enqueue under one key at once, of whom
// some roll back: in the end there is one message, unless all rolled back.
func TestB061_WinnersThatRollBack(t *testing.T) {
	const clients = 32
	list, _ := crowd(t, 4)
	pool, err := pgxpool.New(t.Context(), server.URL+"&pool_max_conns=32")
	must(t, err)
	defer pool.Close()
	proof.Run(t, "keys-postgres", func(t *testing.T, seed uint64) int {
		rng := rand.New(rand.NewPCG(seed, 61))
		key := fmt.Sprintf("k%d", seed)
		committed := make([]nixie.ID, clients)
		var all sync.WaitGroup
		for i := range clients {
			undoes := rng.IntN(10) < 3
			all.Go(func() {
				tx, err := pool.Begin(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				receipts, err := list[i%len(list)].Tx(tx).Enqueue(t.Context(), nixie.Message{Queue: "q", Key: key, DedupeKey: key})
				switch {
				case err != nil:
					t.Error(err)
					fallthrough
				case undoes:
					if err := tx.Rollback(t.Context()); err != nil {
						t.Error(err)
					}
				default:
					if err := tx.Commit(t.Context()); err != nil {
						t.Error(err)
					}
					committed[i] = receipts[0].ID
				}
			})
		}
		all.Wait()
		found, _, err := list[0].Messages(t.Context(), nixie.Filter{Keys: []string{key}}, store.Page{})
		must(t, err)
		for i, id := range committed {
			if !id.IsZero() && (len(found) != 1 || found[0].ID != id) {
				t.Fatalf("client %d was told %s, there are %d messages: %+v", i, id, len(found), found)
			}
		}
		return 1
	})
	sound(t, list[0])
}

// TestB041_CommitOfWhatWasGivenUp shows that a commit which PostgreSQL answers with
// ROLLBACK is not taken for one.
func TestB041_CommitOfWhatWasGivenUp(t *testing.T) {
	list, _ := crowd(t, 1)
	if err := list[0].CommitAborted(t.Context()); nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Fatalf("error is %v", err)
	}
	_, err := list[0].Enqueue(t.Context(), nixie.Message{Queue: "q"})
	must(t, err)
}

// TestOrderUnderChaos lets several processes work on many strict streams, where
// some attempts fail, are given back or are left to end: each stream is worked off
// in its order, and each message ends once.
func TestOrderUnderChaos(t *testing.T) {
	const streams, each1 = 40, 10
	list, _ := crowd(t, 4)
	must(t, store.Configure(t.Context(), list[0], "q", nixie.QueueSettings{Order: nixie.OrderStrict}, "ann", ""))
	var ms []nixie.Message
	for i := range each1 {
		for s := range streams {
			ms = append(ms, nixie.Message{Queue: "q", Key: fmt.Sprint(i), Stream: fmt.Sprint("s", s)})
		}
	}
	for len(ms) > 0 {
		_, err := list[0].Enqueue(t.Context(), ms[:80]...)
		must(t, err)
		ms = ms[80:]
	}
	var mu sync.Mutex
	ended := map[string][]string{}
	left := streams * each1
	must(t, each(list, func(i int, s *postgres.Store) error {
		rng := rand.New(rand.NewPCG(uint64(i), 7))
		for {
			mu.Lock()
			over := left == 0
			mu.Unlock()
			if over {
				return nil
			}
			ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 1 + rng.IntN(20), Lease: 100 * time.Millisecond})
			if err != nil {
				return err
			}
			var settlements []nixie.Settlement
			for _, d := range ds {
				st := nixie.Settlement{Delivery: d, Verb: nixie.Complete}
				switch rng.IntN(20) {
				case 0:
					st = nixie.Settlement{Delivery: d, Verb: nixie.Retry, Delay: time.Millisecond,
						Failure: &nixie.Failure{FailedAt: time.Unix(1, 0), Text: "no"}}
				case 1:
					st = nixie.Settlement{Delivery: d, Verb: nixie.Release}
				case 2:
					continue
				}
				settlements = append(settlements, st)
			}
			for j, err := range s.Settle(t.Context(), settlements) {
				st := &settlements[j]
				switch {
				case nixie.CodeOf(err) == nixie.CodeLeaseLost:
				case err != nil:
					return err
				case st.Verb == nixie.Complete:
					mu.Lock()
					ended[st.Delivery.Stream] = append(ended[st.Delivery.Stream], st.Delivery.Key)
					left--
					mu.Unlock()
				}
			}
		}
	}))
	for s := range streams {
		keys := ended[fmt.Sprint("s", s)]
		if len(keys) != each1 {
			t.Errorf("stream %d: %d ended", s, len(keys))
		}
	}
	sound(t, list[0])
	records, _, err := list[0].Messages(t.Context(), nixie.Filter{}, store.Page{Limit: streams * each1})
	must(t, err)
	for _, r := range records {
		if r.State != nixie.Succeeded || r.OrderGap {
			t.Errorf("message %s of %s is %s, order gap %v", r.Key, r.Stream, r.State, r.OrderGap)
		}
	}
}

// TestR45_WhoWasTakenForDeadIsRefused takes a living process for dead, because
// it sent no heartbeat for a minute: what it held is others' by then, what it says about
// that is refused, and with its next claim it is on the list again.
func TestR45_WhoWasTakenForDeadIsRefused(t *testing.T) {
	list, schema := crowd(t, 2)
	_, err := list[0].Enqueue(t.Context(), nixie.Message{Queue: "q", Key: "a"}, nixie.Message{Queue: "q", Key: "b"})
	must(t, err)
	held, err := list[0].Claim(t.Context(), "q", nixie.Want{Max: 1, Lease: time.Hour})
	must(t, err)
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), "update "+schema+".owner set seen = now() - interval '61 seconds'")
	must(t, err)
	taken, err := list[1].Claim(t.Context(), "q", nixie.Want{Max: 1, Lease: time.Hour})
	must(t, err)
	if len(taken) != 1 || taken[0].Key != "a" || taken[0].AbandonedBy != "owner-0" || taken[0].Crashes != 1 {
		t.Fatalf("the other one got %+v", taken)
	}
	if err := list[0].Settle(t.Context(), []nixie.Settlement{{Delivery: held[0],
		Verb: nixie.Complete}})[0]; nixie.CodeOf(err) != nixie.CodeLeaseLost {
		t.Errorf("its completion is answered %v", err)
	}
	if err := list[0].Extend(t.Context(), held, time.Minute)[0]; nixie.CodeOf(err) != nixie.CodeLeaseLost {
		t.Errorf("its renewal is answered %v", err)
	}
	again, err := list[0].Claim(t.Context(), "q", nixie.Want{Max: 1, Lease: time.Hour})
	must(t, err)
	for i, d := range append(again, taken...) {
		must(t, list[i].Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0])
	}
	sound(t, list[0])
}
