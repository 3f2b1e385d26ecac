package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// TestIDsSayPositions takes messages in on all ways: those that COPY writes and those whose
// positions are drawn under locks have IDs that say them, and are in no index of IDs.
// All are found.
func TestIDsSayPositions(t *testing.T) {
	list, schema := crowd(t, 1)
	s := list[0]
	must(t, store.Configure(t.Context(), s, "strict", nixie.QueueSettings{Order: nixie.OrderStrict}, "ann", ""))
	for _, c := range []struct {
		name     string
		queue    string
		n        int
		change   func(*nixie.Message)
		own      bool // in a transaction of the caller
		numbered bool
	}{
		{name: "many plain", queue: "q", n: 100, numbered: true},
		{name: "few plain", queue: "q", n: 2},
		{name: "with keys", queue: "q", n: 2, change: func(m *nixie.Message) { m.DedupeKey = m.Key }, numbered: true},
		{name: "of streams", queue: "strict", n: 100, change: func(m *nixie.Message) { m.Stream = m.Key }, numbered: true},
		{name: "with IDs", queue: "q", n: 100, change: func(m *nixie.Message) { m.ID = new(store.IDs).New(time.Now()) }},
		{name: "of a caller", queue: "q", n: 100, own: true},
		{name: "of a caller, of streams", queue: "strict", n: 2, own: true, change: func(m *nixie.Message) { m.Stream = m.Key }},
	} {
		t.Run(c.name, func(t *testing.T) {
			ms := make([]nixie.Message, c.n)
			for i := range ms {
				ms[i] = nixie.Message{Queue: c.queue, Key: fmt.Sprint(c.name, i)}
				if c.change != nil {
					c.change(&ms[i])
				}
			}
			receipts := enqueueIn(t, s, c.own, ms)
			ids := eachID(receipts)
			if got, _, err := s.Messages(t.Context(), nixie.Filter{IDs: ids}, store.Page{Limit: c.n + 1}); err != nil || len(got) != c.n {
				t.Errorf("%d of %d are found: %v", len(got), c.n, err)
			}
			if n, want := numbered(t, schema, ids), map[bool]int{true: c.n}[c.numbered]; n != want {
				t.Errorf("IDs of %d of %d say their positions, want %d", n, c.n, want)
			}
			for i, err := range s.Amend(t.Context(), ids, store.Change{Verb: store.Cancel, Actor: "ann"}) {
				if err != nil {
					t.Errorf("message %d: %v", i, err)
				}
			}
		})
	}
	sound(t, s)
}

// numbered counts the messages among these whose IDs say their positions.
func numbered(t *testing.T, schema string, ids []nixie.ID) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(t.Context())) }()
	must(t, conn.QueryRow(t.Context(),
		"select count(*) from "+schema+".message where id = any($1) and numbered and "+schema+".pos_of(id) = pos", ids).Scan(&n))
	return n
}

// enqueueIn enqueues, if it is wanted in a transaction of the caller.
func enqueueIn(t *testing.T, s *postgres.Store, own bool, ms []nixie.Message) []nixie.Receipt {
	t.Helper()
	if !own {
		receipts, err := s.Enqueue(t.Context(), ms...)
		must(t, err)
		return receipts
	}
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(t.Context())) }()
	tx, err := conn.Begin(t.Context())
	must(t, err)
	receipts, err := s.Tx(tx).Enqueue(t.Context(), ms...)
	must(t, err)
	must(t, tx.Commit(t.Context()))
	return receipts
}

func eachID(receipts []nixie.Receipt) (ids []nixie.ID) {
	for _, r := range receipts {
		ids = append(ids, r.ID)
	}
	return ids
}

// TestIDsOfOthersThatSayPositions gives messages the IDs that the store made for others, and IDs
// that only look like them: the first are refused, and the second belong to no other message.
func TestIDsOfOthersThatSayPositions(t *testing.T) {
	list, _ := crowd(t, 1)
	s := list[0]
	receipts, err := s.Enqueue(t.Context(), slices.Repeat([]nixie.Message{{Queue: "q"}}, 100)...)
	must(t, err)
	made := receipts[42].ID
	like := made
	like[9] ^= 1 // the same position
	for _, want := range []nixie.Code{"", nixie.CodeConflict} {
		if _, err := s.Enqueue(t.Context(), nixie.Message{ID: made, Queue: "q"}); nixie.CodeOf(err) != nixie.CodeConflict {
			t.Errorf("a message with the ID of another: %v", err)
		}
		if _, err := s.Enqueue(t.Context(), nixie.Message{ID: like, Queue: "q", Key: "like"}); nixie.CodeOf(err) != want {
			t.Errorf("a message whose ID says the position of another: %v, want %q", err, want)
		}
	}
	for id, key := range map[nixie.ID]string{made: "", like: "like"} {
		got, _, err := s.Messages(t.Context(), nixie.Filter{IDs: []nixie.ID{id}}, store.Page{})
		must(t, err)
		if len(got) != 1 || got[0].ID != id || got[0].Key != key {
			t.Errorf("%s is %v", id, got)
		}
	}
	sound(t, s)
}

// TestChecksOfIDs breaks what IDs say.
func TestChecksOfIDs(t *testing.T) {
	for _, broken := range []string{
		"id = gen_random_uuid()",
		"numbered = false, id = (select max(id::text)::uuid from S.message)",
	} {
		list, schema := crowd(t, 1)
		_, err := list[0].Enqueue(t.Context(), slices.Repeat([]nixie.Message{{Queue: "q"}}, 100)...)
		must(t, err)
		sound(t, list[0])
		execute(t, strings.ReplaceAll("update S.message set "+broken+" where pos = (select min(pos) from S.message)", "S.", schema+"."))
		report, err := list[0].Check(t.Context())
		must(t, err)
		if len(report.Violations) != 1 || report.Violations[0].Rule != "message-id" {
			t.Errorf("%s: told %v", broken, report.Violations)
		}
	}
}
