package worker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
)

// Worker runs a handler over the deliveries of a source. Make one with New and
// call Run once.
type Worker struct {
	c     Config
	epoch time.Time       // when it was made, for measuring
	base  context.Context // of all handlers
	work  chan *batch
	stop  chan struct{} // closed by Abort or when draining has taken too long
	once  sync.Once
	speed speed

	mu      sync.Mutex
	batches []*batch           // those with something not settled
	outbox  []nixie.Settlement // decided, not settled
	owners  []sent             // whose they are, in step with outbox
	inHand  int                // received and not settled
	changed *sync.Cond         // inHand went down, or stopping

	stopping atomic.Bool // handlers are to end
	suspect  atomic.Bool // one message that vanished with a holder before is in hand
	wake     chan struct{}
	slots    []atomic.Pointer[run] // what each goroutine runs, for the watchdog
}

// sent says which run a settlement belongs to.
type sent struct {
	b *batch
	r *run
}

// ErrStuck is returned by Run when handlers ignore the end of their context.
// Their leases are not renewed any more, so that others get their messages.
var ErrStuck = errors.New("handlers ignore the end of their context")

// errStopping ends the contexts of handlers when the worker stops.
var errStopping = errors.New("worker stops")

// errLeaseLost ends the contexts of handlers whose lease is gone.
var errLeaseLost = errors.New("lease lost")

// New checks a config and makes a worker of it.
func New(c Config) (*Worker, error) {
	if c.Handler == nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "worker has no handler")
	}
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &Worker{
		c:     c,
		epoch: c.Clock(),
		work:  make(chan *batch, c.Concurrency),
		stop:  make(chan struct{}),
		wake:  make(chan struct{}, 1),
		slots: make([]atomic.Pointer[run], c.Concurrency),
	}
	w.changed = sync.NewCond(&w.mu)
	w.speed.init(c)
	return w, nil
}

// Run works until ctx ends and nothing is left in hand: it stops receiving,
// releases what has not started, gives handlers Drain to finish, then ends
// their contexts and releases those that stop because of it. Leases are renewed
// until the last handler has returned. The error is nil, or ErrStuck.
func (w *Worker) Run(ctx context.Context) error {
	w.base = context.WithoutCancel(ctx)
	var handlers, keepers sync.WaitGroup
	for i := range w.c.Concurrency {
		handlers.Add(1)
		go w.handle(i, &handlers, nil)
	}
	settling := make(chan struct{}) // closed when nothing more will be decided
	keepers.Add(3)
	keeping, endKeeping := context.WithCancel(w.base)
	go func() { defer keepers.Done(); w.settleLoop(settling) }()
	go func() { defer keepers.Done(); w.renewLoop(keeping) }()
	go func() { defer keepers.Done(); w.watch(keeping) }()

	w.receiveLoop(ctx)
	stuck := w.drain(&handlers)
	close(settling)
	endKeeping()
	keepers.Wait()
	if stuck {
		return ErrStuck
	}
	return nil
}

// Abort makes a Run whose context has ended not wait for running handlers: their
// contexts end now, and what stops because of it is released.
func (w *Worker) Abort() { w.once.Do(func() { close(w.stop) }) }

// InHand is how many deliveries are received and not settled.
func (w *Worker) InHand() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.inHand
}

// handle is the goroutine that runs handlers: it takes the next index of
// whatever batch is open.
func (w *Worker) handle(slot int, all *sync.WaitGroup, b *batch) {
	finished := false
	defer func() {
		if finished {
			all.Done()
			return
		}
		go w.handle(slot, all, b) // a handler ended this goroutine: another takes its place
	}()
	if b != nil {
		w.runThrough(slot, b)
	}
	for b = range w.work {
		w.runThrough(slot, b)
	}
	finished = true
}

func (w *Worker) runThrough(slot int, b *batch) {
	for i := b.next.Add(1) - 1; i < int64(len(b.runs)); i = b.next.Add(1) - 1 {
		w.one(slot, b, &b.runs[i])
	}
}

// one runs the handler on one delivery.
func (w *Worker) one(slot int, b *batch, r *run) {
	if !r.state.CompareAndSwap(waiting, running) {
		return // released or lost before it started
	}
	started := w.c.Clock()
	if !w.safe(b, started) {
		w.drop(b, r) // too late to start: the lease may end any moment
		return
	}
	if w.c.Timeout > 0 {
		r.deadline = started.Add(w.c.Timeout)
	}
	r.d.LentBy(r)
	w.slots[slot].Store(r)
	if w.stopping.Load() {
		r.end(errStopping)
	}
	guard(r, w.c.Handler, r.d, func(err error, _ bool) {
		w.slots[slot].Store(nil)
		ended := w.c.Clock()
		w.speed.add(ended.Sub(started))
		w.finish(b, r, err, started, ended)
	})
	if w.c.SettleEach {
		w.awaitSettled(r)
	}
}

func (w *Worker) awaitSettled(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r.state.Load() != settled {
		w.changed.Wait()
	}
}

// finish decides what becomes of a delivery and puts it into the outbox.
func (w *Worker) finish(b *batch, r *run, err error, started, ended time.Time) {
	why := r.Err()
	switch {
	case errors.Is(why, errLeaseLost):
		w.drop(b, r)
		return
	case errors.Is(why, errStopping) && err != nil:
		w.post(b, r, nixie.Settlement{Delivery: r.d, Verb: nixie.Release})
		return
	case errors.Is(why, context.DeadlineExceeded) && err != nil:
		err = timedOut(err, w.c.Timeout)
	}
	w.post(b, r, w.c.decide(r.d, err, started, ended))
}

// post hands a settlement to the settler.
func (w *Worker) post(b *batch, r *run, st nixie.Settlement) {
	r.state.Store(deciding)
	w.mu.Lock()
	w.outbox = append(w.outbox, st)
	w.owners = append(w.owners, sent{b, r})
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// drop forgets a delivery whose lease is gone: somebody else decides.
func (w *Worker) drop(b *batch, r *run) {
	r.state.Store(deciding)
	w.forget(b, r)
}

// forget counts a delivery as no longer in hand.
func (w *Worker) forget(b *batch, r *run) {
	r.state.Store(settled)
	if r.d.Crashes > 0 {
		w.suspect.Store(false)
	}
	last := b.open.Add(-1) == 0
	w.mu.Lock()
	w.inHand--
	if last {
		for i, have := range w.batches {
			if have == b {
				w.batches = append(w.batches[:i], w.batches[i+1:]...)
				break
			}
		}
	}
	w.changed.Broadcast()
	w.mu.Unlock()
}
