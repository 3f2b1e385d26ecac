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
	timed bool            // the clock is not ours
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
	suspects int        // those of them that vanished with a holder before
	draining bool
	over     bool // nothing more is taken in hand

	stopping atomic.Bool // handlers are to end
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
	timed := c.Clock != nil
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &Worker{
		c:     c,
		epoch: c.Clock(),
		timed: timed,
		work:  make(chan *batch, c.Concurrency),
		quit:  make(chan struct{}),
		stop:  make(chan struct{}),
		wake:  make(chan struct{}, 1),
		haste: make(chan struct{}, 1),
		slots: make([]slot, c.Concurrency),
		trays: make([]tray, min(c.Concurrency, runtime.GOMAXPROCS(0))),
		speed: speed{workers: c.Concurrency, lease: c.Lease, most: c.Prefetch},
	}
	if c.Recorder != nil {
		w.speed.ahead = recordAhead
	}
	_, w.usual = c.Decider.(*policy.Policy)
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
// ErrStuck, or of CodeConflict when Run was called before.
func (w *Worker) Run(ctx context.Context) error {
	if w.ran.Swap(true) {
		return nixie.Errorf(nixie.CodeConflict, "worker has been run already: make a new one with New")
	}
	w.base = context.WithoutCancel(ctx)
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
	if !idle || !kept {
		return ErrStuck
	}
	return nil
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

// handle is the goroutine that runs handlers: it takes the next stretch of
// whatever batch is open.
func (w *Worker) handle(s *slot, all *sync.WaitGroup, b *batch) {
	finished := false
	defer func() {
		if finished {
			all.Done()
			return
		}
		go w.handle(s, all, b) // a handler ended this goroutine: another takes its place
	}()
	for {
		if b != nil {
			w.runThrough(s, b)
		}
		w.hasten() // whoever has nothing to do is not to wait for others
		select {
		case b = <-w.work:
		case <-w.quit:
			finished = true
			return
		}
	}
}

func (w *Worker) runThrough(s *slot, b *batch) {
	s.at = w.now()
	for n := b.next.Add(1) - 1; n < int64(len(b.stretches)); n = b.next.Add(1) - 1 {
		if !w.runStretch(s, &b.stretches[n]) {
			return
		}
	}
	for n := range b.stretches { // what others have taken and not begun
		if !w.runStretch(s, &b.stretches[n]) {
			return
		}
	}
}

// runStretch begins what nobody has begun of a stretch. It reports whether to go on.
func (w *Worker) runStretch(s *slot, of *stretch) bool {
	for of.next.Load() < int64(len(of.runs)) {
		if w.c.SettleEach && s.last != nil && !s.last.recorded {
			if !w.awaitSettled(s.last) {
				return false
			}
			s.at = w.now()
		}
		i := of.next.Add(1) - 1
		if i >= int64(len(of.runs)) {
			return true
		}
		w.one(s, &of.runs[i])
	}
	return true
}

// awaitSettled waits until a run is settled. It gives up when nothing more is to
// be started.
func (w *Worker) awaitSettled(r *run) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r.state.Load() != settled && !w.draining {
		w.changed.Wait()
	}
	return !w.draining
}

// one runs the handler on one delivery.
func (w *Worker) one(s *slot, r *run) {
	started := s.at
	if !w.safe(r, started) {
		w.giveBack(r, started) // too late to start: the lease may end any moment
		return
	}
	if !w.allowed(s, r, started) {
		return
	}
	if !r.state.CompareAndSwap(waiting, running) {
		w.ended(s, r, nil, started)
		return // released or lost before it started
	}
	if w.c.Recorder != nil && w.c.Recorder.Record(nixie.StageBegun, r.d) != nil {
		r.state.Store(deciding)
		w.ended(s, r, nil, started)
		w.post(s.tray, r, &nixie.Settlement{Delivery: r.d, Verb: nixie.Release}) // a crash would look as if it had waited
		return
	}
	if w.c.Timeout > 0 {
		r.deadline = r.batch.moment(started).Add(w.c.Timeout)
	}
	r.d.LentBy(r)
	s.last = r
	s.now.Store(r)
	if w.stopping.Load() {
		r.end(ErrStopping, started)
	}
	w.call(s, r, started)
}

// call calls the handler. The deferred part also happens when the handler
// panics, or ends its goroutine instead of returning.
func (w *Worker) call(s *slot, r *run, started time.Duration) {
	returned := false
	var err error
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		} else if !returned {
			err = nixie.WithReason(errGoexit, nixie.ReasonPanic)
		}
		s.now.Store(nil)
		s.at = w.now()
		w.speed.add(s.at - started)
		w.finish(s, r, err, started, s.at)
	}()
	if err = damaged(r.d); err == nil {
		err = w.c.Handler.Handle(r, r.d)
	}
	returned = true
}

// finish decides what becomes of a delivery whose handler has returned.
func (w *Worker) finish(s *slot, r *run, err error, started, ended time.Duration) {
	why := r.close(ended)
	if !r.state.CompareAndSwap(running, deciding) {
		w.ended(s, r, nil, ended)
		w.c.Observer.OnTrouble(w.c.Queue, nixie.Errorf(nixie.CodeLeaseLost,
			"message %s: its handler returned long after its context had ended; the outcome does not count", r.d.ID))
		return
	}
	if err != nil && why == context.DeadlineExceeded {
		err = &lateError{w.c.Timeout, err}
		why = nil
	}
	st := nixie.Settlement{Delivery: r.d, Verb: nixie.Complete} // what a policy always says to a success
	if err != nil || !w.usual {
		st = w.c.decide(r.d, err, why != nil, r.batch.moment(started), r.batch.moment(ended))
	}
	w.ended(s, r, &st, ended)
	r.recorded = w.record(&st)
	w.post(s.tray, r, &st)
}

// record has a plain success kept by a source that can. What else becomes of a
// message is waited for: it may be the end of the job. So is what others wait
// for, the next of a stream.
func (w *Worker) record(st *nixie.Settlement) bool {
	d := st.Delivery
	return w.c.Recorder != nil && st.Verb == nixie.Complete && st.Failure == nil && st.Second == nil &&
		d.Stream == "" && len(d.NewSteps()) == 0 && !d.Completed() && w.c.Recorder.Record(nixie.StageSucceeded, d) == nil
}

// post hands a settlement to the settler.
func (w *Worker) post(t *tray, r *run, st *nixie.Settlement) {
	first := t.post(r, st)
	if !r.recorded {
		w.hasten()
	}
	if !first {
		return // somebody has woken the settler
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// hasten ends the rest of the settler.
func (w *Worker) hasten() {
	if w.c.Recorder == nil {
		return
	}
	select {
	case w.haste <- struct{}{}:
	default:
	}
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
