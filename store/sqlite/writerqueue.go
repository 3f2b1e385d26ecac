package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/nixie-go/nixie"
)

// writerQueue makes processes write alternately. Without it a waiting writer sleeps up to 100 ms
// between its tries in SQLite, so that one busy process starves the others. The process that waits
// first holds the gate while it waits for the seat; a process that leaves the seat queues at the
// gate behind it. Gate and seat are kernel locks of empty files, which end with their process. They
// only order the writers: SQLite's own lock, taken next, excludes them.
type writerQueue struct {
	folder     string
	wait       time.Duration
	gate, seat *os.File
}

// These are the pauses between two tries. Only the head of the queue tries often.
const (
	nextPause = 50 * time.Microsecond
	gatePause = 500 * time.Microsecond
)

// open opens the lock files at the first transaction: a process that only reads needs none.
func (q *writerQueue) open() error {
	if q.seat != nil {
		return nil
	}
	if err := os.MkdirAll(q.folder, 0o700); err != nil {
		return nixie.Errorf(nixie.CodeUnavailable, "folder for locks: %w", err)
	}
	gate, err := os.OpenFile(filepath.Join(q.folder, "gate"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nixie.Errorf(nixie.CodeUnavailable, "lock of the writers' queue: %w", err)
	}
	seat, err := os.OpenFile(filepath.Join(q.folder, "seat"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return errors.Join(nixie.Errorf(nixie.CodeUnavailable, "lock of the writers' queue: %w", err), gate.Close())
	}
	q.gate, q.seat = gate, seat
	return nil
}

// take waits for the seat and reports whether it came within wait and before ctx ended.
func (q *writerQueue) take(ctx context.Context) (bool, error) {
	if !canLock {
		return true, nil
	}
	if err := q.open(); err != nil {
		return false, err
	}
	patience, stop := context.WithTimeout(ctx, q.wait)
	defer stop()
	if in, err := lockBefore(patience, q.gate, gatePause); !in || err != nil {
		return false, err
	}
	in, err := lockBefore(patience, q.seat, nextPause)
	return in, errors.Join(err, unlock(q.gate))
}

// leave gives up the seat.
func (q *writerQueue) leave() error {
	if !canLock {
		return nil
	}
	return unlock(q.seat)
}

func (q *writerQueue) close() error {
	if q.seat == nil {
		return nil
	}
	return errors.Join(q.gate.Close(), q.seat.Close())
}

// lockBefore takes the lock of f unless ctx ends first.
func lockBefore(ctx context.Context, f *os.File, pause time.Duration) (bool, error) {
	if got, err := tryLock(f); got || err != nil {
		return got, err
	}
	again := time.NewTicker(pause)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case <-again.C:
		}
		if got, err := tryLock(f); got || err != nil {
			return got, err
		}
	}
}
