package postgres_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store/lifecycle"
	"github.com/nixie-go/nixie/store/postgres"
)

// TestTwins compares the statements that claim rows and end their leases, which decide in
// SQL, with what lifecycle decides, over all facts that they look at.
func TestTwins(t *testing.T) {
	schema, now := newSchema(t), time.Now().Truncate(time.Second)
	t.Cleanup(func() { dropSchema(t, schema) })
	s, err := postgres.Open(t.Context(), server.URL, postgres.Options{Schema: schema, Owner: "holder",
		Clock: func() time.Time { return now }})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	t.Cleanup(func() { must(t, conn.Close(t.Context())) })
	var rows []nixie.Message
	for range 2 * 3 * 3 * 3 * 2 * 2 * 2 * 3 {
		rows = append(rows, nixie.Message{Queue: "q", Priority: 1, Body: []byte("x")}) // a row of its own
	}
	_, err = s.Enqueue(t.Context(), rows...)
	must(t, err)
	_, err = conn.Exec(t.Context(), fmt.Sprintf(`update %[1]q.pending p set generation = 1 + i %% 2,
		redrives = i %% 2, attempts = i / 2 %% 3, deliveries = 3 + i / 6 %% 3, crashes = i / 18 %% 3, number = 3 + i %% 5,
			abandoned = case when i / 54 %% 2 = 1 and i / 18 %% 3 > 0 then 'gone' end,
			received = i / 108 %% 2 * 5, alone = i / 216 %% 2 = 1,
			patience = (array[null, '{"free":5,"stops":3,"stopped_by":"early"}', '{"free":20,"stops":20}'])[1 + i / 432]
		from (select pos, row_number() over (order by pos) - 1 as i from %[1]q.pending) c where c.pos = p.pos`, schema))
	must(t, err)

	before := standing(t, conn, schema)
	const length = time.Minute
	claimed := map[nixie.ID]bool{}
	for { // those to be judged come first, then suspects of one kind after the other
		ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: nixie.MaxBatch, Lease: length, Parallel: nixie.MaxBatch})
		must(t, err)
		if len(ds) == 0 {
			break
		}
		for _, d := range ds {
			claimed[d.ID] = true
		}
	}
	leased := standing(t, conn, schema)
	if len(before) != len(rows) || len(claimed) != len(rows) || len(leased) != len(rows) {
		t.Fatalf("%d rows, %d of them claimed, %d stay", len(before), len(claimed), len(leased))
	}
	for pos, m := range before {
		is := leased[pos]
		must(t, m.Claim(is.Owner, lifecycle.Nanos(now.Add(length)), lifecycle.Nanos(now)))
		m.Alone = is.Alone // the claim sets it for a group
		if !reflect.DeepEqual(m, is) {
			t.Errorf("a claim made %+v\nlifecycle says %+v", is, m)
		}
	}

	must(t, s.Features().Stopping(t.Context(), true)) // what 20 stops made a crash is one all the same
	now = now.Add(length)
	_, err = s.Claim(t.Context(), "other", nixie.Want{Max: 1, Lease: length}) // any claim ends what is over
	must(t, err)
	ended := 0
	for pos, is := range standing(t, conn, schema) {
		m := leased[pos]
		must(t, m.Abandon("holder", true, lifecycle.Nanos(now)))
		m.Claimed = is.Claimed // it is not read while there is no lease
		if ended++; !reflect.DeepEqual(m, is) {
			t.Errorf("the end of a lease made %+v\nlifecycle says %+v", is, m)
		}
	}
	t.Logf("%d claims, %d ends of leases", len(rows), ended)
	if ended != len(rows) {
		t.Errorf("of %d leases", len(rows))
	}
}

// standing reads the rows of pending as lifecycle sees them, by position.
func standing(t *testing.T, conn *pgx.Conn, schema string) map[int64]lifecycle.Message {
	t.Helper()
	found, err := conn.Query(t.Context(), fmt.Sprintf(`select pos, state, due, attempts,
		deliveries, crashes, generation, redrives, number, owner, claimed, until, received, coalesce(abandoned, ''), alone,
		coalesce(patience, '')
		from %q.pending`, schema))
	must(t, err)
	list := map[int64]lifecycle.Message{}
	for found.Next() {
		var pos int64
		var m lifecycle.Message
		var patience string
		must(t, found.Scan(&pos, &m.State, &m.Due, &m.Attempts, &m.Deliveries, &m.Crashes, &m.Generation, &m.Redrives, &m.Number, &m.Owner,
			&m.Claimed, &m.Until, &m.Received, &m.Abandoned, &m.Alone, &patience))
		var err error
		m.Patience, err = lease.ReadPatience(patience)
		must(t, err)
		list[pos] = m
	}
	must(t, found.Err())
	return list
}
