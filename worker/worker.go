package worker

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/policy"
)

// Worker runs a handler on each delivery of a source. Make one with New and call Run once.
//
// Locks and atomics:
//
//	mu                          guards the fields below it, and batch.open
//	breakers.mu                 guards the breakers; may be taken while mu is held
//	run.mu                      guards the context of a run; never held together with mu
//	run.state                   moves by compare-and-swap; see its states
//	shard.mu                    guards the settlements that wait in a shard
//	the settler's own goroutine owns outbox, retries and slow settlements
type Worker struct {
	c             Config
	epoch         time.Time       // the zero of its durations
	policyDecides bool            // a policy decides, and not foreign code
	base          context.Context // values for all handlers
	work          chan *batch
	quit          chan struct{} // closed when no handler is to start any more
	stop          chan struct{} // closed by Abort
	wake          chan struct{} // a shard is no longer empty
	urgent        chan struct{} // a goroutine waits for the settler
	look          chan struct{} // it is time to look for cancels
	nextLook      time.Duration // since the epoch; the watchdog's own
	busy          chan struct{} // there is something in hand for the watchdog, which is
	resting       atomic.Bool
	ran           atomic.Bool
	abort         sync.Once
	prefetch      prefetcher
	slots         []slot
	shards        []shard // settlements on their way to the settler

	breakers breakers
	halting  halting

	mu           sync.Mutex
	changed      *sync.Cond // inHand went down, or draining began
	batches      []*batch   // with a run that is not settled
	inHand       int        // deliveries received and not settled
	suspects     int        // those of them that may run, and vanished with a holder before
	suspectsWait bool       // the source may hold suspects back until nothing is in hand; only the receiver uses it
	draining     bool
	over         bool   // the worker takes no delivery any more
	onEmpty      func() // called when nothing is in hand; may be nil

	ending   atomic.Bool // no handler is to start any more
	stopping atomic.Bool // handlers have to end

	settling, renewing atomic.Int64 // when a call of the source has to end, since the epoch; 0 without one

	endRun context.CancelCauseFunc // ends Run
	why    atomic.Pointer[error]   // it ended by itself
}

// slot belongs to a goroutine that runs handlers. Other goroutines read only current.
type slot struct {
	current atomic.Pointer[run] // the run of the handler, for the watchdog
	last    *run                // the run before
	at      time.Duration       // the latest reading of the clock, the beginning of the next attempt

	shard *shard // takes the settlements

	pass pass // of the breakers, for the current run
}

// ErrStuck is the error of a Run whose handlers, or whose source, ignore the end of their context.
// The worker no longer renews their leases, so other workers get their messages.
var ErrStuck = errors.New("handlers or the source ignore the end of their context")

// ErrStopping is the cause of the end of a handler's context when the worker stops.
var ErrStopping = errors.New("worker stops")

// ErrLeaseLost is the cause of the end of a handler's context when its lease is gone. It is also
// the cause when the worker could not renew the lease, which then ends soon. After a cancel the
// cause is a [*CanceledError], which wraps it.
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
		c:        c,
		epoch:    c.Clock(),
		work:     make(chan *batch, c.Concurrency),
		quit:     make(chan struct{}),
		stop:     make(chan struct{}),
		wake:     make(chan struct{}, 1),
		urgent:   make(chan struct{}, 1),
		busy:     make(chan struct{}, 1),
		look:     make(chan struct{}, 1),
		slots:    make([]slot, c.Concurrency),
		shards:   make([]shard, min(c.Concurrency, runtime.GOMAXPROCS(0))),
		prefetch: prefetcher{workers: c.Concurrency, lease: c.Lease, most: c.Prefetch},
	}
	if c.ProgressLog != nil {
		w.prefetch.ahead = loggedAhead
	}
	switch c.Decider.(type) {
	case *policy.Policy, *policies:
		w.policyDecides = true
	}
	w.prefetch.single = c.SettleEach || c.Concurrency == 1
	for i := range w.slots {
		w.slots[i].shard = &w.shards[i%len(w.shards)]
	}
	w.breakers.rulesOf, w.breakers.awaited = c.policies.breakerOf, c.Awaited
	if _, ok := c.Source.(lease.BreakerKeeper); ok && c.Breaker.Failures >= 0 {
		w.breakers.told, w.breakers.fresh = make(chan struct{}, 1), map[breakerKey]bool{}
	}
	w.halting.after = c.HaltAfter
	w.breakers.lastTry = w.halting.lastTry
	w.changed = sync.NewCond(&w.mu)
	return w, nil
}

// Run works until ctx ends, or Until of its config says so, and nothing is left in hand. When ctx
// ends, it
//
//  1. tells the source that this process stops, if that is a [lease.Stopper], and receives no more,
//  2. releases deliveries that have not started,
//  3. gives handlers Drain to finish,
//  4. ends their contexts and releases those that stop because of that, at no cost,
//  5. settles for at most 30 s more, and leaves the rest to their leases.
//
// It renews leases until the last handler has returned. The error is one of these, and it is
// logged:
//
//	nil
//	a [*HaltedError]: nothing succeeded
//	[ErrStuck]
//	an error with [nixie.ErrClosed] in its chain: the source was closed too early
//	an error with [nixie.ErrHeldUp] in its chain: the source cannot keep an outcome
//	an error of [nixie.CodeConflict]: Run was called before
func (w *Worker) Run(ctx context.Context) error {
	if w.ran.Swap(true) {
		return nixie.Errorf(nixie.CodeConflict, "worker has been run already: make a new one with New")
	}
	w.base = context.WithoutCancel(ctx)
	asked := ctx
	ctx, w.endRun = context.WithCancelCause(ctx)
	defer w.endRun(nil)
	w.tellStopping(false)
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
	if teller, ok := w.c.Source.(lease.CancelTeller); ok {
		keepers.Go(func() { w.cancelLoop(keeping, teller) })
	}
	if w.breakers.told != nil {
		keepers.Go(func() { w.tellSource(keeping, w.c.Source.(lease.BreakerKeeper)) })
	}
	receiver.Go(func() { w.receiveLoop(ctx) })

	<-ctx.Done()
	w.ending.Store(true)
	if asked.Err() != nil {
		w.tellStopping(true)
	}
	idle := w.drain(&receiver, &handlers)
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	close(closing)
	endKeeping()
	kept := within(closed(&keepers), settleGrace+callLimit+stuckAfter)
	err := w.why.Load()
	switch {
	case err != nil:
		w.c.events.ended(*err)
		return *err
	case !idle || !kept:
		w.c.events.ended(ErrStuck)
		return ErrStuck
	}
	return w.halted()
}

// sourceClosed ends Run because its source was closed too early. The worker can settle nothing any
// more, so it ends the handlers too.
func (w *Worker) sourceClosed(err error) {
	why := nixie.Errorf(nixie.CodeUnavailable, "source of %s was closed under its worker: end Run before closing it: %w", w.c.Queue, err)
	if w.endWith(why) {
		w.Abort()
	}
}

// endWith ends Run with an error. It returns false if that has happened before.
func (w *Worker) endWith(why error) bool {
	first := w.why.CompareAndSwap(nil, &why)
	if first {
		w.endRun(why)
	}
	return first
}

// Abort shortens the drain to nothing: when Run's context has ended, the contexts of running
// handlers end at once. Run releases the deliveries whose handlers stop because of that.
func (w *Worker) Abort() { w.abort.Do(func() { close(w.stop) }) }

// InHand returns the number of deliveries that are received and not settled.
func (w *Worker) InHand() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.inHand
}

// forget takes runs out of the hand.
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
	if w.inHand == 0 && w.onEmpty != nil {
		w.onEmpty()
	}
	w.changed.Broadcast()
}

func (w *Worker) close(b *batch) {
	if i := slices.Index(w.batches, b); i >= 0 {
		w.batches = slices.Delete(w.batches, i, i+1)
	}
}

// openBatches returns the batches that have a run in hand.
func (w *Worker) openBatches() []*batch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.batches)
}
