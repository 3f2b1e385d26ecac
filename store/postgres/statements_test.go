package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie/store/postgres"
)

// TestStatements prepares each statement of the folder sql in a migrated schema.
func TestStatements(t *testing.T) {
	schema := newSchema(t)
	t.Cleanup(func() { dropSchema(t, schema) })
	s, err := postgres.Open(t.Context(), server.URL, postgres.Options{Schema: schema})
	must(t, err)
	must(t, s.Close())
	conn, err := pgx.Connect(t.Context(), server.URL)
	must(t, err)
	t.Cleanup(func() { must(t, conn.Close(t.Context())) })
	list, args, err := postgres.Statements(schema)
	must(t, err)
	for name, text := range list {
		made, err := conn.Prepare(t.Context(), name, text)
		if err != nil {
			t.Errorf("sql/%s.sql: %v\n%s", name, err, text)
		} else if n := args[name]; n >= 0 && len(made.ParamOIDs) != n {
			t.Errorf("sql/%s.sql has %d arguments, its header names %d", name, len(made.ParamOIDs), n)
		}
	}
}
