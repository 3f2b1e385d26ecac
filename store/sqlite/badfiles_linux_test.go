package sqlite_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/sqlite"
)

// TestOpenBadStores says what opening tells of stores that something has happened to. None is
// changed by it.
func TestOpenBadStores(t *testing.T) {
	cut := func(size int64) func(*testing.T, string) {
		return func(t *testing.T, path string) { must(t, os.Truncate(path, size)) }
	}
	sql := func(text string) func(*testing.T, string) {
		return func(t *testing.T, path string) { script(t, path, text) }
	}
	for _, c := range []struct {
		name      string
		happens   func(t *testing.T, path string)
		mustExist bool
		code      nixie.Code // empty: it opens
		text      string
	}{
		{"cut to half", cut(1 << 17), true, nixie.CodeInternal, "is damaged: stop all writers, copy the file"},
		{"cut to a page", cut(4096), true, nixie.CodeInternal, "is damaged: stop all writers, copy the file"},
		{"cut in its header", cut(50), true, nixie.CodeInternal, "is damaged: stop all writers, copy the file"},
		{"empty", cut(0), true, nixie.CodeNotFound, "no store at "},
		{"empty, and may be made", cut(0), false, "", ""},
		{"cut to 0, with its log", func(t *testing.T, path string) {
			must(t, os.WriteFile(path+"-wal", []byte("what was written last"), 0o600))
			cut(0)(t, path)
		}, false, nixie.CodeInternal, "is damaged: it was cut to 0 bytes, and its log of writes is there: restore a copy of the store"},
		{"future build", sql("pragma user_version = 99"), true, nixie.CodeInvalid,
			"was made by another build (it has schema 99, ours is 5)"},
		{"other hash", sql("update nixie_migration set hash = 'f00d' where version = 2"), true, nixie.CodeInvalid,
			"was made by another build (its migration 2 is f00d, ours "},
		{"hash gone", sql("delete from nixie_migration where version = 1"), true, nixie.CodeInvalid,
			"was made by another build (its migration 1 is unknown, ours "},
		{"read-only disk", func(t *testing.T, path string) {
			must(t, syscall.Mount("", filepath.Dir(path), "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
		}, true, nixie.CodeUnavailable, "cannot be "},
		{"full disk", func(t *testing.T, path string) { fillUp(t, filepath.Dir(path), 0) }, true, nixie.CodeUnavailable,
			"is full: free some space and repeat, nothing was changed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(smallDisk(t, "size=2m"), "store.db")
			s, err := sqlite.Open(path, sqlite.Options{Reserve: -1})
			must(t, err)
			fill(t, s, "q", 1)
			must(t, s.Close())
			must(t, os.RemoveAll(path+"-owners"))
			c.happens(t, path)
			before, err := os.ReadFile(path)
			must(t, err)
			s, err = sqlite.Open(path, sqlite.Options{MustExist: c.mustExist, Reserve: -1})
			if c.code == "" {
				must(t, err)
				must(t, s.Close())
				return
			}
			if err == nil || nixie.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.text) {
				t.Errorf("told %v (%s), want %s with %q", err, nixie.CodeOf(err), c.code, c.text)
			}
			t.Logf("%-24s %v", c.name, err)
			after, err := os.ReadFile(path)
			must(t, err)
			if string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}
