package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/nixie-go/nixie"
)

// turn makes processes that write take turns. SQLite lets a waiting writer
// sleep for up to 100 ms between its tries, so that one busy process starves
// the others. Here who waits first holds the gate while it waits for the seat:
// who leaves the seat comes to the gate behind it. Both are kernel locks of
// empty files, which go with their process. They are a courtesy: the truth is
// SQLite's own lock, which is taken next.
type writerQueue struct {
	folder     string
	wait       time.Duration
	gate, seat *os.File
}

// Pauses between two tries. Only the one at the head of the queue tries often.
const (
	nextPause = 50 * time.Microsecond
	gatePause = 500 * time.Microsecond
)

// open is called by the first transaction: a process that only reads needs none.
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

// take waits for this process's turn and reports whether it came in time and
// before ctx ended.
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

// leave ends the turn.
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
