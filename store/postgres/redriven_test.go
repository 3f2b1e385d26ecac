package postgres_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
)

// TestClaimsReadLettersOfRedrivenOnesOnly counts scans of letters by claims. One of messages that
// are new or retried makes none.
func TestClaimsReadLettersOfRedrivenOnesOnly(t *testing.T) {
	schema := newSchema(t)
	t.Cleanup(func() { dropSchema(t, schema) })
	with := func(do func(s *postgres.Store)) int {
		t.Helper()
		const scans = "select relname, coalesce(idx_scan, 0) + seq_scan from pg_stat_user_tables where schemaname = $1"
		before := readingOf(t, schema, scans)["letter"]
		s, err := postgres.Open(t.Context(), server.URL+"&application_name="+schema, postgres.Options{Schema: schema})
		must(t, err)
		do(s)
		must(t, s.Close())
		// The server has counted what a session did when the session has gone.
		until(t, "select not exists (select from pg_stat_activity where application_name = '"+schema+"')")
		return readingOf(t, schema, scans)["letter"] - before
	}
	claim := func(s *postgres.Store, queue string, n int) []*nixie.Delivery {
		ds, err := s.Claim(t.Context(), queue, nixie.Want{Max: n})
		must(t, err)
		if len(ds) != n {
			t.Fatalf("%d messages, want %d", len(ds), n)
		}
		return ds
	}
	settle := func(s *postgres.Store, ds []*nixie.Delivery, st nixie.Settlement) {
		for _, d := range ds {
			st.Delivery = d
			must(t, errors.Join(s.Settle(t.Context(), []nixie.Settlement{st})...))
		}
	}
	with(func(s *postgres.Store) {
		_, err := s.Enqueue(t.Context(), append(slices.Repeat([]nixie.Message{{Queue: "q"}}, 20), nixie.Message{Queue: "redriven"})...)
		must(t, err)
		settle(s, claim(s, "q", 5), nixie.Settlement{Verb: nixie.Retry, Failure: &nixie.Failure{Text: "x", Decision: nixie.Retry}})
	})
	idle := with(func(*postgres.Store) {})
	if n := with(func(s *postgres.Store) { claim(s, "q", 20) }); n != idle {
		t.Errorf("a claim of 20 messages scanned letters %d times, a store without one %d times", n, idle)
	}
	with(func(s *postgres.Store) {
		ds := claim(s, "redriven", 1)
		settle(s, ds, nixie.Settlement{Verb: nixie.Bury, Burial: &nixie.Burial{Cause: nixie.CauseOperator, Status: nixie.StatusOpen,
			Redrivable: true}})
		l, _, err := s.Letters(t.Context(), nixie.Filter{}, store.Page{})
		must(t, err)
		must(t, errors.Join(s.Resolve(t.Context(), []store.Resolution{{Letter: l[0].ID, Event: store.OnRedrive, Actor: "ann"}})...))
	})
	if n := with(func(s *postgres.Store) { claim(s, "redriven", 1) }); n <= idle {
		t.Errorf("nothing was counted for a redriven message: %d scans", n)
	}
}
