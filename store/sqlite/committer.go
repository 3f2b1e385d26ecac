package sqlite

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/nixie-go/nixie"
)

// Bounds of one transaction of the committer.
const (
	maxCalls      = 512
	maxCommitSize = 32 << 20 // bytes of bodies
)

// write is one caller's part of a transaction.
type write struct {
	do   func(*tx) error // may run again in a later transaction, so it resets its results first
	size int
	done chan error

	mu     sync.Mutex // held while do runs, which reads and writes memory of the caller
	ran    bool
	left   bool // the caller has left: do must not run any more
	passed bool // a transaction was committed without do
}

// run runs the caller's part, unless the caller has gone.
func (w *write) run(t *tx) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left {
		w.passed = true
		return nil
	}
	w.ran = true
	return w.do(t)
}

// leave takes the caller's part back and reports whether it has run, so that it may become durable.
// It waits while the part runs. With follow it does not take back a part that has run.
func (w *write) leave(follow bool) (ran bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = !w.ran || !follow
	return w.ran
}

// write runs do inside the next transaction and returns when that is durable.
func (s *Store) write(ctx context.Context, size int, do func(*tx) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.gate.leave()
	return s.submit(ctx, size, false, do)
}

// submit does what write does, for a call inside the gate. With follow it waits for the outcome
// once do has run, even if ctx ends.
func (s *Store) submit(ctx context.Context, size int, follow bool, do func(*tx) error) error {
	w := &write{do: do, size: size, done: make(chan error, 1)}
	select {
	case s.writes <- w:
	case <-ctx.Done():
		return stopped(ctx)
	}
	select {
	case err := <-w.done:
		return s.explain(context.Background(), err)
	case <-ctx.Done():
	}
	return s.leaveEarly(ctx, w, follow)
}

// leaveEarly returns the error for a caller whose ctx has ended. The transaction may have been
// committed without the caller's part, so a nil answer does not mean success then.
func (s *Store) leaveEarly(ctx context.Context, w *write, follow bool) error {
	if ran := w.leave(follow); !ran {
		return stopped(ctx)
	}
	if follow {
		return s.explain(context.Background(), <-w.done)
	}
	select {
	case err := <-w.done: // the commit has just ended
		if err == nil && w.passed { // the transaction that ran it was rolled back
			return stopped(ctx)
		}
		return s.explain(context.Background(), err)
	default:
	}
	return nixie.Errorf(nixie.CodeOutcomeUnknown,
		"the caller left while the commit ran, so it may or may not have happened: repeat it with the same keys: %w", context.Cause(ctx))
}

// commitLoop is the committer: the only goroutine that writes. Calls that arrive during one
// transaction form the next one; there is no timer.
func (s *Store) commitLoop(c conn) {
	defer close(s.idle)
	defer func() { _ = c.Close() }()
	group := make([]*write, 0, maxCalls)
	for first := range s.writes {
		if len(group) > 1 {
			waitForCallers(s.writes, len(group))
		}
		group = s.gather(append(group[:0], first))
		if err := s.broken.Load(); err != nil {
			answer(group, *err)
		} else {
			s.commitGroup(c, group)
			s.wal.restrain(c)
		}
		clear(group) // frees the memory of written messages
	}
}

// waitForCallers lets the callers that the last commit answered call again before the next commit
// begins. Otherwise callers alternate: each commit serves only half of them.
func waitForCallers(writes <-chan *write, answered int) {
	come := len(writes)
	all := come + answered
	for idle := 0; come < all && idle < 3; idle++ {
		runtime.Gosched()
		if n := len(writes); n > come {
			come, idle = n, 0
		}
	}
}

func (s *Store) gather(group []*write) []*write {
	size := group[0].size
	for len(group) < maxCalls && size < maxCommitSize {
		select {
		case w, open := <-s.writes:
			if !open {
				return group
			}
			group = append(group, w)
			size += w.size
		default:
			return group
		}
	}
	return group
}

func answer(group []*write, err error) {
	for _, w := range group {
		w.done <- err
	}
}

// maxAlone limits the failing calls that are taken out of a group one by one.
const maxAlone = 8

// commitGroup commits all calls in one transaction. It takes a failing call out and runs it again
// after the others, in a transaction of its own: its error may come from a call that was not
// durable yet. If the transaction fails for another reason, each call gets a transaction of its
// own.
func (s *Store) commitGroup(c conn, group []*write) {
	rest := slices.Clone(group)
	var alone []*write
	for len(rest) > 0 {
		failed, err := s.commit(c, rest)
		var begin *beginError
		if err == nil || len(group) == 1 || errors.As(err, &begin) || s.broken.Load() != nil ||
			nixie.CodeOf(err) == nixie.CodeOutcomeUnknown {
			answer(rest, err)
			break
		}
		if failed < 0 || len(alone) == maxAlone {
			alone = append(alone, rest...)
			break
		}
		alone = append(alone, rest[failed])
		rest = slices.Delete(rest, failed, failed+1)
	}
	for _, w := range alone {
		_, err := s.commit(c, []*write{w})
		w.done <- err
	}
}

// beginError wraps an error of begin, which no call has caused.
type beginError struct{ error }

func (e *beginError) Unwrap() error { return e.error }

// commit runs the calls in one transaction. It runs them again without those waiting claims that
// fail. After an error none of the calls has happened, unless the error has the code
// outcome-unknown. failed is the index of the call that caused it, or −1.
func (s *Store) commit(c conn, calls []*write) (failed int, err error) {
	for {
		failed, err = s.transact(c, calls)
		var theirs *serveError
		if !errors.As(err, &theirs) {
			return failed, err
		}
	}
}

func (s *Store) transact(c conn, calls []*write) (failed int, err error) {
	if err := s.broken.Load(); err != nil {
		return -1, *err
	}
	if err := s.begin(c); err != nil {
		return -1, &beginError{err}
	}
	defer func() {
		if e := s.writerQueue.leave(); e != nil && err == nil {
			_ = s.giveUp(nixie.CodeUnavailable, e) // the commit stays; other processes wait while this file is open
		}
	}()
	t := newTx(s, &s.added, c)
	var served []*waiter
	defer func() {
		for _, c := range served {
			c.done <- err
		}
	}()
	if failed, err = t.runAll(calls); err == nil {
		served, err = t.serve()
	}
	if err == nil {
		err = t.flush()
	}
	if err != nil {
		if rollback := s.rollback(c); rollback != nil {
			return -1, rollback
		}
		return failed, err
	}
	if err := c.run("commit"); err != nil {
		return -1, s.commitFailed(err, s.rollback(c))
	}
	if err := s.files.check(); err != nil {
		return -1, s.giveUp(nixie.CodeOutcomeUnknown, err)
	}
	t.committed()
	return -1, nil
}

// begin waits in the writer queue and begins a transaction. If the wait ends without the seat, the
// process that has it is stuck: begin then tries the store's own lock once.
func (s *Store) begin(c conn) error {
	in, err := s.writerQueue.take(context.Background())
	if err != nil {
		return err
	}
	if !in {
		c.SetBusyTimeout(0)
		defer c.SetBusyTimeout(s.opts.LockWait)
	}
	if err := c.run("begin immediate"); err != nil {
		return errors.Join(err, s.writerQueue.leave())
	}
	return nil
}

func (t *tx) runAll(calls []*write) (failed int, err error) {
	if err := t.readTime(); err != nil {
		return -1, err
	}
	for i, w := range calls {
		if err := w.run(t); err != nil {
			return i, err
		}
	}
	return -1, nil
}
