package sqlite

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	modernc "modernc.org/sqlite"
	"zombiezen.com/go/sqlite"

	"github.com/nixie-go/nixie"
)

// fullPatience is how long those who work wait for room on a full disk: as long as
// for a server that is started again.
const fullPatience = 15 * time.Minute

// patience is that of store.Features: time to make room on a full disk.
func (s *Store) patience(err error) time.Duration {
	if s.broken.Load() == nil && (isFull(err) || resultOf(err) == sqlite.ResultIOErrWrite) {
		return fullPatience
	}
	return 0
}

// commitFailed decides what a failed COMMIT means, of ours or of a caller; undo is
// how rolling back went.
//
// A COMMIT writes frames to the log, of which the last makes them a transaction,
// then syncs it, then brings its index up to date. A write that was refused leaves
// no transaction, neither to readers nor to who recovers the log after a crash. If
// the index cannot grow, the transaction is in the log and nobody sees it: a crash
// would bring it back, until the next commit lies over it. After a sync that failed
// nobody knows what is on the disk, and the next one may succeed without having
// written that: this process must not go on with the file.
func (s *Store) commitFailed(cause, undo error) error {
	unknown := fmt.Errorf("commit failed, so it may or may not have happened: %w", cause)
	if undo != nil {
		return s.giveUp(nixie.CodeOutcomeUnknown, unknown)
	}
	result := resultOf(cause)
	if result == sqlite.ResultIOErrSHMSize {
		return nixie.Errorf(nixie.CodeOutcomeUnknown, "disk of store %s is full: free some space and repeat with the same keys: %w", s.path, unknown)
	}
	switch result.ToPrimary() {
	case sqlite.ResultFull, sqlite.ResultBusy, sqlite.ResultConstraint:
		return explain(s.path, cause)
	}
	if result == sqlite.ResultIOErrWrite {
		return explain(s.path, cause)
	}
	return s.giveUp(nixie.CodeOutcomeUnknown, unknown)
}

// rollback undoes the open transaction; SQLite may have done so by itself.
func (s *Store) rollback(c conn) error {
	if c.AutocommitEnabled() {
		return nil
	}
	if err := c.run("rollback"); err != nil && !c.AutocommitEnabled() {
		return s.giveUp(nixie.CodeUnavailable, fmt.Errorf("roll back: %w", err))
	}
	return nil
}

// giveUp ends all use of the file by this process: it has to be opened again,
// which recovers it.
func (s *Store) giveUp(code nixie.Code, cause error) error {
	why := fmt.Errorf("%w after an error of its file: start again: %w", nixie.ErrClosed, cause)
	later := nixie.Errorf(nixie.CodeUnavailable, "store %s is %w", s.path, why)
	s.broken.CompareAndSwap(nil, &later)
	return nixie.Errorf(code, "store %s is %w", s.path, why)
}

// isFull reports whether something failed for want of room on the disk: a write, the
// index of the log, or the file of a lock.
func isFull(err error) bool {
	result := resultOf(err)
	return result.ToPrimary() == sqlite.ResultFull || result == sqlite.ResultIOErrSHMSize ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// explain gives driver errors a code and says what to do.
func (s *Store) explain(ctx context.Context, err error) error {
	var ours *nixie.Error
	if err == nil || errors.As(err, &ours) {
		return err
	}
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	return explain(s.path, err)
}

// resultOf is SQLite's code for an error of either driver.
func resultOf(err error) sqlite.ResultCode {
	if theirs := (*modernc.Error)(nil); errors.As(err, &theirs) {
		return sqlite.ResultCode(theirs.Code())
	}
	return sqlite.ErrCode(err)
}

func explain(path string, err error) error {
	var ours *nixie.Error
	if err == nil || errors.As(err, &ours) {
		return err
	}
	if isFull(err) {
		return nixie.Errorf(nixie.CodeUnavailable, "disk of store %s is full: free some space and repeat, nothing was changed: %w", path, err)
	}
	result := resultOf(err)
	if result == sqlite.ResultIOErrWrite {
		return nixie.Errorf(nixie.CodeUnavailable, "disk of store %s refused to be written: look for a quota that is used up and for a failing disk, nothing was changed: %w", path, err)
	}
	switch result.ToPrimary() {
	case sqlite.ResultReadOnly:
		return nixie.Errorf(nixie.CodeUnavailable, "store %s cannot be written: make file and folder writable: %w", path, err)
	case sqlite.ResultCantOpen, sqlite.ResultPerm, sqlite.ResultAuth:
		return nixie.Errorf(nixie.CodeUnavailable, "store %s cannot be opened: check that folder and file exist and may be written: %w", path, err)
	case sqlite.ResultNotADB:
		return nixie.Errorf(nixie.CodeInvalid, "%s is not a Nixie store: name another file: %w", path, err)
	case sqlite.ResultCorrupt:
		return nixie.Errorf(nixie.CodeInternal, "store %s is damaged: stop all writers, copy the file and run nixie verify on the copy: %w", path, err)
	case sqlite.ResultBusy, sqlite.ResultLocked:
		return nixie.Errorf(nixie.CodeUnavailable, "store %s is locked by another program: %w", path, err)
	}
	return nixie.Errorf(nixie.CodeUnavailable, "store %s: %w", path, err)
}
