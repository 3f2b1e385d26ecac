package worker

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// Worker runs a handler over the deliveries of a source. Make one with New and
// call Run once.
type Worker struct {
	c     Config
	epoch time.Time       // when it was made, for measuring
	usual bool            // a policy decides, and not foreign code
	base  context.Context // values for all handlers
	work  chan *batch
	quit  chan struct{} // closed when nothing more is to be started
	stop  chan struct{} // closed by Abort
	wake  chan struct{} // the outbox is not empty any more
	haste chan struct{} // something in it is waited for
	ran   atomic.Bool
	abort sync.Once
	speed speed
	slots []slot
	trays []tray // what slots have decided, for the settler

	circuits circuits

	mu       sync.Mutex
	changed  *sync.Cond // inHand went down, or draining began
	batches  []*batch   // those with something not settled
	inHand   int        // received and not settled
	suspects int        // those of them that are run, and vanished with a holder before
	wary     bool       // suspects may wait for an empty hand; the receiver's own
	draining bool
	over     bool   // nothing more is taken in hand
	emptied  func() // called when nothing is in hand; nil is nobody

	stopping atomic.Bool // handlers are to end

	leave  context.CancelCauseFunc // ends Run
	closed atomic.Pointer[error]   // the source was closed under it
}

// slot is a goroutine that runs handlers.
type slot struct {
	now  atomic.Pointer[run] // what it runs, for the watchdog
	last *run                // what it ran before; like at the goroutine's own
	at   time.Duration       // the latest reading of the clock, the beginning of the next attempt

	tray *tray // for what it decides

	tickets []ticket // of the breakers that let it begin what it runs
}

// ErrStuck is returned by Run when handlers, or the source, ignore the end of
// their context. Their leases are not renewed any more, so that others get
// their messages.
var ErrStuck = errors.New("handlers or the source ignore the end of their context")

// ErrStopping is the cause of the end of a handler's context when the worker
// stops.
var ErrStopping = errors.New("worker stops")

// ErrLeaseLost is the cause of the end of a handler's context when its lease is
// gone, or could not be renewed and ends soon.
var ErrLeaseLost = errors.New("lease is lost")

// New checks a config and makes a worker of it.
func New(c Config) (*Worker, error) {
	if c.Handler == nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "worker has no handler: set Handler")
	}
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &Worker{
		c:     c,
		epoch: c.Clock(),
		work:  make(chan *batch, c.Concurrency),
		quit:  make(chan struct{}),
		stop:  make(chan struct{}),
		wake:  make(chan struct{}, 1),
		haste: make(chan struct{}, 1),
		slots: make([]slot, c.Concurrency),
		trays: make([]tray, min(c.Concurrency, runtime.GOMAXPROCS(0))),
		speed: speed{workers: c.Concurrency, lease: c.Lease, most: c.Prefetch},
	}
	if c.ProgressLog != nil {
		w.speed.ahead = recordAhead
	}
	switch c.Decider.(type) {
	case *policy.Policy, *policies:
		w.usual = true
	}
	w.speed.single = c.SettleEach || c.Concurrency == 1
	for i := range w.slots {
		w.slots[i].tray = &w.trays[i%len(w.trays)]
	}
	w.circuits.rules = c.Breaker
	w.changed = sync.NewCond(&w.mu)
	return w, nil
}

// Run works until ctx ends and nothing is left in hand: it stops receiving,
// releases what has not started, gives handlers Drain to finish, then ends
// their contexts and releases those that stop because of it. Leases are renewed
// until the last handler has returned. What the source refuses to settle for
// longer than 30 s after that is left to its lease. The error is nil, or
// ErrStuck, or has [nixie.ErrClosed] in its chain because the source was closed
// before all that was in hand was settled, or is of CodeConflict when Run was
// called before. It is logged too.
func (w *Worker) Run(ctx context.Context) error {
	if w.ran.Swap(true) {
		return nixie.Errorf(nixie.CodeConflict, "worker has been run already: make a new one with New")
	}
	w.base = context.WithoutCancel(ctx)
	ctx, w.leave = context.WithCancelCause(ctx)
	defer w.leave(nil)
	var receiver, handlers, keepers sync.WaitGroup
	closing := make(chan struct{}) // closed when nothing more will be decided
	keeping, endKeeping := context.WithCancel(w.base)
	defer endKeeping()
	handlers.Add(len(w.slots))
	for i := range w.slots {
		go w.handle(&w.slots[i], &handlers, nil)
	}
	keepers.Go(func() { w.settleLoop(closing) })
	keepers.Go(func() { w.renewLoop(keeping) })
	keepers.Go(func() { w.watch(keeping) })
	receiver.Go(func() { w.receiveLoop(ctx) })

	<-ctx.Done()
	idle := w.drain(&receiver, &handlers)
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	close(closing)
	endKeeping()
	kept := within(closed(&keepers), lastSettling+callLimit+stuckAfter)
	err := w.closed.Load()
	switch {
	case err != nil:
		w.c.journal.ended(*err)
		return *err
	case !idle || !kept:
		w.c.journal.ended(ErrStuck)
		return ErrStuck
	}
	return nil
}

// gone ends Run because its source was closed under it: nothing can be settled any
// more, so handlers are ended too.
func (w *Worker) gone(err error) {
	why := nixie.Errorf(nixie.CodeUnavailable, "source of %s was closed under its worker: end Run before closing it: %w", w.c.Queue, err)
	if w.closed.CompareAndSwap(nil, &why) {
		w.Abort()
		w.leave(why)
	}
}

// Abort makes a Run whose context has ended or ends later not wait for running
// handlers: their contexts end at once, and what stops because of it is
// released.
func (w *Worker) Abort() { w.abort.Do(func() { close(w.stop) }) }

// InHand is how many deliveries are received and not settled.
func (w *Worker) InHand() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.inHand
}

// forget counts deliveries as no longer in hand.
func (w *Worker) forget(runs ...*run) {
	if len(runs) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range runs {
		r.state.Store(settled)
		w.inHand--
		if r.suspect {
			w.suspects--
		}
		if r.batch.open--; r.batch.open == 0 {
			w.close(r.batch)
		}
	}
	if w.inHand == 0 && w.emptied != nil {
		w.emptied()
	}
	w.changed.Broadcast()
}

func (w *Worker) close(b *batch) {
	for i, have := range w.batches {
		if have == b {
			w.batches = append(w.batches[:i], w.batches[i+1:]...)
			return
		}
	}
}

// openBatches are those with something in hand.
func (w *Worker) openBatches() []*batch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*batch(nil), w.batches...)
}
