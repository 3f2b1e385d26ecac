package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
	"github.com/nixie-go/nixie/worker"
)

var errAfter = errors.New("after the end of the transaction")

// TestHandlerCompletes lets a handler complete its message in a transaction of
// its own, end that in each way, and return with and without an error.
func TestHandlerCompletes(t *testing.T) {
	for _, c := range []struct {
		name     string
		commit   bool
		err      error
		runs     int // until it has ended
		effects  int
		troubles int
	}{
		{"commit and nil", true, nil, 1, 1, 0},
		{"commit and error", true, errAfter, 1, 1, 1},
		{"rollback and error", false, errAfter, 2, 1, 0}, // the second run commits
		{"rollback and nil", false, nil, 1, 0, 0},        // completed by the worker
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, "", sqlite.Options{Reserve: -1})
			db, err := s.DB()
			must(t, err)
			execute(t, db, "create table effect (n integer)")
			fill(t, s, "q", 1)
			var mu sync.Mutex
			var troubles, lost []error
			runs, verbs := 0, []nixie.Verb(nil)
			ctx, stop := context.WithCancel(t.Context())
			done := work(t, ctx, s, func(ctx context.Context, d *nixie.Delivery) error {
				runs++
				return effect(ctx, s, db, d, c.commit || runs > 1, map[bool]error{true: c.err}[runs == 1])
			}, &nixie.Observer{
				Trouble: func(_ string, err error) { mu.Lock(); defer mu.Unlock(); troubles = append(troubles, err) },
				Settled: func(_ string, sts []nixie.Settlement, errs []error) {
					mu.Lock()
					defer mu.Unlock()
					for i, err := range errs {
						if err != nil {
							lost = append(lost, err)
						}
						if verbs = append(verbs, sts[i].Verb); sts[i].Verb == nixie.Complete {
							stop()
						}
					}
				},
			})
			must(t, <-done)
			rows := 0
			must(t, db.QueryRow("select count(*) from effect").Scan(&rows))
			if m := messages(t, s)[0]; m.State != nixie.Succeeded || m.Attempts != c.runs || runs != c.runs || rows != c.effects {
				t.Errorf("message is %s after %d attempts and %d runs, with %d effects", m.State, m.Attempts, runs, rows)
			}
			if len(verbs) != c.runs || len(troubles) != c.troubles || len(lost) != 0 {
				t.Errorf("observer saw %v, troubles %v, lost %v", verbs, troubles, lost)
			}
			storetest.Invariants(t, s)
		})
	}
}

// effect writes an effect and completes the message in one transaction.
func effect(ctx context.Context, s *sqlite.Store, db *sql.DB, d *nixie.Delivery, commit bool, after error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "insert into effect (n) values (1)"); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := s.Tx(tx).Complete(ctx, d); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	end := tx.Rollback
	if commit {
		end = tx.Commit
	}
	if err := end(); err != nil || d.Completed() != commit {
		return errors.Join(err, errors.New("delivery is not marked as the transaction ended"))
	}
	return after
}

func work(t *testing.T, ctx context.Context, s *sqlite.Store, h nixie.HandlerFunc, o *nixie.Observer) <-chan error {
	t.Helper()
	p, err := policy.New(policy.Config{Backoff: policy.Backoff{Formula: policy.Fixed, Base: time.Millisecond}})
	must(t, err)
	w, err := worker.New(worker.Config{Source: store.NewSource(s, "q"), Handler: h, Policy: p, Observer: o, Concurrency: 1})
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return done
}

// TestCompleteLate lets the lease end, and another claim the message, before
// the handler completes it: its effect is rolled back with the refusal.
func TestCompleteLate(t *testing.T) {
	a, b, clock := pair(t)
	db, err := a.DB()
	must(t, err)
	execute(t, db, "create table effect (n integer)")
	fill(t, a, "q", 1)
	late := one(t, a, "q")
	clock.Advance(2 * time.Minute)
	if err := effect(t.Context(), a, db, late, true, nil); nixie.CodeOf(err) != nixie.CodeLeaseLost {
		t.Fatalf("expired: %v", err)
	}
	next := one(t, b, "q")
	if err := effect(t.Context(), a, db, late, true, nil); nixie.CodeOf(err) != nixie.CodeLeaseLost {
		t.Fatalf("claimed again: %v", err)
	}
	must(t, effect(t.Context(), a, db, next, true, nil))
	rows := 0
	must(t, db.QueryRow("select count(*) from effect").Scan(&rows))
	if rows != 1 {
		t.Errorf("%d effects", rows)
	}
}

// TestTransactionsWaitInTheWriterQueue shows that transactions of the caller queue up
// with all writers. SQLite's own lock lets a busy process starve who waits for
// it.
func TestTransactionsWaitInTheWriterQueue(t *testing.T) {
	s := open(t, "", sqlite.Options{Reserve: -1})
	db, err := s.DB()
	must(t, err)
	for _, c := range []struct {
		opts   *sql.TxOptions
		end    func(*sql.Tx) error
		queued bool
	}{
		{nil, (*sql.Tx).Commit, true},
		{nil, (*sql.Tx).Rollback, true},
		{&sql.TxOptions{ReadOnly: true}, (*sql.Tx).Rollback, false},
	} {
		fill(t, s, "q", 1)
		tx, err := db.BeginTx(t.Context(), c.opts)
		must(t, err)
		inside, err := s.SeatIsTaken()
		must(t, err)
		must(t, c.end(tx))
		after, err := s.SeatIsTaken()
		must(t, err)
		if inside != c.queued || after {
			t.Errorf("%+v: has the seat inside %t, after it %t", c.opts, inside, after)
		}
	}
}

// TestLongTransaction shows what others are told while a transaction stays open.
func TestLongTransaction(t *testing.T) {
	s := open(t, "", sqlite.Options{Reserve: -1, LockWait: 50 * time.Millisecond})
	db, err := s.DB()
	must(t, err)
	tx := begin(t, s)
	_, err = s.Enqueue(t.Context(), nixie.Message{Queue: "q"})
	if nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Errorf("enqueue at the same time: %v", err)
	}
	if _, err := db.Begin(); nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Errorf("another transaction: %v", err)
	}
	if _, err := s.Queues(t.Context(), store.QueueQuery{}); err != nil {
		t.Errorf("a reader: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := db.BeginTx(ended, nil); err == nil {
		t.Error("a transaction began for a caller who had left")
	}
	must(t, tx.Commit())
	fill(t, s, "q", 1)
	must(t, begin(t, s).Rollback())
}
