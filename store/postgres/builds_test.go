package postgres_test

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/postgres"
	"github.com/nixie-go/nixie/store/storetest"
)

// restored returns the name of a schema with the store that a build made.
func restored(t *testing.T, build string) string {
	t.Helper()
	schema := freshSchema(t)
	packed, err := os.Open(filepath.Join("testdata", "builds", build+".sql.gz"))
	must(t, err)
	defer func() { must(t, packed.Close()) }()
	dump, err := gzip.NewReader(packed)
	must(t, err)
	text, err := io.ReadAll(dump)
	must(t, err)
	run(t, server.URL, strings.ReplaceAll(string(text), "a_build", schema))
	return schema
}

// TestBuilds tries each verb on the stores that other builds made.
func TestBuilds(t *testing.T) {
	for _, build := range storetest.Builds {
		t.Run(build.Name, func(t *testing.T) {
			opts := postgres.Options{Schema: restored(t, build.Name)}
			schema, err := postgres.NewSchema(server.URL, opts)
			must(t, err)
			open := func(ctx context.Context) (store.Store, error) { return postgres.Open(ctx, server.URL, opts) }
			build.Run(t, open, schema)
		})
	}
}

// TestFrozenMigrations holds migrations that stores were made by. A change of them refuses all
// those stores: write a new migration instead, and add its hash here.
func TestFrozenMigrations(t *testing.T) {
	list, err := store.ReadMigrations(postgres.Migrations())
	must(t, err)
	storetest.Frozen(t, list,
		"a352bb9bde332989d1dbc30706f7ae79e29f95459be449aba044a72a7005cd7b",
		"7ce37c066da29563d57062186f867ee892f8bc320eb11aa2c0926ca687961495",
	)
}
