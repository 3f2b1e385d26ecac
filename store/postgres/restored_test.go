package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// TestMovedToAnotherServer lets a store be what a dump of it is on another server,
// whose transactions have numbers far below or above: what waited and what was leased
// comes once more, and what had ended does not.
func TestMovedToAnotherServer(t *testing.T) {
	for name, older := range map[string]bool{"older": true, "younger": false} {
		t.Run(name, func(t *testing.T) {
			schema := newSchema(t)
			t.Cleanup(func() { dropSchema(t, schema) })
			open := func() *postgres.Store {
				s, err := postgres.Open(t.Context(), server.URL, postgres.Options{Schema: schema})
				must(t, err)
				return s
			}
			s := open()
			for i := range 30 {
				_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(i)})
				must(t, err)
			}
			ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 20, Lease: time.Hour})
			must(t, err)
			for _, d := range ds[:5] {
				must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0])
			}
			if done := complete(t, s, ds, 6, 7, 8, 9, 10); len(done) != 5 {
				t.Fatalf("%v are done", done)
			}
			check := strictTokens(t, s)
			must(t, s.Crash())
			move(t, schema, older)

			s = open()
			defer func() { must(t, s.Close()) }()
			sound(t, s)
			_, err = s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: "30"})
			must(t, err)
			check(s)
			got := map[string]int{}
			for range 40 {
				ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 20, Lease: time.Hour})
				must(t, err)
				for _, d := range ds {
					got[d.Key]++
					must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0])
				}
			}
			for i := range 31 {
				if n := got[fmt.Sprint(i)]; i < 10 && n != 0 || i >= 10 && n != 1 {
					t.Errorf("message %d came %d times", i, n)
				}
			}
			sound(t, s)
		})
	}
}

// appendedToALetter leaves a stream behind that has a letter, and that a transaction of a caller
// has added to since.
func appendedToALetter(t *testing.T, s *postgres.Store) {
	t.Helper()
	must(t, store.Configure(t.Context(), s, "freed", nixie.QueueSettings{Order: nixie.OrderStrict, DeadHead: nixie.DeadFrees}, "ann", ""))
	_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "freed", Stream: "s"})
	must(t, err)
	ds, err := s.Claim(t.Context(), "freed", nixie.Want{Max: 9})
	must(t, err)
	must(t, buried(s, ds[0]))
	tx := begin(t)
	_, err = s.Tx(tx).Enqueue(t.Context(), nixie.Message{Queue: "freed", Stream: "s", Key: "added"})
	must(t, err)
	must(t, tx.Commit(t.Context()))
}

// strictTokens leaves strict streams behind whose first messages have ended, are claimed, and are
// ready or have tokens that no claim has read; what it returns finds all of them in their order.
func strictTokens(t *testing.T, s *postgres.Store) func(*postgres.Store) {
	t.Helper()
	must(t, store.Configure(t.Context(), s, "strict", strict(), "ann", ""))
	add := func(streams ...string) {
		for _, stream := range streams {
			_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "strict", Stream: stream, Key: "1"},
				nixie.Message{Queue: "strict", Stream: stream, Key: "2"})
			must(t, err)
		}
	}
	add("ended", "out", "ready")
	ds, err := s.Claim(t.Context(), "strict", nixie.Want{Max: 2, Lease: time.Hour})
	must(t, err)
	must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: ds[0], Verb: nixie.Complete}})[0])
	add("given")
	appendedToALetter(t, s)
	return func(s *postgres.Store) {
		ds, err := s.Claim(t.Context(), "freed", nixie.Want{Max: 9})
		must(t, err)
		if len(ds) != 1 || ds[0].Key != "added" {
			t.Errorf("next to a letter came %v", ds)
		}
		got := map[string]string{"ended": "1"}
		for range 7 {
			ds, err := s.Claim(t.Context(), "strict", nixie.Want{Max: 1, Lease: time.Hour})
			must(t, err)
			if len(ds) != 1 {
				t.Fatalf("%d came after %v", len(ds), got)
			}
			got[ds[0].Stream] += ds[0].Key
			must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: ds[0], Verb: nixie.Complete}})[0])
			sound(t, s)
		}
		for _, stream := range []string{"ended", "out", "ready", "given"} {
			if got[stream] != "12" {
				t.Errorf("of stream %s came %q", stream, got[stream])
			}
		}
	}
}

// move changes the numbers of transactions to those of another server.
func move(t *testing.T, schema string, older bool) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(t.Context())) }()
	var least int64
	must(t, conn.QueryRow(t.Context(), "select min(tx::text::bigint) from "+schema+".message").Scan(&least))
	by := "1000000000"
	if !older {
		by = fmt.Sprint(4 - least)
	}
	for _, statement := range []string{
		"update %[1]s.message set tx = (tx::text::bigint + %[2]s)::text::xid8",
		"update %[1]s.cursor set tx = (tx::text::bigint + %[2]s)::text::xid8",
		"update %[1]s.token set tx = (tx::text::bigint + %[2]s)::text::xid8",
		`update %[1]s.batch set after_tx = greatest(after_tx::text::bigint + %[2]s, 0)::text::xid8, 
			last_tx = (last_tx::text::bigint + %[2]s)::text::xid8 where positions is null`,
		`update %[1]s.success_range set after_tx = greatest(after_tx::text::bigint + %[2]s, 0)::text::xid8, last_tx =
			(last_tx::text::bigint + %[2]s)::text::xid8`,
		"update %[1]s.meta set value = '1' where name = 'cluster' and %[2]s <> 0",
	} {
		_, err := conn.Exec(t.Context(), fmt.Sprintf(statement, schema, by))
		must(t, err)
	}
}

// A server that goes down forgets claims of plain messages that it had not written
// yet, and others get the same messages under the same number. The owner of the first
// claim settles nothing of theirs, also when their lease has a row of its own.
func TestForgottenClaimSettlesNothing(t *testing.T) {
	forgetClaim(t, nixie.QueueSettings{})
	forgetClaim(t, strict())
}

func forgetClaim(t *testing.T, settings nixie.QueueSettings) {
	t.Helper()
	list, schema := crowd(t, 2)
	before, after := list[0], list[1]
	must(t, store.Configure(t.Context(), before, "q", settings, "ann", ""))
	_, err := before.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: "a", Stream: "a"},
		nixie.Message{Queue: "q", Key: "b", Stream: "b"})
	must(t, err)
	execute(t, "create table "+schema+".was as table "+schema+".cursor")
	execute(t, "create table "+schema+".given as table "+schema+".token")
	want := nixie.Want{Max: 2, Lease: time.Hour}
	forgotten, err := before.Claim(t.Context(), "q", want)
	must(t, err)
	execute(t, "delete from "+schema+".cursor")
	execute(t, "insert into "+schema+".cursor table "+schema+".was")
	execute(t, "insert into "+schema+".token table "+schema+".given")
	execute(t, "drop table "+schema+".was, "+schema+".given")
	execute(t, "delete from "+schema+".batch")
	held, err := after.Claim(t.Context(), "q", want)
	must(t, err)
	if len(forgotten) != 2 || len(held) != 2 || held[0].Lease.Number != forgotten[0].Lease.Number {
		t.Fatalf("claimed %v, then %v", forgotten, held)
	}
	giveRow(t, after, held[0])
	for i, d := range forgotten {
		if c := settle(t, before, d, nixie.Complete); c != nixie.CodeLeaseLost {
			t.Errorf("the forgotten claim of %s was answered %q", d.Key, c)
		}
		if c := settle(t, after, held[i], nixie.Complete); c != "" {
			t.Errorf("the holder of %s was answered %q", d.Key, c)
		}
	}
	sound(t, after)
}

// A process that has seen more moves of a cursor than a server knows after a crash goes on
// by itself.
func TestForgottenMovesHoldUpNoClaim(t *testing.T) {
	for _, settings := range []nixie.QueueSettings{{}, strict()} {
		list, schema := crowd(t, 1)
		s := list[0]
		must(t, store.Configure(t.Context(), s, "q", settings, "ann", ""))
		for i := range 4 {
			_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q", Stream: fmt.Sprint(i)})
			must(t, err)
			if i == 3 {
				execute(t, "update "+schema+".cursor set moves = 0")
			}
			ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: 1})
			must(t, err)
			if len(ds) != 1 {
				t.Fatalf("claim %d got %d messages", i, len(ds))
			}
			if c := settle(t, s, ds[0], nixie.Complete); c != "" {
				t.Fatal(c)
			}
		}
		sound(t, s)
	}
}

// giveRow lets a transaction of a caller that is rolled back give a message of a batch
// a row of its own, under the same lease.
func giveRow(t *testing.T, s *postgres.Store, d *nixie.Delivery) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(context.Background())) }()
	tx, err := conn.Begin(t.Context())
	must(t, err)
	same := *d
	must(t, s.Tx(tx).Complete(t.Context(), &same))
	must(t, tx.Rollback(t.Context()))
}
