package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	zs "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/sqlite"
)

// TestOpenRefuses says what each file that is no store of ours is told.
func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
		opts sqlite.Options
		code nixie.Code
		text string
	}{
		{"missing", func(*testing.T, string) {}, sqlite.Options{MustExist: true}, nixie.CodeNotFound, "no store at"},
		{"folder", func(t *testing.T, p string) { must(t, os.Mkdir(p, 0o700)) }, sqlite.Options{}, nixie.CodeInvalid, "is a folder"},
		{"no database", func(t *testing.T, p string) {
			must(t, os.WriteFile(p, []byte(strings.Repeat("no database at all ", 100)), 0o600))
		}, sqlite.Options{}, nixie.CodeInvalid, "not a Nixie store"},
		{"other program", func(t *testing.T, p string) { script(t, p, "create table theirs (x)") }, sqlite.Options{}, nixie.CodeInvalid,
			"another program"},
		{"newer schema", func(t *testing.T, p string) {
			s, err := sqlite.Open(p, sqlite.Options{})
			must(t, err)
			must(t, s.Close())
			script(t, p, "pragma user_version = 99")
		}, sqlite.Options{}, nixie.CodeInvalid, "made by another build (it has schema 99, ours is 5): export it with that one"},
		{"no folder", func(*testing.T, string) {}, sqlite.Options{}, nixie.CodeUnavailable, "cannot be created"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			if c.name == "no folder" {
				path = filepath.Join(filepath.Dir(path), "missing", "store.db")
			}
			c.make(t, path)
			before, _ := os.ReadFile(path) // some rows have no file
			_, err := sqlite.Open(path, c.opts)
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the file was changed")
			}
			if nixie.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v (%s), want %s with %q", err, nixie.CodeOf(err), c.code, c.text)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func script(t *testing.T, path, sql string) {
	t.Helper()
	c, err := zs.OpenConn(path, zs.OpenReadWrite|zs.OpenCreate)
	must(t, err)
	must(t, sqlitex.ExecuteScript(c, sql, nil))
	must(t, c.Close())
}

// TestB088_Reserve refuses new messages while the disk has less than the reserve, and
// still settles those under way.
func TestB088_Reserve(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.Options{Reserve: -1})
	fill(t, s, "q", 1)
	must(t, s.Close())
	s = open(t, path, sqlite.Options{Reserve: 1 << 60})
	_, err := s.Enqueue(ctx, nixie.Message{Queue: "q"})
	if nixie.CodeOf(err) != nixie.CodeLimit || !strings.Contains(err.Error(), "reserve") {
		t.Errorf("got %v", err)
	}
	claim(t, s, 1, func(d *nixie.Delivery) nixie.Settlement {
		return nixie.Settlement{Delivery: d, Verb: nixie.Complete}
	})
}

// TestFileModes keeps what may hold payloads from other users.
func TestFileModes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s := open(t, path, sqlite.Options{})
	fill(t, s, "q", 1)
	for _, f := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(f)
		must(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", filepath.Base(f), info.Mode().Perm())
		}
	}
}
