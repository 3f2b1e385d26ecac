package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
)

// run is one delivery in hand and the context of its handler. It is a context
// of its own instead of one made by package context, because making those costs
// more than everything else in the loop together.
type run struct {
	context.Context // of the worker: values only
	d               *nixie.Delivery
	state           atomic.Int32
	deadline        time.Time // zero is none

	mu        sync.Mutex
	err       error
	done      chan struct{} // made when somebody asks
	gone      chan struct{} // likewise; closed when the lease is lost
	callbacks map[int]func()
	next      int
}

// The states of a run.
const (
	waiting  int32 = iota // in hand, not started
	running               // the handler has it
	deciding              // the handler has returned, or never got it
	settled               // nothing more to do
)

// Deadline is when the attempt has to be over.
func (r *run) Deadline() (time.Time, bool) { return r.deadline, !r.deadline.IsZero() }

// Done is closed when the attempt has to end.
func (r *run) Done() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done == nil {
		r.done = make(chan struct{})
		if r.err != nil {
			close(r.done)
		}
	}
	return r.done
}

// Err says why.
func (r *run) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Lost implements nixie.Lender.
func (r *run) Lost() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone == nil {
		r.gone = make(chan struct{})
		if r.err == errLeaseLost { //nolint:errorlint // set by this package only, never wrapped
			close(r.gone)
		}
	}
	return r.gone
}

// AfterFunc lets package context derive from a run without a goroutine.
func (r *run) AfterFunc(f func()) (stop func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		go f() // as context.AfterFunc does; f is package context's own
		return func() bool { return false }
	}
	if r.callbacks == nil {
		r.callbacks = map[int]func(){}
	}
	key := r.next
	r.next++
	r.callbacks[key] = f
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		_, pending := r.callbacks[key]
		delete(r.callbacks, key)
		return pending
	}
}

// end ends the context with an error, once.
func (r *run) end(err error) {
	r.mu.Lock()
	if r.err != nil {
		r.mu.Unlock()
		return
	}
	r.err = err
	if r.done != nil {
		close(r.done)
	}
	if r.gone != nil && err == errLeaseLost { //nolint:errorlint // as above
		close(r.gone)
	}
	callbacks := r.callbacks
	r.callbacks = nil
	r.mu.Unlock()
	for _, f := range callbacks {
		f()
	}
}

// batch is what one receive brought, shared by all handlers' goroutines.
type batch struct {
	runs     []run
	next     atomic.Int64 // index of the next run to start
	open     atomic.Int64 // runs not settled
	leaseEnd atomic.Int64 // when the leases end, since the worker's epoch
}

func newBatch(base context.Context, ds []*nixie.Delivery, leaseEnd time.Duration) *batch {
	b := &batch{runs: make([]run, len(ds))}
	b.leaseEnd.Store(int64(leaseEnd))
	for i, d := range ds {
		b.runs[i].Context = base
		b.runs[i].d = d
	}
	b.open.Store(int64(len(ds)))
	return b
}
