package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/sqlite"
)

// A program takes the file of a store away, or one that belongs to it, while the store is
// open: no call that comes after is answered as if it were done, and no caller goes on trying.
func TestFileTakenAway(t *testing.T) {
	ways := map[string]func(path string) error{
		"deleted":          os.Remove,
		"log deleted":      func(path string) error { return os.Remove(path + "-wal") },
		"index deleted":    func(path string) error { return os.Remove(path + "-shm") },
		"folder renamed":   func(path string) error { return os.Rename(filepath.Dir(path), filepath.Dir(path)+"-old") },
		"replaced by copy": replace,
	}
	calls := map[string]func(t *testing.T, s *sqlite.Store, d *nixie.Delivery) error{
		"enqueue": func(t *testing.T, s *sqlite.Store, _ *nixie.Delivery) error {
			_, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q"})
			return err
		},
		"settle": func(t *testing.T, s *sqlite.Store, d *nixie.Delivery) error {
			return s.Settle(t.Context(), []nixie.Settlement{{Delivery: d, Verb: nixie.Complete}})[0]
		},
		"claim": func(t *testing.T, s *sqlite.Store, _ *nixie.Delivery) error {
			_, err := s.Claim(t.Context(), "q", nixie.Want{Max: 1})
			return err
		},
		"claim of nothing": func(t *testing.T, s *sqlite.Store, _ *nixie.Delivery) error {
			_, err := s.Claim(t.Context(), "empty", nixie.Want{Max: 1})
			return err
		},
		"transaction of the caller": enqueueInTx,
	}
	for way, take := range ways {
		for call, do := range calls {
			t.Run(way+", "+call, func(t *testing.T) {
				folder := filepath.Join(t.TempDir(), "store")
				must(t, os.Mkdir(folder, 0o700))
				s := open(t, filepath.Join(folder, "store.db"), sqlite.Options{Reserve: -1})
				fill(t, s, "q", 2)
				d := one(t, s, "q")
				_, err := s.DB() // it opens the file again
				must(t, err)
				must(t, enqueueInTx(t, s, nil))
				must(t, take(s.Path()))
				_, inspected := s.Inspect(t.Context())
				_, _, pinged := s.Ping(t.Context())
				for _, err := range []error{inspected, pinged} {
					if nixie.CodeOf(err) != nixie.CodeUnavailable {
						t.Errorf("a look at its health: %v", err)
					}
				}
				err = do(t, s, d)
				if code := nixie.CodeOf(err); code != nixie.CodeUnavailable && code != nixie.CodeOutcomeUnknown ||
					!errors.Is(err, nixie.ErrClosed) || !strings.Contains(err.Error(), "while it was in use") {
					t.Fatalf("%v (code %q)", err, code)
				}
				_, err = s.Enqueue(t.Context(), nixie.Message{Queue: "q"})
				if nixie.CodeOf(err) != nixie.CodeUnavailable || !strings.Contains(err.Error(), "start again") {
					t.Errorf("the next call: %v", err)
				}
			})
		}
	}
}

// replace replaces the file by a copy, as a restored backup is.
func replace(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".copy", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".copy", path)
}

func enqueueInTx(t *testing.T, s *sqlite.Store, _ *nixie.Delivery) error {
	db, err := s.DB()
	must(t, err)
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	_, err = s.Tx(tx).Enqueue(t.Context(), nixie.Message{Queue: "q"})
	must(t, err)
	return tx.Commit()
}

// A store that is reached by a link is not taken for another one.
func TestFileBehindALink(t *testing.T) {
	folder := t.TempDir()
	link := filepath.Join(folder, "link.db")
	must(t, os.WriteFile(filepath.Join(folder, "store.db"), nil, 0o600))
	if err := os.Symlink("store.db", link); err != nil {
		t.Skip(err)
	}
	s := open(t, link, sqlite.Options{Reserve: -1})
	fill(t, s, "q", 1)
	must(t, os.Remove(filepath.Join(folder, "store.db-wal")))
	if _, err := s.Enqueue(t.Context(), nixie.Message{Queue: "q"}); nixie.CodeOf(err) != nixie.CodeOutcomeUnknown {
		t.Errorf("the log was deleted: %v", err)
	}
}
