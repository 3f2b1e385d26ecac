package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
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
			for _, d := range ds[:10] {
				must(t, s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0])
			}
			must(t, s.Crash())
			move(t, schema, older)

			s = open()
			defer func() { must(t, s.Close()) }()
			sound(t, s)
			_, err = s.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: "30"})
			must(t, err)
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
		"update %[1]s.batch set after_tx = greatest(after_tx::text::bigint + %[2]s, 0)::text::xid8, last_tx = (last_tx::text::bigint + %[2]s)::text::xid8",
		"update %[1]s.meta set value = '1' where name = 'cluster' and %[2]s <> 0",
	} {
		_, err := conn.Exec(t.Context(), fmt.Sprintf(statement, schema, by))
		must(t, err)
	}
}
