package histories_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof/histories"
	"github.com/nixie-go/nixie/internal/proof/testservers"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/store/sqlite"
)

func TestMemory(t *testing.T) { histories.Run(t, "histories-memory", inMemory(nil)) }
func TestSQLite(t *testing.T) { histories.Run(t, "histories-sqlite", onSQLite(nil)) }

// childArg as the first argument makes the test binary the process of a client:
// child <store> <owner> <file of the clock>.
const childArg = "child"

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == childArg {
		if err := child(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testservers.WithPostgres(m.Run, &server))
}

// defect breaks what a client calls; nil breaks nothing.
type defect func(*histories.Local)

func (breaks defect) on(l histories.Local) histories.Client {
	if breaks != nil {
		breaks(&l)
	}
	return l
}

func inMemory(breaks defect) histories.Harness {
	return histories.Harness{Open: func(_ testing.TB, clock *histories.Clock) histories.Shared {
		var first *memory.Store
		return histories.Shared{
			Join: func(owner string) (histories.Client, error) {
				if first == nil {
					first = memory.New(memory.Options{Clock: clock.Now, Owner: "first"})
				}
				s := first.Join(owner)
				return breaks.on(histories.Local{Store: s, Crash: s.Crash}), nil
			},
			Close: func() error { return nil },
		}
	}}
}

// onSQLite opens one file several times in this process, and by others.
func onSQLite(breaks defect) histories.Harness {
	return histories.Harness{Open: func(t testing.TB, clock *histories.Clock) histories.Shared {
		dir, err := os.MkdirTemp(fastFolder(), "nixie-histories-") //nolint:usetesting // it lies on another file system
		must(t, err)
		path, clockPath := filepath.Join(dir, "store.db"), filepath.Join(dir, "clock")
		file, err := os.Create(clockPath)
		must(t, err)
		must(t, clock.Tell(func(now time.Time) error {
			_, err := file.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(now.UnixNano())), 0)
			return err
		}))
		exe, err := os.Executable()
		must(t, err)
		keeper, err := sqlite.Open(path, sqlite.Options{Clock: clock.Now, Reserve: -1})
		must(t, err)
		db, err := keeper.DB()
		must(t, err)
		_, err = db.ExecContext(t.Context(), "create table app_effect (number integer, message blob, generation integer)")
		must(t, err)
		return histories.Shared{
			Join: func(owner string) (histories.Client, error) { return joinSQLite(path, owner, clock.Now, breaks) },
			Spawn: func(owner string) (histories.Client, error) {
				cmd := exec.Command(exe, childArg, path, owner, clockPath)
				cmd.Stderr = os.Stderr
				return histories.Process(cmd)
			},
			Effects: func() ([]histories.Effect, error) { return effects(t.Context(), db) },
			Close:   func() error { return errors.Join(keeper.Close(), file.Close(), os.RemoveAll(dir)) },
		}
	}}
}

func joinSQLite(path, owner string, clock func() time.Time, breaks defect) (histories.Client, error) {
	s, err := sqlite.Open(path, sqlite.Options{Clock: clock, Owner: owner, Reserve: -1})
	if err != nil {
		return nil, err
	}
	return breaks.on(histories.Local{Store: s, Begin: func(ctx context.Context) (histories.Tx, error) { return begin(ctx, s) }}), nil
}

// begin begins a transaction with the ledger.
func begin(ctx context.Context, s *sqlite.Store) (histories.Tx, error) {
	db, err := s.DB()
	if err != nil {
		return histories.Tx{}, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return histories.Tx{}, err
	}
	write := func(ctx context.Context, e histories.Effect) error {
		_, err := tx.ExecContext(ctx, "insert into app_effect (number, message, generation) values (?, ?, ?)", e.Number, e.Message[:],
			e.Generation)
		return err
	}
	return histories.Tx{Tx: s.Tx(tx), Write: write, Commit: tx.Commit, Rollback: tx.Rollback}, nil
}

func effects(ctx context.Context, db *sql.DB) (all []histories.Effect, err error) {
	rows, err := db.QueryContext(ctx, "select number, message, generation from app_effect")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e histories.Effect
		var id []byte
		if err := rows.Scan(&e.Number, &id, &e.Generation); err != nil {
			return nil, err
		}
		e.Message = nixie.ID(id)
		all = append(all, e)
	}
	return all, rows.Err()
}

// child is the inside of a client's process. It reads the time from the file that
// all share.
func child(path, owner, clockPath string) error {
	file, err := os.Open(clockPath)
	if err != nil {
		return err
	}
	clock := func() time.Time {
		var now [8]byte
		if _, err := file.ReadAt(now[:], 0); err != nil && !errors.Is(err, io.EOF) {
			fmt.Fprintln(os.Stderr, "clock:", err)
		}
		return time.Unix(0, int64(binary.BigEndian.Uint64(now[:])))
	}
	c, err := joinNamed(path, owner, clock)
	if err != nil {
		return err
	}
	return histories.Serve(os.Stdin, os.Stdout, c)
}

// fastFolder is a file system in memory, or "" for the usual folder.
func fastFolder() string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		return shm
	}
	return ""
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
