package postgres_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Entries that one call made alike are rows together, and are listed, verified and
// pruned as if they were not.
func TestAlikeEntries(t *testing.T) {
	now := time.Now()
	list, schema := crowdAt(t, 1, func() time.Time { return now })
	s := list[0]
	bury := func(n int) {
		fill(t, s, n)
		ds, err := s.Claim(t.Context(), "q", nixie.Want{Max: n})
		must(t, err)
		var call []nixie.Settlement
		for _, d := range ds {
			call = append(call, nixie.Settlement{Delivery: d, Verb: nixie.Bury, Failure: &nixie.Failure{FailedAt: now, Text: "no"},
				Burial: &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen}})
		}
		for _, err := range s.Settle(t.Context(), call) {
			must(t, err)
		}
	}
	bury(1)
	bury(600)
	bury(3)
	if n := rowsOf(t, schema, "audit"); n != 6 {
		t.Errorf("604 entries of three calls are %d rows, want one, two and three", n)
	}

	entries := func() (all []store.AuditEntry) {
		for page := (store.Page{Limit: 7}); ; {
			list, next, err := s.Audit(t.Context(), store.AuditFilter{Chain: "q"}, page)
			must(t, err)
			if all = append(all, list...); next == "" {
				return all
			}
			page.Cursor = next
		}
	}
	all := entries()
	if len(all) != 604 {
		t.Fatalf("%d entries are listed", len(all))
	}
	for i := range all {
		e, before := &all[i], nixie.Hash{}
		if i > 0 {
			before = all[i-1].Hash
		}
		if e.Number != int64(i+1) || e.Before != before || e.Hash != e.Sum(before) || e.Event != store.OnBury || e.Subject.IsZero() {
			t.Fatalf("entry %d is %+v", i+1, e)
		}
	}
	for _, oldest := range []bool{true, false} {
		var found []store.AuditEntry
		for page := (store.Page{Limit: 100}); ; {
			list, next, err := s.Audit(t.Context(), store.AuditFilter{Oldest: oldest,
				Subjects: []nixie.ID{all[0].Subject, all[300].Subject, all[603].Subject}}, page)
			must(t, err)
			if found = append(found, list...); next == "" {
				break
			}
			page.Cursor = next
		}
		if !oldest {
			slices.Reverse(found)
		}
		if !slices.Equal(found, []store.AuditEntry{all[0], all[300], all[603]}) {
			t.Errorf("oldest first %v: the entries of three subjects are %+v", oldest, found)
		}
	}
	sound(t, s)

	now = now.Add(365 * 24 * time.Hour)
	gone, err := s.Prune(t.Context(), store.Pruning{})
	must(t, err)
	if gone.Entries != 603 {
		t.Errorf("%d entries were pruned, not all but the newest", gone.Entries)
	}
	if left := entries(); len(left) == 0 || left[0].Number != 604 || left[0].Before != all[602].Hash {
		t.Errorf("left are %+v", left)
	}
	sound(t, s)
}

// Each change of a row of many entries is found.
func TestChangedEntries(t *testing.T) {
	for _, change := range []string{
		"subjects[7] = subjects[8]", "subjects[7] = null", "hashes = overlay(hashes placing '\\x00' from 70)", "hashes = hashes || '\\x00'",
		"hashes = substr(hashes, 1, 600)", "subjects = subjects[1:19]", "reason = 'another'", "at = at + 1",
	} {
		list, schema := crowd(t, 1)
		fill(t, list[0], 20)
		ds, err := list[0].Claim(t.Context(), "q", nixie.Want{Max: 20})
		must(t, err)
		var call []nixie.Settlement
		for _, d := range ds {
			call = append(call, nixie.Settlement{Delivery: d, Verb: nixie.Bury,
				Burial: &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen}})
		}
		for _, err := range list[0].Settle(t.Context(), call) {
			must(t, err)
		}
		execute(t, "update "+schema+".audit set "+change)
		report, err := list[0].Check(t.Context())
		must(t, err)
		if !slices.ContainsFunc(report.Violations, func(v store.Violation) bool { return v.Rule == "audit-chain" }) {
			t.Errorf("%s: found were %+v", change, report.Violations)
		}
	}
}

// rowsOf counts the rows of a table.
func rowsOf(t *testing.T, schema, table string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer func() { must(t, conn.Close(context.Background())) }()
	must(t, conn.QueryRow(t.Context(), "select count(*) from "+schema+"."+table).Scan(&n))
	return n
}
