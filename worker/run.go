package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
)

// run is one delivery in hand and the context of its handler. A context of
// package context is made only when the handler asks for something that needs
// one, because making it costs more than everything else in the loop together.
type run struct {
	d        *nixie.Delivery
	batch    *batch
	state    atomic.Int32
	leaseEnd atomic.Int64 // when the lease ends at the earliest, since the worker's epoch
	deadline time.Time    // set before the handler starts; zero is none
	recorded bool         // it succeeded, and the source keeps that; the handler's goroutine's own

	mu      sync.Mutex
	cause   error         // why it ended
	endedAt time.Duration // since the worker's epoch
	derived context.Context
	cancel  context.CancelCauseFunc // of derived
	release context.CancelFunc      // of its timer, if it has one
	gone    chan struct{}           // made when somebody asks; closed when the lease is lost
	steps   []string                // finished, for renewals
}

// The states of a run.
const (
	waiting  int32 = iota // in hand, not started
	running               // the handler has it
	deciding              // the handler has returned, or never got it
	settled               // nothing more to do
)

var (
	_ context.Context  = (*run)(nil)
	_ nixie.Lender     = (*run)(nil)
	_ nixie.StepKeeper = (*run)(nil)
)

// Deadline is when the attempt has to be over.
func (r *run) Deadline() (time.Time, bool) { return r.deadline, !r.deadline.IsZero() }

// Done is closed when the attempt has to end.
func (r *run) Done() <-chan struct{} { return r.standard().Done() }

// Err says how it ended: canceled or past its deadline. [context.Cause] says
// why.
func (r *run) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.derived != nil:
		return r.derived.Err()
	case r.cause == nil:
		return nil
	case r.cause == context.DeadlineExceeded:
		return r.cause
	}
	return context.Canceled
}

// Value looks among those of Run's context. What package context itself looks
// for, to derive from this one or to find its cause, is in none of those.
func (r *run) Value(key any) any {
	if v := r.batch.worker.base.Value(key); v != nil {
		return v
	}
	return r.standard().Value(key)
}

// standard is the context that others derive from.
func (r *run) standard() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.derived != nil {
		return r.derived
	}
	w := r.batch.worker
	parent := w.base
	if !r.deadline.IsZero() {
		parent, r.release = context.WithTimeout(parent, r.deadline.Sub(w.c.Clock()))
	}
	r.derived, r.cancel = context.WithCancelCause(parent)
	if r.cause != nil {
		r.cancel(r.cause)
	}
	return r.derived
}

// end ends the context and says since when, once.
func (r *run) end(cause error, at time.Duration) (first bool) {
	r.mu.Lock()
	if r.cause != nil {
		r.mu.Unlock()
		return false
	}
	r.cause, r.endedAt = cause, at
	if r.gone != nil && cause == ErrLeaseLost {
		close(r.gone)
	}
	cancel := r.cancel
	r.mu.Unlock()
	if cancel != nil && cause != context.DeadlineExceeded {
		cancel(cause) // at the deadline its own timer does, so that Err says so
	}
	return true
}

// close ends the context because the handler has returned, and says why it had
// ended before that, if it had.
func (r *run) close(at time.Duration) (why error) {
	r.mu.Lock()
	why = r.cause
	if why == nil && r.derived != nil {
		why = context.Cause(r.derived)
	}
	if r.cause == nil {
		r.cause = context.Canceled
	}
	r.endedAt = at
	cancel, release := r.cancel, r.release
	r.mu.Unlock()
	if cancel != nil {
		cancel(nil)
	}
	if release != nil {
		release()
	}
	return why
}

// endedFor reports whether the context ended at least d ago.
func (r *run) endedFor(d, now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause != nil && now >= r.endedAt+d
}

// Lost implements nixie.Lender.
func (r *run) Lost() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone == nil {
		r.gone = make(chan struct{})
		if r.cause == ErrLeaseLost {
			close(r.gone)
		}
	}
	return r.gone
}

// KeepSteps implements nixie.StepKeeper.
func (r *run) KeepSteps(steps []string) {
	r.mu.Lock()
	r.steps = steps
	r.mu.Unlock()
}

// claim stands for the delivery while its handler is at work on it.
func (r *run) claim() *nixie.Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.d.Claim(r.steps)
}

// batch is what one receive brought, shared by all handlers' goroutines.
type batch struct {
	worker   *Worker
	runs     []run
	next     atomic.Int64  // index of the next run to start
	open     int           // runs not settled; guarded by the worker's mutex
	received time.Duration // since the worker's epoch
	alone    bool          // runs with nothing beside it
}

func newBatch(w *Worker, ds []*nixie.Delivery, received, leaseEnd time.Duration) *batch {
	b := &batch{worker: w, runs: make([]run, len(ds)), open: len(ds), received: received}
	for i, d := range ds {
		r := &b.runs[i]
		r.d, r.batch, r.steps = d, b, d.Steps
		r.leaseEnd.Store(int64(leaseEnd))
	}
	return b
}
