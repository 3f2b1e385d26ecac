package loop

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/worker"
)

// engine is the worker of a loop. A group makes it anew, so that it beats.
type engine struct {
	mailbox string
	config  worker.Config
	worker  *worker.Worker
	joined  bool
	chosen  bool                            // the lease was given, and is no default
	ready   func(ctx context.Context) error // called when Run begins; nil does nothing

	stopping context.Context // of Run
	stop     context.CancelFunc
	begun    *atomic.Bool
	over     chan struct{} // closed when Run has ended
	beats    *beats
}

// beats has the last moment at which a loop was seen to be well.
type beats struct {
	clock func() time.Time
	last  atomic.Pointer[time.Time]
}

func (b *beats) beat() {
	now := b.clock()
	b.last.Store(&now)
}

// newEngine makes an engine with a lease by default.
func newEngine(mailbox string, c worker.Config, lease time.Duration) (engine, error) {
	if r := c.Renewal; c.Beat != nil || r.Every != 0 || r.For != 0 || r.While != nil {
		return engine{}, invalid("worker of the loop on %s has a beat or a renewal: a group sets them", mailbox)
	}
	e := engine{mailbox: mailbox, chosen: c.Lease != 0, begun: &atomic.Bool{}, over: make(chan struct{}), beats: &beats{clock: c.Clock}}
	if e.beats.clock == nil {
		e.beats.clock = time.Now
	}
	c.Lease, c.Beat = cmp.Or(c.Lease, lease), e.beats.beat
	w, err := worker.New(c)
	e.config, e.worker = c, w
	e.stopping, e.stop = context.WithCancel(context.Background())
	return e, explain(err)
}

// Name returns the name of the mailbox.
func (e *engine) Name() string { return e.mailbox }

// Abort ends the handlers that run, once the context of Run has ended; see [worker.Worker].
func (e *engine) Abort() { e.worker.Abort() }

// noStop takes back that the loop was told to stop. An error could be told to no one.
func (e *engine) noStop(ctx context.Context) {
	if s, ok := e.config.Source.(lease.Stopper); ok {
		_ = s.Stopping(ctx, false)
	}
}

// Running reports whether Run has begun and not ended.
func (e *engine) Running() bool {
	select {
	case <-e.over:
		return false
	default:
		return e.begun.Load()
	}
}

// Heartbeat returns when the loop was seen to be well the last time; zero before Run. While it runs
// it looks for work, or at what it has in hand, every 10 s at least, unless a call of its store or
// broker does not return.
func (e *engine) Heartbeat() time.Time {
	if last := e.beats.last.Load(); last != nil {
		return *last
	}
	return time.Time{}
}

// lease returns the visibility of what the loop has in hand, and whether it was given.
func (e *engine) lease() (lease time.Duration, chosen bool) { return e.config.Lease, e.chosen }

// raise gives the loop another lease. A source may not allow it.
func (e *engine) raise(lease time.Duration) (err error) {
	if e.joined {
		return nil // join refuses it
	}
	c := e.config
	c.Lease = lease
	if e.worker, err = worker.New(c); err == nil {
		e.config = c
	}
	return explain(err)
}

// wait returns how long the loop waits for work without a beat.
func (e *engine) wait() time.Duration { return e.worker.Wait() }

// join makes the worker beat, and renew leases as the group wants.
func (e *engine) join(c *GroupConfig, p *pulse) (err error) {
	if e.joined {
		return invalid("loop %s is in a group already: make another one", e.mailbox)
	}
	w := e.config
	w.Handler = p.around(w.Handler)
	w.Beat = func() { e.beats.beat(); p.own.beat() }
	w.Drain = cmp.Or(w.Drain, c.Grace)
	w.Renewal.While = func(d *nixie.Delivery) bool { return p.alive(d, c.Longest) }
	if w.Lease > c.ExtendFor { // a shorter one is renewed after each third of it
		w.Renewal.Every, w.Renewal.For = c.ExtendEvery, c.ExtendFor
	}
	e.worker, err = worker.New(w)
	e.joined = err == nil
	return explain(err)
}

// Run works until ctx ends, or Shutdown is called, or Until of its worker says so, and nothing is
// left in hand; see [worker.Worker]. It may be called once. Over a broker it refuses to begin while
// a channel for letters or notices is missing.
func (e *engine) Run(ctx context.Context) error {
	if e.begun.Swap(true) {
		return fail(ErrInvalidParameter, nixie.CodeConflict, "loop on %s has been run already: make a new one", e.mailbox)
	}
	defer close(e.over)
	defer e.stop()
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(e.stopping, end)()
	if e.ready != nil {
		if err := e.ready(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return e.worker.Run(ctx)
}

// Shutdown ends Run and waits until it has ended. Handlers may go on for the Drain of the worker,
// 30 s by default. When ctx ends before, the error has that in its chain. A loop that does not run
// yet ends as soon as it does.
func (e *engine) Shutdown(ctx context.Context) error {
	e.stop()
	if !e.begun.Load() {
		return nil
	}
	select {
	case <-e.over:
		return nil
	case <-ctx.Done():
		return nixie.Errorf(nixie.CodeUnavailable, "loop on %s has not ended, because a handler runs: wait longer, or call Abort: %w",
			e.mailbox, ctx.Err())
	}
}
