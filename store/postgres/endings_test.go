package postgres_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// The end of an ID finds a letter by an index, whether the store made the ID or not: it reads few
// rows, however many there are, and whenever the server counted them.
func TestEndingsReadFewRows(t *testing.T) {
	for _, counted := range []string{"never", "early", "after"} {
		t.Run(counted, func(t *testing.T) { findsByEndings(t, counted) })
	}
}

func findsByEndings(t *testing.T, counted string) {
	const letters, asked = 2000, 50
	list, schema := crowd(t, 1)
	alone(t, schema)
	count := func(when string) {
		if counted == when {
			execute(t, "vacuum analyze")
		}
	}
	all, ids := make([]nixie.Letter, letters), new(store.IDs)
	for i := range all {
		at := time.Unix(1, 0)
		all[i] = nixie.Letter{Message: nixie.Message{Queue: "q", Body: []byte("{}")}, Cause: nixie.CauseExhausted,
			Class: nixie.ClassTransient, Reason: nixie.ReasonTimeout, Status: nixie.StatusOpen, DiedAt: at, FirstFailedAt: at,
			LastFailedAt: at, Signature: "timeout", Fingerprint: "v1-1"}
		if i%2 == 0 {
			all[i].ID, all[i].Message.ID = ids.New(time.Now()), ids.New(time.Now())
		}
	}
	var receipts []nixie.Receipt
	adopt := func(some []nixie.Letter) {
		receipt, errs := list[0].Adopt(t.Context(), some, "ann", "")
		must(t, errors.Join(errs...))
		receipts = append(receipts, receipt...)
	}
	adopt(all[:1])
	count("early") // a server that believes this takes the whole table for a page
	for some := range slices.Chunk(all[1:], 500) {
		adopt(some)
	}
	count("after")
	must(t, list[0].Close())
	deadlocks(t) // waits until its connections have told what they read
	before := readingOf(t, schema, ofTables)
	s, err := postgres.Open(t.Context(), server.URL, postgres.Options{Schema: schema})
	must(t, err)
	for _, r := range receipts[:asked] {
		id := r.ID.String()
		found, _, err := s.Letters(t.Context(), nixie.Filter{Endings: []string{id[len(id)-8:]}}, store.Page{Limit: 2})
		must(t, err)
		if len(found) != 1 || found[0].ID != r.ID {
			t.Fatalf("letter %s is found as %v", r.ID, found)
		}
	}
	must(t, s.Close())
	deadlocks(t)
	before.bounded(t, schema, ofTables, "50 endings of letters", asked*20)
	if t.Failed() {
		t.Log("what the server believes: ", beliefs(t, schema))
	}
}

// beliefs tells for what the server takes the table of letters and its indexes, and when it counted
// them.
func beliefs(t *testing.T, schema string) (text string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(context.Background())) }()
	must(t, conn.QueryRow(t.Context(), `select string_agg(format('%s: %s rows on %s pages, counted %s', relname, reltuples, relpages,
		(select greatest(last_analyze, last_autoanalyze) from pg_stat_all_tables s where s.relid = c.oid)), '; ')
		from pg_class c where relnamespace = $1::regnamespace and relname like 'letter%'`, schema).Scan(&text))
	return text
}
