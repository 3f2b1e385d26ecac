package sqlite_test

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// unpacked returns the store that a build made, in a folder of its own.
func unpacked(t *testing.T, build string) string {
	t.Helper()
	packed, err := os.Open(filepath.Join("testdata", "builds", build+".db.gz"))
	must(t, err)
	defer func() { must(t, packed.Close()) }()
	unzipped, err := gzip.NewReader(packed)
	must(t, err)
	data, err := io.ReadAll(unzipped)
	must(t, err)
	path := filepath.Join(t.TempDir(), "store.db")
	must(t, os.WriteFile(path, data, 0o600))
	return path
}

// TestBuilds tries each verb on the stores that other builds made. A file that is refused stays as
// it was.
func TestBuilds(t *testing.T) {
	for _, build := range storetest.Builds() {
		t.Run(build.Name, func(t *testing.T) {
			path := unpacked(t, build.Name)
			before, err := os.ReadFile(path)
			must(t, err)
			schema, err := sqlite.NewSchema(path)
			must(t, err)
			open := func(context.Context) (store.Store, error) {
				return sqlite.Open(path, sqlite.Options{MustExist: true, Reserve: -1})
			}
			build.Run(t, open, schema)
			after, err := os.ReadFile(path)
			must(t, err)
			if build.Refused && string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}

// TestFrozenMigrations holds migrations that stores were made by. A change of them refuses all
// those stores: write a new migration instead, and add its hash here.
func TestFrozenMigrations(t *testing.T) {
	schema, err := sqlite.NewSchema(filepath.Join(t.TempDir(), "store.db"))
	must(t, err)
	list, err := schema.Up(t.Context(), 0, store.Grants{})
	must(t, err)
	storetest.Frozen(t, list,
		"5bdf719d00fb887ca340e6d64dff294c22a2e254787b276d6abed8cad27a6c0b",
		"ecd8c7d544392ae8905f13e6427bfc71405189923715d712a07d1906fea28ddb",
		"d6f69b349f5d17aef9e8abd5db584fdd904465e7cee117fd83f7ec406e8d9745",
		"51ad5542b5726e8df6ac345a0c749af1285b6799a41aeea0ea1a13730c28e3e2",
		"7b07a4d6165f5d453bd07231eb9b36236c0f3047ea793f22b05ebc8bc78f09cb",
	)
}

// A watch goes on where it was before its table became a space of documents, and back.
func TestWatchesGoOnAfterAMigration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	must(t, open(t, path, sqlite.Options{}).Close())
	schema, err := sqlite.NewSchema(path)
	must(t, err)
	_, err = schema.Down(t.Context(), 4, true)
	must(t, err)
	script(t, path, `insert into watcher (name, state) values ('chat', '{"Cursor":"1"}')`)
	for range 2 {
		_, err = schema.Up(t.Context(), 0, store.Grants{})
		must(t, err)
		s := open(t, path, sqlite.Options{})
		found, _, err := s.Features().Documents.Find(t.Context(), store.DocumentQuery{Space: "watch"}, store.Page{})
		must(t, err)
		if len(found) != 1 || found[0].Key != "chat" || string(found[0].Value) != `{"Cursor":"1"}` {
			t.Errorf("documents %+v", found)
		}
		report, err := s.Check(t.Context())
		must(t, err)
		if len(report.Violations) > 0 {
			t.Errorf("found %+v", report.Violations)
		}
		must(t, s.Close())
		_, err = schema.Down(t.Context(), 4, true)
		must(t, err)
	}
}
