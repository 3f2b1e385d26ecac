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

// fullPatience is the time that workers wait for room on a full disk, the same as for a server that
// restarts.
const fullPatience = 15 * time.Minute

// patience implements Patience of store.Features: how long a worker repeats a call after an error
// that says the disk is full.
func (s *Store) patience(err error) time.Duration {
	if s.broken.Load() == nil && (isFull(err) || resultOf(err) == sqlite.ResultIOErrWrite) {
		return fullPatience
	}
	return 0
}

// commitFailed decides what a failed COMMIT means, of the store or of a caller; undo is the error
// of the rollback. A COMMIT writes frames to the WAL, of which the last makes them a transaction,
// then syncs the WAL, then updates its index.
//
//	failed   transaction                             this process
//	write    absent, also after a crash              goes on
//	sync     unknown: a later sync may succeed       stops using the file
//	         without having written it
//	index    in the WAL, invisible: a crash brings   goes on, outcome unknown
//	         it back until the next commit
func (s *Store) commitFailed(cause, undo error) error {
	unknown := fmt.Errorf("commit failed, so it may or may not have happened: %w", cause)
	if undo != nil {
		return s.giveUp(nixie.CodeOutcomeUnknown, unknown)
	}
	result := resultOf(cause)
	if result == sqlite.ResultIOErrSHMSize {
		return nixie.Errorf(nixie.CodeOutcomeUnknown,
			"disk of store %s is full: free some space and repeat with the same keys: %w", s.path, unknown)
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

// rollback undoes the open transaction, unless SQLite has done so by itself.
func (s *Store) rollback(c conn) error {
	if c.AutocommitEnabled() {
		return nil
	}
	if err := c.run("rollback"); err != nil && !c.AutocommitEnabled() {
		return s.giveUp(nixie.CodeUnavailable, fmt.Errorf("roll back: %w", err))
	}
	return nil
}

// giveUp makes this process stop using the file. Opening it again recovers it.
func (s *Store) giveUp(code nixie.Code, cause error) error {
	why := fmt.Errorf("%w after an error of its file: start again: %w", nixie.ErrClosed, cause)
	later := nixie.Errorf(nixie.CodeUnavailable, "store %s is %w", s.path, why)
	s.broken.CompareAndSwap(nil, &later)
	return nixie.Errorf(code, "store %s is %w", s.path, why)
}

// isFull reports whether an error means that the disk is full: for a write, the index of the WAL or
// a lock file.
func isFull(err error) bool {
	result := resultOf(err)
	return result.ToPrimary() == sqlite.ResultFull || result == sqlite.ResultIOErrSHMSize ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// explain adds a code and advice to a driver's error.
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

// resultOf returns SQLite's code of an error of either driver.
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
		return nixie.Errorf(nixie.CodeUnavailable,
			"disk of store %s is full: free some space and repeat, nothing was changed: %w", path, err)
	}
	result := resultOf(err)
	if result == sqlite.ResultIOErrWrite {
		return nixie.Errorf(nixie.CodeUnavailable,
			"disk of store %s refused to be written: look for a quota that is used up and for a failing disk, nothing was changed: %w",
			path, err)
	}
	switch result.ToPrimary() {
	case sqlite.ResultReadOnly:
		return nixie.Errorf(nixie.CodeUnavailable, "store %s cannot be written: make file and folder writable: %w", path, err)
	case sqlite.ResultCantOpen, sqlite.ResultPerm, sqlite.ResultAuth:
		return nixie.Errorf(nixie.CodeUnavailable,
			"store %s cannot be opened: check that folder and file exist and may be written: %w", path, err)
	case sqlite.ResultNotADB:
		return nixie.Errorf(nixie.CodeInvalid, "%s is not a Nixie store: name another file: %w", path, err)
	case sqlite.ResultCorrupt:
		return nixie.Errorf(nixie.CodeInternal,
			"store %s is damaged: stop all writers, copy the file and run nixie verify on the copy: %w", path, err)
	case sqlite.ResultBusy, sqlite.ResultLocked:
		return nixie.Errorf(nixie.CodeUnavailable, "store %s is locked by another program: %w", path, err)
	}
	return nixie.Errorf(nixie.CodeUnavailable, "store %s: %w", path, err)
}
