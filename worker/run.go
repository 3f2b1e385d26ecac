package worker

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// run is one delivery in hand and the context of its handler. It makes a context of package context
// only when the handler needs one: making it costs more than all the rest of the loop.
type run struct {
	d        *nixie.Delivery
	batch    *batch
	leaseEnd atomic.Int64 // when the lease ends at the earliest, since the worker's epoch
	deadline time.Time    // set before the handler starts; zero is none
	state    atomic.Int32
	suspect  bool // it may run, and its message vanished with a holder before
	recorded bool // it succeeded, and the source keeps that; the handler's goroutine's own

	mu      sync.Mutex
	cause   error         // why it ended
	endedAt time.Duration // since the worker's epoch
	extras  *extras       // nil for most
}

// extras holds the parts of a run that only a few runs need.
type extras struct {
	derived context.Context
	cancel  context.CancelCauseFunc // of derived
	release context.CancelFunc      // of its timer, if it has one
	gone    chan struct{}           // closed when the lease is lost
	steps   []string                // finished, for renewals
}

// withExtras returns the extras of the run and makes them if needed. The caller holds the run's
// mutex.
func (r *run) withExtras() *extras {
	if r.extras == nil {
		r.extras = &extras{}
	}
	return r.extras
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
	_ lease.Watcher    = (*run)(nil)
	_ lease.StepKeeper = (*run)(nil)
)

// Deadline returns the end of the attempt's time, if it is limited.
func (r *run) Deadline() (time.Time, bool) { return r.deadline, !r.deadline.IsZero() }

// Done returns a channel that is closed when the attempt has to end.
func (r *run) Done() <-chan struct{} { return r.standard().Done() }

// Err tells how the context ended: canceled or past its deadline. [context.Cause] returns the
// reason.
func (r *run) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.extras != nil && r.extras.derived != nil:
		return r.extras.derived.Err()
	case r.cause == nil:
		return nil
	case r.cause == context.DeadlineExceeded:
		return r.cause
	}
	return context.Canceled
}

// Value returns a value of Run's context. Keys that package context itself uses, to derive a
// context or to find its cause, are not there: for them it asks the standard context.
func (r *run) Value(key any) any {
	if v := r.batch.worker.base.Value(key); v != nil {
		return v
	}
	return r.standard().Value(key)
}

// standard returns a context of package context that ends with the run.
func (r *run) standard() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.withExtras()
	if a.derived != nil {
		return a.derived
	}
	w := r.batch.worker
	parent := w.base
	if !r.deadline.IsZero() {
		parent, a.release = context.WithTimeout(parent, r.deadline.Sub(w.c.Clock()))
	}
	a.derived, a.cancel = context.WithCancelCause(parent)
	if r.cause != nil {
		a.cancel(r.cause)
	}
	return a.derived
}

// end ends the context and notes the time. It returns false if the context had ended before.
func (r *run) end(cause error, at time.Duration) (first bool) {
	r.mu.Lock()
	if r.cause != nil {
		r.mu.Unlock()
		return false
	}
	r.cause, r.endedAt = cause, at
	var cancel context.CancelCauseFunc
	if a := r.extras; a != nil {
		cancel = a.cancel
		if a.gone != nil && errors.Is(cause, ErrLeaseLost) {
			close(a.gone)
		}
	}
	r.mu.Unlock()
	if cancel != nil && cause != context.DeadlineExceeded {
		cancel(cause) // at the deadline the timer of the context does it, so that Err returns DeadlineExceeded
	}
	return true
}

// close ends the context because the handler has returned. It returns the cause if the context had
// ended before.
func (r *run) close(at time.Duration) (why error) {
	r.mu.Lock()
	why = r.cause
	var a extras
	if r.extras != nil {
		a = *r.extras
	}
	if why == nil && a.derived != nil {
		why = context.Cause(a.derived)
	}
	if r.cause == nil {
		r.cause = context.Canceled
	}
	r.endedAt = at
	r.mu.Unlock()
	if a.cancel != nil {
		a.cancel(nil)
	}
	if a.release != nil {
		a.release()
	}
	return why
}

// endedFor reports whether the context ended at least d ago.
func (r *run) endedFor(d, now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause != nil && now >= r.endedAt+d
}

// Lost implements lease.Watcher.
func (r *run) Lost() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.withExtras()
	if a.gone == nil {
		a.gone = make(chan struct{})
		if errors.Is(r.cause, ErrLeaseLost) {
			close(a.gone)
		}
	}
	return a.gone
}

// KeepSteps implements lease.StepKeeper.
func (r *run) KeepSteps(steps []string) {
	r.mu.Lock()
	r.withExtras().steps = steps
	r.mu.Unlock()
}

// claim stands for the delivery while its handler is at work on it.
func (r *run) claim() *nixie.Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	var steps []string
	if r.extras != nil {
		steps = r.extras.steps
	}
	return lease.Renewal(r.d, steps)
}

// batch holds the deliveries of one receive. All goroutines of handlers share it.
type batch struct {
	worker   *Worker
	size     int
	chunks   []chunk
	next     atomic.Int64  // index of the next chunk to take
	open     int           // runs not settled; guarded by the worker's mutex
	began    time.Time     // when it was received, by the clock
	received time.Duration // the same since the worker's epoch
	crashes  int           // most that one of its suspects has
}

// moment returns the time at a duration after the worker's epoch.
func (b *batch) moment(at time.Duration) time.Time { return b.began.Add(at - b.received) }

// chunk is runs side by side that one goroutine takes, so that goroutines do not
// get in each other's way for each of them. What it has not begun others may begin.
type chunk struct {
	next atomic.Int64 // index of the next run to start
	runs []run
	_    [cacheLine - 32]byte
}

// all returns the runs of a batch in their order.
func (b *batch) all() iter.Seq[*run] {
	return func(yield func(*run) bool) {
		for n := range b.chunks {
			runs := b.chunks[n].runs
			for i := range runs {
				if !yield(&runs[i]) {
					return
				}
			}
		}
	}
}

// newBatch makes a batch of chunks with length runs each.
func newBatch(w *Worker, ds []*nixie.Delivery, length int, now time.Time, leaseEnd time.Duration) *batch {
	b := &batch{worker: w, size: len(ds), open: len(ds), began: now, received: w.since(now)}
	b.chunks = make([]chunk, (len(ds)+length-1)/length)
	for n := range b.chunks {
		part := ds[n*length : min((n+1)*length, len(ds))]
		runs := make([]run, len(part))
		for i, d := range part {
			r := &runs[i]
			r.d, r.batch = d, b
			if len(d.Steps) > 0 {
				r.extras = &extras{steps: d.Steps}
			}
			r.leaseEnd.Store(int64(leaseEnd))
		}
		b.chunks[n].runs = runs
	}
	return b
}
