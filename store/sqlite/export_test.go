package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store/engine"
)

// Waiting counts the calls that wait for the next transaction.
func (s *Store) Waiting() int { return len(s.writes) }

// Inside counts the running calls.
func (s *Store) Inside() int {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	return s.gate.inside
}

// SeatIsTaken reports whether a process has the seat of the writer queue.
func (s *Store) SeatIsTaken() (bool, error) {
	f, err := os.OpenFile(filepath.Join(s.path+lockFolder, "seat"), os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	free, err := tryLock(f)
	if e := f.Close(); err == nil {
		err = e
	}
	return !free, err
}

// Crash drops everything as kill -9 would: leases stay, the kernel lock goes.
func (s *Store) Crash() {
	s.gate.close()
	_ = s.shut()
}

// Run runs statements in one transaction of the store.
func (s *Store) Run(ctx context.Context, queries ...string) error {
	return s.write(ctx, 0, func(t *tx) error {
		for _, q := range queries {
			if err := t.run(q); err != nil {
				return err
			}
		}
		return nil
	})
}

// ClaimSlowly claims, and reads what it got when it is told to.
func (s *Store) ClaimSlowly(ctx context.Context, queue string, want nixie.Want) (read func() ([]*nixie.Delivery, error), err error) {
	var got claimed
	err = s.write(ctx, 0, func(t *tx) error { return t.leaseMessages(&got, queue, want, nil) })
	return func() ([]*nixie.Delivery, error) { return s.deliveries(ctx, queue, &got) }, err
}

// ProgressFile is the file of an owner with one lease in it.
func ProgressFile(pos, number int64, progress lease.Progress) []byte {
	file := append(progressHeader("boot"), make([]byte, slotSize)...)
	encodeSlot(file[slotSize:], leaseID{pos, number}, progress)
	return file
}

// ReadProgress reads the file of an owner in the same boot of the machine.
func ReadProgress(r io.Reader) map[[2]int64]lease.Progress {
	found := map[[2]int64]lease.Progress{}
	for lease, progress := range readProgress(r, "boot") {
		found[[2]int64{lease.pos, lease.number}] = progress
	}
	return found
}

// Waiters counts the claims that wait for work of a queue.
func (s *Store) Waiters(queue string) int {
	s.waiters.mu.Lock()
	defer s.waiters.mu.Unlock()
	return len(s.waiters.waiting[queue])
}

// Poll is one look of the watch, and whether it read at the queues.
func (s *Store) Poll(ctx context.Context, queues ...string) (read bool, err error) {
	_, err = s.findWork(ctx, queues)
	return s.watching.polls == 0, err
}

// BeginLate lets the connection of the caller say that the context has ended when a
// transaction had begun already, as the driver does now and then.
func BeginLate(raw any) error {
	s, ok := raw.(*session)
	if !ok {
		return fmt.Errorf("%T is no connection of the store", raw)
	}
	s.driverConn = lateConn{s.driverConn}
	return nil
}

type lateConn struct{ driverConn }

func (c lateConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	done, err := c.driverConn.ExecContext(ctx, query, args)
	if err == nil && strings.HasPrefix(query, "begin") {
		return nil, context.Canceled
	}
	return done, err
}

// InTransaction reports whether a connection of the caller is in one.
func InTransaction(raw any) bool {
	s, ok := raw.(*session)
	return ok && s.exec(context.Background(), "rollback") == nil
}

// SettleHeard settles, and returns the statements that this took and the number of rows that it
// wrote.
func (s *Store) SettleHeard(ctx context.Context, settlements ...nixie.Settlement) (run []string, rows int64, err error) {
	errs := make([]error, len(settlements))
	err = s.write(ctx, 0, func(t *tx) error {
		before, err := t.number("select total_changes()")
		if err != nil {
			return err
		}
		on := t.statements
		t.statements = heard{on, &run}
		if err := errors.Join(engine.Settle(t.verb(), settlements, errs), t.flush()); err != nil {
			return err
		}
		t.statements = on
		rows, err = t.number("select total_changes()")
		rows -= before
		return err
	})
	return run, rows, errors.Join(errors.Join(errs...), err)
}

// heard notes what is run.
type heard struct {
	statements
	list *[]string
}

func (h heard) run(query string, args ...any) error {
	*h.list = append(*h.list, query)
	return h.statements.run(query, args...)
}

func (h heard) each(query string, f func(row rows) error, args ...any) error {
	*h.list = append(*h.list, query)
	return h.statements.each(query, f, args...)
}

func (h heard) prepare(query string) (stmt, error) {
	*h.list = append(*h.list, query)
	return h.statements.prepare(query)
}

// NamingPlans returns how SQLite finds the letters and the messages that a filter names.
func (s *Store) NamingPlans(f *nixie.Filter) (letters, messages string, err error) {
	err = s.read(context.Background(), func(c conn) error {
		for _, named := range []struct {
			of    string
			where func(*nixie.Filter) (string, []any)
			plan  *string
		}{{"letter", letterNamed, &letters}, {"message", messageNamed, &messages}} {
			where, args := named.where(f)
			err := c.each("explain query plan select pos from "+named.of+" where "+where, func(row rows) error {
				*named.plan += row.ColumnText(3) + "\n"
				return nil
			}, args...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return letters, messages, err
}
