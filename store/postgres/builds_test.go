package postgres_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
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
	for _, build := range storetest.Builds() {
		t.Run(build.Name, func(t *testing.T) {
			opts := postgres.Options{Schema: restored(t, build.Name)}
			schema, err := postgres.NewSchema(server.URL, opts)
			must(t, err)
			if !build.Refused { // an older one waits until who looks after it migrates
				_, err = schema.Up(t.Context(), 0, store.Grants{})
				must(t, err)
			}
			open := func(ctx context.Context) (store.Store, error) { return postgres.Open(ctx, server.URL, opts) }
			build.Run(t, open, schema)
		})
	}
}

// TestOpenBadStores says what opening tells of stores that something has happened to.
func TestOpenBadStores(t *testing.T) {
	schema := freshSchema(t)
	opts := postgres.Options{Schema: schema}
	list, err := store.ReadMigrations(postgres.Migrations())
	must(t, err)
	noHashes := ""
	for _, later := range slices.Backward(list[2:]) {
		noHashes += later.Down
	}
	noHashes += "delete from @.migration where version > 1; alter table @.migration drop column hash; "
	ours := len(list)
	for _, c := range []struct {
		name, happens string
		code          nixie.Code // empty: it opens
		text          string
	}{
		{"empty", "drop schema @ cascade; create schema @", "", ""},
		{"future build", fmt.Sprintf("insert into @.migration (version, name) values (%d, 'later')", ours+1), nixie.CodeInvalid,
			fmt.Sprintf("was made by another build (it has schema version %d, ours is %d)", ours+1, ours)},
		{"other hash", "update @.migration set hash = 'f00d' where version = 2", nixie.CodeInvalid,
			"was made by another build (its migration 2 is f00d, ours "},
		{"hash gone", "update @.migration set hash = null where version = 1", nixie.CodeInvalid,
			"was made by another build (its migration 1 is unknown, ours "},
		{"no hashes, and a column less", noHashes +
			"alter table @.queue drop column lease", nixie.CodeInvalid,
			"was made by another build (its schema differs: column-missing queue.lease)"},
		{"no hashes, and an index more", noHashes +
			"create index own_ids on @.message (id)", nixie.CodeConflict,
			fmt.Sprintf("has schema version 1, this program needs %d: run nixie migrate up", ours)},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, server.URL, "drop schema if exists "+schema+" cascade")
			s, err := postgres.Open(t.Context(), server.URL, opts)
			must(t, err)
			must(t, s.Close())
			run(t, server.URL, strings.ReplaceAll(c.happens, "@", schema))
			s, err = postgres.Open(t.Context(), server.URL, opts)
			if c.code == "" {
				must(t, err)
				must(t, s.Close())
				return
			}
			if err == nil || nixie.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
				t.Errorf("told %v (%s), want %s with %q", err, nixie.CodeOf(err), c.code, c.text)
			}
			t.Logf("%-30s %v", c.name, err)
		})
	}
}

// TestFrozenMigrations holds migrations that stores were made by. A change of them refuses all
// those stores: write a new migration instead, and add its hash here.
func TestFrozenMigrations(t *testing.T) {
	list, err := store.ReadMigrations(postgres.Migrations())
	must(t, err)
	storetest.Frozen(t, list,
		"07be02e6b7ed52ae52a67b5ce47b9f583351f5a117867f185416b5e78dc6512a",
		"7ce37c066da29563d57062186f867ee892f8bc320eb11aa2c0926ca687961495",
		"83246c02aee84334a34841695d9b92cf379db3187e517b05d7fcc41ab3b3895d",
		"c61d6e83182cf5e838134ec5204f0135eb70a9632963708c8b34abed8f580c23",
		"2f57b167cb8d1bb09cdbe1433e9bd2f3cc935669d403fc1ba7c46f9b5094208e",
		"2be2c61ab2cbab5a03bfc42482962a470d26a8cda656825097fa7d075372ca98",
		"94c1c5d7c7d29e97011c99b4300412f794957c419def24bee6d0455bc7e484f0",
	)
}

// A watch goes on where it was before its table became a space of documents, and back.
func TestWatchesGoOnAfterAMigration(t *testing.T) {
	opts := postgres.Options{Schema: freshSchema(t)}
	schema, err := postgres.NewSchema(server.URL, opts)
	must(t, err)
	_, err = schema.Up(t.Context(), 4, store.Grants{})
	must(t, err)
	run(t, server.URL, "insert into "+opts.Schema+`.watcher (name, state) values ('chat', '{"Cursor":"1"}')`)
	for range 2 {
		_, err = schema.Up(t.Context(), 0, store.Grants{})
		must(t, err)
		s, err := postgres.Open(t.Context(), server.URL, opts)
		must(t, err)
		found, _, err := s.Features().Documents.Find(t.Context(), store.DocumentQuery{Space: "watch"}, store.Page{})
		must(t, err)
		if len(found) != 1 || found[0].Key != "chat" || string(found[0].Value) != `{"Cursor":"1"}` {
			t.Errorf("documents %+v", found)
		}
		must(t, s.Close())
		_, err = schema.Down(t.Context(), 4, true)
		must(t, err)
	}
}
