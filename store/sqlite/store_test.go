package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// harness opens stores whose files lie in memory where the machine has a file
// system for that: what these tests look at does not depend on the disk.
var harness = storetest.Harness{
	Open: func(t testing.TB, clock *storetest.Clock) storetest.Shared {
		dir, err := os.MkdirTemp(fastFolder(), "nixie-store-") //nolint:usetesting // it lies on another file system
		if err != nil {
			t.Fatal(err)
		}
		var joined []*sqlite.Store
		return storetest.Shared{
			Join: func(owner string) store.Store {
				s, err := sqlite.Open(filepath.Join(dir, "store.db"), sqlite.Options{Clock: clock.Now, Owner: owner, Reserve: -1})
				if err != nil {
					t.Fatal(err)
				}
				joined = append(joined, s)
				return s
			},
			Crash: func(s store.Store) { s.(*sqlite.Store).Crash() },
			Close: func() {
				for _, s := range joined {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				}
				if err := os.RemoveAll(dir); err != nil {
					t.Error(err)
				}
			},
		}
	},
	Begin: func(ctx context.Context, st store.Store) (storetest.OpenTx, error) {
		s := st.(*sqlite.Store)
		db, err := s.DB()
		if err != nil {
			return storetest.OpenTx{}, err
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return storetest.OpenTx{}, err
		}
		return storetest.OpenTx{Tx: s.Tx(tx), Commit: tx.Commit, Rollback: tx.Rollback}, nil
	},
}

// fastFolder is a file system in memory, or "" for the usual folder.
func fastFolder() string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		return shm
	}
	return ""
}

func TestStore(t *testing.T)      { storetest.Run(t, harness) }
func BenchmarkStore(b *testing.B) { storetest.Bench(b, harness) }

// storePath is the path of a store that processes share.
func storePath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(fastFolder(), "nixie-processes-") //nolint:usetesting // it lies on another file system
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "store.db")
}

func unfinished(t *testing.T, s *sqlite.Store) int64 {
	t.Helper()
	qs, err := s.Queues(t.Context(), store.QueueQuery{})
	must(t, err)
	n := int64(0)
	for i := range qs {
		n += qs[i].Unfinished()
	}
	return n
}
