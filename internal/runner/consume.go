package runner

import (
	"context"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/lease"
)

// Consumed is how the work on a channel of a broker went.
type Consumed struct {
	Channel   string `json:"channel"`
	Attempts  int64  `json:"attempts"` // commands started
	Succeeded int64  `json:"succeeded"`
	Retried   int64  `json:"retried"` // attempts that are repeated, here or by whoever comes next
	Dead      int64  `json:"dead"`    // letters
	Discarded int64  `json:"discarded"`
	Left      int64  `json:"left"` // not done with when it ended for being idle: other members have them, or nobody

	Halted string `json:"-"` // why the work stopped by itself
}

// Consume runs the command on what a source hands out, until ctx ends, somebody
// halts it, or nothing came and nothing was in hand for idle; 0 is for ever. A source that
// is a [broker.Counter] has nothing left by then, or others have not moved for long. There
// is no store: what is retried or dies the source sees to.
func (r *Runner) Consume(ctx context.Context, from nixie.Source, idle time.Duration) (Consumed, error) {
	end, err := r.begin()
	if err != nil {
		return Consumed{}, err
	}
	defer end()
	c := newConsumption(from, r)
	admits, err := r.own.door.Policy()
	if err != nil {
		return Consumed{}, err
	}
	w, err := r.workerOn(c, admits, nil, 2)
	if err != nil {
		return Consumed{}, err
	}
	err = r.workWith(ctx, w, func(ctx context.Context, done context.CancelCauseFunc) { c.untilIdle(ctx, idle, done) })
	if err != nil {
		return Consumed{}, err
	}
	if n := len(c.unkept); n > 0 {
		r.c.Warn("%d outcomes could not be kept: whoever has the partitions next gets those records again", n)
	}
	all := Consumed{
		Channel: r.c.Queues[0], Attempts: r.count.attempts.Load(), Succeeded: r.count.succeeded.Load(),
		Retried: r.count.retried.Load(), Dead: r.count.buried.Load(), Discarded: r.count.discarded.Load(), Left: c.left,
	}
	if why := r.whyHalted(); why != nil {
		all.Halted = why.Error()
	}
	return all, nil
}

// consumption is a source that knows whether there is anything to do.
type consumption struct {
	nixie.Source
	r     *Runner
	moved chan struct{} // something was received or settled

	mu     sync.Mutex
	inHand map[loan]bool
	unkept map[nixie.ID]bool // whose last settlement failed; nil: never one did

	left int64 // of the watcher until the worker has ended
}

func newConsumption(from nixie.Source, r *Runner) *consumption {
	return &consumption{Source: from, r: r, moved: make(chan struct{}, 1), inHand: map[loan]bool{}}
}

// loan is one turn of a message.
type loan struct {
	id     nixie.ID
	number int64 // of the lease
}

func loanOf(d *nixie.Delivery) loan { return loan{d.ID, d.Lease.Number} }

// Receive implements nixie.Source.
func (c *consumption) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	got, err := c.Source.Receive(ctx, want)
	c.r.trouble.note(ctx, receiving, err)
	c.mu.Lock()
	for _, d := range got {
		c.inHand[loanOf(d)] = true
	}
	c.mu.Unlock()
	if len(got) > 0 {
		c.move()
	}
	return got, err
}

// Extend implements nixie.Source. What was lost before it began is never settled.
func (c *consumption) Extend(ctx context.Context, deliveries []*nixie.Delivery, lease time.Duration) []error {
	errs := c.Source.Extend(ctx, deliveries, lease)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, err := range errs[:min(len(errs), len(deliveries))] {
		if nixie.CodeOf(err) == nixie.CodeLeaseLost {
			delete(c.inHand, loanOf(deliveries[i]))
		}
	}
	return errs
}

// Settle implements nixie.Source.
func (c *consumption) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	errs := c.Source.Settle(ctx, settlements)
	ended := false
	var failed error
	for i := range settlements[:min(len(settlements), len(errs))] {
		err := errs[i]
		kept := err == nil || nixie.CodeOf(err) == nixie.CodeLeaseLost
		c.keep(settlements[i].Delivery, kept)
		if kept {
			ended = true
		} else if failed == nil {
			failed = err
		}
	}
	c.r.trouble.note(ctx, settling, failed)
	if ended {
		c.move()
	}
	return errs
}

// keep notes whether an outcome is kept.
func (c *consumption) keep(d *nixie.Delivery, kept bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := d.ID
	if kept {
		delete(c.inHand, loanOf(d))
	}
	switch {
	case !kept && c.unkept == nil:
		c.unkept = map[nixie.ID]bool{id: true}
	case !kept:
		c.unkept[id] = true
	case c.unkept != nil:
		delete(c.unkept, id)
	}
}

// LeasesLost implements [lease.LossNotifier] where the source does.
func (c *consumption) LeasesLost() <-chan struct{} {
	if alarm, ok := c.Source.(lease.LossNotifier); ok {
		return alarm.LeasesLost()
	}
	return nil
}

// Slow implements [lease.SlowSettler] where the source does.
func (c *consumption) Slow(st *nixie.Settlement) bool {
	slow, ok := c.Source.(lease.SlowSettler)
	return ok && slow.Slow(st)
}

// move says that something was received or settled.
func (c *consumption) move() {
	select {
	case c.moved <- struct{}{}:
	default:
	}
}

// untilIdle ends the work when there was nothing to do for so long, and nothing is left.
func (c *consumption) untilIdle(ctx context.Context, idle time.Duration, done context.CancelCauseFunc) {
	if idle == 0 {
		<-ctx.Done()
		return
	}
	timer := time.NewTimer(idle)
	defer timer.Stop()
	others := stillness{clock: c.r.c.Clock}
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.moved:
			timer.Reset(idle)
		case <-timer.C:
			switch left, err := c.remaining(ctx); {
			case c.busy() || len(c.moved) > 0:
				timer.Reset(idle)
			case err == nil && (left.All == 0 || others.over(left)):
				c.left = left.All
				done(nil)
				return
			default:
				timer.Reset(min(max(idle, lookSoonest), lookLatest))
			}
		}
	}
}

// Bounds of how soon a source is asked again what is left.
const (
	lookSoonest = 200 * time.Millisecond
	lookLatest  = time.Second
)

func (c *consumption) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.inHand) > 0
}

// remaining asks the source what is left, if it knows.
func (c *consumption) remaining(ctx context.Context) (broker.Remaining, error) {
	counter, ok := c.Source.(broker.Counter)
	if !ok || c.busy() {
		return broker.Remaining{}, nil
	}
	left, err := counter.Remaining(ctx)
	c.r.trouble.note(ctx, counting, err)
	return left, err
}

// stillness notices that others do not move with what is left.
type stillness struct {
	clock func() time.Time
	all   int64
	since time.Time // when it was first so many; zero: never
}

// over reports whether what is left has been the same for longer than it takes to take over
// from a member that vanished. What this member has comes in its time.
func (s *stillness) over(left broker.Remaining) bool {
	now := s.clock()
	if left.Ours > 0 || left.All != s.all || s.since.IsZero() {
		s.all, s.since = left.All, now
	}
	return now.Sub(s.since) >= left.Within
}

// brokerPatience is how long a broker may be away. Nothing is lost meanwhile, and
// nothing is started that could not be told of.
const brokerPatience = 5 * time.Minute
