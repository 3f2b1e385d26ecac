package postgres_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/storetest"
)

// The tests of this file and some others are named after defects that systems of this kind
// have had. docs/trust.md lists them by number, with the tests that would find the rest.

// pair is two processes on one store with a clock of their own.
func pair(t *testing.T) (a, b *postgres.Store, clock *storetest.Clock, schema string) {
	t.Helper()
	clock = storetest.NewClock()
	list, schema := crowdAt(t, 2, clock.Now)
	return list[0], list[1], clock, schema
}

// fill enqueues n messages with numbers as keys: each second one by range, the others
// as rows.
func fill(t *testing.T, s *postgres.Store, n int) {
	t.Helper()
	ms := make([]nixie.Message, n)
	for i := range ms {
		ms[i] = nixie.Message{Queue: "q", Key: fmt.Sprint(i), Priority: i % 2, Body: []byte("body")}
	}
	_, err := s.Enqueue(t.Context(), ms...)
	must(t, err)
}

func one(t *testing.T, s *postgres.Store) *nixie.Delivery {
	t.Helper()
	return handed(t, s, 1)[0]
}

// handed are the n that one claim hands out.
func handed(t *testing.T, s *postgres.Store, n int) []*nixie.Delivery {
	t.Helper()
	ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 1, Lease: time.Minute})
	must(t, err)
	if len(ds) != n {
		t.Fatalf("%d deliveries, want %d", len(ds), n)
	}
	return ds
}

func settle(t *testing.T, s *postgres.Store, d *nixie.Delivery, verb nixie.Verb) nixie.Code {
	t.Helper()
	return nixie.CodeOf(s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: verb}})[0])
}

// atOnce runs n calls at once.
func atOnce(n int, call func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { call(i) })
	}
	all.Wait()
}

// execute runs a statement without the store.
func execute(t *testing.T, query string, args ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(context.Background())) }()
	_, err = conn.Exec(t.Context(), query, args...)
	must(t, err)
}

// A lease is found from the state alone: without the row of its owner it still ends
// by time.
func TestB005_LeaseWithoutItsOwner(t *testing.T) {
	a, b, clock, schema := pair(t)
	fill(t, a, 2)
	one(t, a)
	one(t, a)
	execute(t, "delete from "+schema+".owner")
	clock.Advance(2 * time.Minute)
	for _, d := range handed(t, b, 2) { // what is to be judged comes in one claim
		if !d.Abandoned || d.Crashes != 1 {
			t.Errorf("%+v", d)
		}
	}
}

// One lease that cannot be read does not keep the others from being taken back.
func TestB009_OneBadLeaseAmongAHundred(t *testing.T) {
	a, b, clock, schema := pair(t)
	const many = 100
	fill(t, a, many)
	ds, err := a.Claim(t.Context(), "q", nixie.Want{Max: many, Lease: time.Minute})
	must(t, err)
	if len(ds) != many {
		t.Fatalf("%d were claimed", len(ds))
	}
	execute(t, "update "+schema+".pending set steps = '!' where pos = (select pos from "+schema+".message where key = '1')")
	execute(t, "update "+schema+".message set headers = '{', body = 'x' where key in ('0', '3')")
	execute(t, "update "+schema+".pending set owner = 999999 where pos = (select pos from "+schema+".message where key = '5')")
	clock.Advance(2 * time.Minute)
	back := map[string]bool{}
	for _, d := range handed(t, b, many) {
		if !d.Abandoned || back[d.Key] {
			t.Fatalf("message %s: abandoned %v, seen before %v", d.Key, d.Abandoned, back[d.Key])
		}
		back[d.Key] = true
	}
}

// A process that comes back under the name of the one that died does not make the
// leases of the dead one look held.
func TestB016_SameNameAfterARestart(t *testing.T) {
	schema := newSchema(t)
	t.Cleanup(func() { dropSchema(t, schema) })
	open := func() *postgres.Store {
		s, err := postgres.Open(t.Context(), server.URL, postgres.Options{Schema: schema, Owner: "host:1"})
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		return s
	}
	dead := open()
	fill(t, dead, 2)
	ds, err := dead.Claim(t.Context(), "q", nixie.Want{Max: 2, Lease: time.Hour})
	must(t, err)
	if len(ds) != 2 {
		t.Fatalf("%d were claimed", len(ds))
	}
	must(t, dead.Crash())
	again := open()
	for _, d := range handed(t, again, len(ds)) {
		if !d.Abandoned || d.AbandonedBy != "host:1" || d.Lease.Number != 2 {
			t.Errorf("%+v", d)
		}
	}
}

// Calls that fail, and callers that leave, keep no connection and no transaction.
func TestB055_FailingCallsLeakNothing(t *testing.T) {
	const name, conns = "leaks", 4
	schema := newSchema(t)
	t.Cleanup(func() { dropSchema(t, schema) })
	s, err := postgres.Open(t.Context(), server.URL+fmt.Sprintf("&application_name=%s&pool_max_conns=%d", name, conns),
		postgres.Options{Schema: schema, LockWait: 10 * time.Millisecond})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	fill(t, s, 10)
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(context.Background())) }()
	holder, err := conn.Begin(t.Context())
	must(t, err)
	_, err = holder.Exec(t.Context(), "select from "+schema+".queue for update") // so that settings wait for it
	must(t, err)
	gone, leave := context.WithCancel(t.Context())
	leave()
	atOnce(50, func(i int) {
		calls := []func() error{
			func() error { _, err := s.Enqueue(gone, nixie.Message{Queue: "q"}); return err },
			func() error {
				_, _, err := s.Messages(t.Context(), nixie.Filter{}, store.Page{Cursor: "none"})
				return err
			},
			func() error { _, err := s.Claim(gone, "q", nixie.Want{Max: 1}); return err },
			func() error {
				return store.Configure(t.Context(), s, "q", nixie.QueueSettings{Lease: time.Minute}, "ann", "")
			},
		}
		if err := calls[i%len(calls)](); err == nil {
			t.Errorf("call %d worked", i%len(calls))
		}
	})
	must(t, holder.Rollback(t.Context()))
	for range 2 * conns {
		fill(t, s, 1)
	}
	var open, busy int
	must(t, conn.QueryRow(t.Context(),
		"select count(*), count(*) filter (where state <> 'idle') from pg_stat_activity where application_name = $1", name).Scan(&open,
		&busy))
	if open > conns || busy > 0 {
		t.Errorf("%d connections are open, %d of them in the middle of something", open, busy)
	}
}

// A store whose rows stay locked gives every waiting call its answer in time.
func TestB060_ALockedStoreAnswersAll(t *testing.T) {
	const wait, calls = 200 * time.Millisecond, 8
	list, schema := crowd(t, 1)
	_, err := list[0].Enqueue(t.Context(), nixie.Message{Queue: "q", DedupeKey: "k"})
	must(t, err)
	s, err := postgres.Open(t.Context(), server.URL+"&pool_max_conns=8", postgres.Options{Schema: schema, LockWait: wait})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	pool, err := pgxpool.New(t.Context(), server.URL)
	must(t, err)
	defer pool.Close()
	tx, err := pool.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), "select pg_advisory_xact_lock(hashtext('"+schema+"'), n) from "+schema+".queue")
	must(t, err)
	start := time.Now()
	atOnce(calls, func(int) {
		if _, err := s.Enqueue(context.Background(), nixie.Message{Queue: "q"}); nixie.CodeOf(err) != nixie.CodeUnavailable {
			t.Errorf("told %v", err)
		}
	})
	if took := time.Since(start); took > 100*wait {
		t.Errorf("%d calls waited %s together, one waits %s", calls, took, wait)
	}
	must(t, tx.Rollback(t.Context()))
	fill(t, s, 1)
}

// Positions and numbers go on beyond 32 bits and beyond what a float can count.
func TestB070_NumbersBeyond32Bits(t *testing.T) {
	for _, last := range []int64{math.MaxInt32 - 1, math.MaxUint32 - 1, 1<<53 - 2} {
		list, schema := crowd(t, 1)
		s := list[0]
		must(t, store.Configure(t.Context(), s, "strict", nixie.QueueSettings{Order: nixie.OrderStrict}, "ann", ""))
		execute(t, "select setval('"+schema+".position', $1)", last)
		for _, queue := range []string{"q", "strict"} {
			for i := range 4 {
				_, err := s.Enqueue(t.Context(), nixie.Message{Queue: queue, Key: fmt.Sprint(i), Stream: "s"})
				must(t, err)
			}
			for i := range 4 {
				for _, verb := range []nixie.Verb{nixie.Release, nixie.Complete} {
					ds, err := s.Claim(t.Context(), queue, nixie.Want{Max: 1})
					must(t, err)
					if len(ds) != 1 || queue == "strict" && ds[0].Key != fmt.Sprint(i) {
						t.Fatalf("after position %d: %s handed out %v", last, queue, ds)
					}
					if c := settle(t, s, ds[0], verb); c != "" {
						t.Fatal(c)
					}
				}
			}
		}
		sound(t, s)
	}
}
