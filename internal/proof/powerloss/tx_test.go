package powerloss_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/faultdisk"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
)

// enclosed plays transactions of a caller, each of which encloses a row of its
// own, a message about it, a key of the inbox and the completion of the message
// before, and promises each once it is committed. It stops at the first error.
func enclosed(s *sqlite.Store, promise func(string)) error {
	ctx := context.Background()
	db, err := s.DB()
	if err != nil {
		return err
	}
	if _, err := db.Exec("create table app_row (key text primary key)"); err != nil {
		return err
	}
	for n := range 4 {
		key := fmt.Sprintf("k%d", n)
		before, err := s.Claim(ctx, "q", nixie.Want{Max: 1, Lease: time.Hour})
		if err != nil {
			return err
		}
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		if err := encloses(s.Tx(tx), tx, key, before); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		end := tx.Commit
		if n == 2 {
			end = tx.Rollback
		}
		if err := end(); err != nil {
			return err
		}
		if n != 2 {
			promise(key)
		}
	}
	return nil
}

func encloses(in *sqlite.Tx, tx *sql.Tx, key string, before []*nixie.Delivery) error {
	ctx := context.Background()
	if _, err := tx.Exec("insert into app_row (key) values (?)", key); err != nil {
		return err
	}
	if _, err := in.Enqueue(ctx, nixie.Message{Queue: "q", Key: key}); err != nil {
		return err
	}
	for _, d := range before {
		if err := in.Complete(ctx, d); err != nil {
			return err
		}
	}
	first, err := in.Once(ctx, "app", key)
	if err == nil && !first {
		err = fmt.Errorf("key %s is known before its time", key)
	}
	return err
}

// halves says what of a transaction is there without the rest of it, or was
// promised and is not there.
func halves(s *sqlite.Store, promises []string) error {
	ctx := context.Background()
	report, err := s.Check(ctx)
	if err != nil || len(report.Violations) > 0 {
		return fmt.Errorf("violations: %+v, %w", report.Violations, err)
	}
	db, err := s.DB()
	if err != nil {
		return err
	}
	var there [3][]string
	for i, query := range []string{
		"select key from app_row order by key",
		"select key from message where key <> 'after' order by key",
		"select key from inbox order by key",
	} {
		if i != 1 {
			tables := 0
			if err := db.QueryRow("select count(*) from sqlite_schema where name = 'app_row'").Scan(&tables); err != nil || tables == 0 {
				continue
			}
		}
		if there[i], err = texts(db, query); err != nil {
			return err
		}
	}
	if !slices.Equal(there[0], there[1]) || !slices.Equal(there[0], there[2]) || slices.Contains(there[0], "k2") {
		return fmt.Errorf("rows %v, messages %v, inbox %v", there[0], there[1], there[2])
	}
	for _, p := range promises {
		if !slices.Contains(there[0], p) {
			return fmt.Errorf("%s was committed and is not there: %v", p, there[0])
		}
	}
	ms, _, err := s.Messages(ctx, nixie.Filter{States: []nixie.State{nixie.Succeeded}}, store.Page{})
	if err != nil {
		return err
	}
	for _, m := range ms {
		if m.Key == "k0" && !slices.Contains(there[0], "k1") {
			return errors.New("k0 was completed without the rest of its transaction")
		}
	}
	return nil
}

func texts(db *sql.DB, query string) (list []string, err error) {
	found, err := db.Query(query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		text := ""
		if err := found.Scan(&text); err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, found.Err()
}

// TestPowerLossInTransaction lets the power go after every write and sync of
// transactions of the caller.
func TestPowerLossInTransaction(t *testing.T) {
	disk := faultdisk.New(t, "store")
	s, err := sqlite.Open(disk.Path("store.db"), sqlite.Options{VFS: disk.VFS(), Reserve: -1, LockWait: time.Millisecond})
	must(t, err)
	must(t, enclosed(s, disk.Mark))
	must(t, s.Close())
	proof.Run(t, "power-loss-transactions", func(t *testing.T, seed uint64) int {
		tally := faultdisk.EachCrash(t, disk, part(seed, faultdisk.Plan{Seeds: 1}), func(t *testing.T, c faultdisk.Crash) {
			s, err := sqlite.Open(c.Path("store.db"), sqlite.Options{Reserve: -1})
			if err != nil {
				t.Fatalf("%s: %v", c, err)
			}
			defer s.Close() //nolint:errcheck // it was only looked at
			if err := halves(s, c.Acked()); err != nil {
				t.Errorf("%s: %v", c, err)
			}
			if err := goesOn(s); err != nil {
				t.Errorf("%s: does not go on: %v", c, err)
			}
		})
		t.Logf("%d changes of the disk, %d crash points, %d different images", disk.Ops(), tally.Points, tally.Images)
		if tally.Points < 100/parts {
			t.Errorf("%d crash points, want %d", tally.Points, 100/parts)
		}
		return 1
	})
}

// inTransaction names the faults that a transaction of the caller can meet in a
// way of its own.
func inTransaction() []string {
	return []string{"read", "write", "write=13 short 512 always", "sync", "sync always", "shm-lock", "shm-lock=5130"}
}

// TestFailInTransaction fails each call to the disk, one after the other, during transactions
// of the caller, in each way.
func TestFailInTransaction(t *testing.T) { proof.Run(t, "faults-transactions", failInTransaction) }

func failInTransaction(t *testing.T, seed uint64) int {
	ran := 0
	for _, fault := range faultdisk.Catalog() {
		if !slices.Contains(inTransaction(), fault.String()) {
			continue // the other test shows it of the same file
		}
		ran++
		t.Run(fault.String(), func(t *testing.T) {
			struck := faultdisk.EachFault(t, fault, partOfCalls(seed), func(t *testing.T, disk *faultdisk.Disk) {
				var promises []string
				open := func() (*sqlite.Store, error) {
					return sqlite.Open(disk.Path("store.db"), sqlite.Options{VFS: disk.VFS(), Reserve: -1, LockWait: time.Millisecond})
				}
				s, err := open()
				if err == nil {
					_ = enclosed(s, func(p string) { promises = append(promises, p) }) // it ends where the fault strikes
					_ = s.Close()
				}
				disk.Heal()
				if s, err = open(); err != nil {
					t.Fatalf("after the fault: %v", err)
				}
				defer s.Close() //nolint:errcheck // it was only looked at
				if err := halves(s, promises); err != nil {
					t.Error(err)
				}
				if err := goesOn(s); err != nil {
					t.Errorf("does not go on: %v", err)
				}
			})
			t.Logf("%d faults", struck)
		})
	}
	if ran != len(inTransaction()) {
		t.Errorf("%d of %d faults are in the catalogue", ran, len(inTransaction()))
	}
	return 1
}
