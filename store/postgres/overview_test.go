package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

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
