package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/storetest"
)

func TestShow6_OverviewsReadCounters(t *testing.T) {
	var stores [2]*postgres.Store // no other test uses them
	for i := range stores {
		var err error
		stores[i], err = postgres.Open(t.Context(), server.URL, postgres.Options{Schema: freshSchema(t), Owner: "owner"})
		must(t, err)
		defer func() { must(t, stores[i].Close()) }()
	}
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	defer conn.Close(t.Context()) //nolint:errcheck // it only looked
	storetest.Overviews(t, stores[0], stores[1], proof.Letters(), func() []string {
		rows, err := conn.Query(t.Context(), "select pid::text from pg_stat_activity where pid <> pg_backend_pid()")
		must(t, err)
		pids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		must(t, err)
		return pids
	})
}

// TestCountsAreFoldedByWhoNeverClaims takes letters in with a process that has no heartbeat: after
// many of them it adds the rows that count them to one for each hour and one for all hours.
func TestCountsAreFoldedByWhoNeverClaims(t *testing.T) {
	list, schema := crowd(t, 1)
	letters := make([]nixie.Letter, 3)
	for i := range letters {
		died := time.Now().Add(-time.Duration(i%2) * time.Hour)
		letters[i] = nixie.Letter{Message: nixie.Message{Queue: "q"}, Status: nixie.StatusOpen, Cause: nixie.CauseExhausted, DiedAt: died,
			FirstFailedAt: died, LastFailedAt: died}
	}
	adopt := func() {
		_, errs := list[0].Adopt(t.Context(), letters, "ann", "found")
		must(t, errors.Join(errs...))
	}
	counts := func(want string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), server.URL)
		must(t, err)
		defer func() { must(t, conn.Close(t.Context())) }()
		got := ""
		must(t, conn.QueryRow(t.Context(), `select string_agg(format('%s %s', n, letters), ', ' order by n) from (
			select case when not kept then 'new' when hour is null then 'all' else 'hour' end as n, letters from `+schema+`.death
			order by letters) d`).Scan(&got))
		if got != want {
			t.Errorf("the rows are %s, not %s", got, want)
		}
	}
	adopt()
	counts("new 1, new 2")
	adopt()
	list[0].Changed(t.Context(), postgres.FoldAtOnce-7)
	counts("new 1, new 1, new 2, new 2")
	list[0].Changed(t.Context(), 1)
	counts("all 6, hour 2, hour 4")
	adopt()
	list[0].Changed(t.Context(), postgres.FoldAtOnce-3)
	counts("all 9, hour 3, hour 6")
	report, err := list[0].Check(t.Context())
	must(t, err)
	if len(report.Violations) > 0 {
		t.Error(report.Violations)
	}
}
