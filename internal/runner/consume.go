package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/lease"
)

// Consumed counts the work on a channel of a broker.
type Consumed struct {
	Channel   string `json:"channel"`
	Attempts  int64  `json:"attempts"` // commands started
	Succeeded int64  `json:"succeeded"`
	Retried   int64  `json:"retried"` // attempts that will be repeated, here or by the next consumer
	Dead      int64  `json:"dead"`    // letters
	Discarded int64  `json:"discarded"`
	Left      int64  `json:"left"` // unfinished records when the work ended idle, with other members or unassigned
	End
}

// Consume runs the command on the deliveries of a source. It ends when ctx ends, or when an item
// halts it. It also ends when no record came and none was in hand for the time idle; 0 waits for
// ever. A source that is a [broker.Counter] must also have nothing left, or other members must have
// stood still for long. There is no store: the source keeps retries and letters.
func (r *Runner) Consume(ctx context.Context, from nixie.Source, idle time.Duration) (Consumed, error) {
	end, err := r.begin()
	if err != nil {
		return Consumed{}, err
	}
	defer end()
	c := newTracked(from, r)
	admits, err := r.defaults.admits.Policy()
	if err != nil {
		return Consumed{}, err
	}
	w, err := r.newWorker(c, admits, nil, 2)
	if err != nil {
		return Consumed{}, err
	}
	err = r.runWorker(ctx, w, func(ctx context.Context, done context.CancelCauseFunc) { c.untilIdle(ctx, idle, done) })
	if err != nil {
		return Consumed{}, err
	}
	if n := len(c.unsettled); n > 0 {
		r.c.Warn("%d outcomes could not be kept: the next consumer of the partitions gets those records again", n)
	}
	if err := r.stoppedUnanswered(); err != nil {
		return Consumed{}, err
	}
	return Consumed{
		Channel: r.c.Queues[0], Attempts: r.count.attempts.Load(), Succeeded: r.count.succeeded.Load(),
		Retried: r.count.retried.Load(), Dead: r.count.buried.Load(), Discarded: r.count.discarded.Load(), Left: c.left,
		End: r.end(false),
	}, nil
}

// tracked wraps a source and tracks the deliveries in hand, to tell when the work is idle.
type tracked struct {
	nixie.Source
	r        *Runner
	activity chan struct{} // wakes untilIdle: a delivery was received or settled

	mu        sync.Mutex
	inHand    map[leaseKey]bool
	unsettled map[nixie.ID]bool // messages whose last settlement failed; nil while none has

	left int64 // only the watcher writes it, before the worker ends
}

func newTracked(from nixie.Source, r *Runner) *tracked {
	return &tracked{Source: from, r: r, activity: make(chan struct{}, 1), inHand: map[leaseKey]bool{}}
}

// leaseKey identifies one lease of a message.
type leaseKey struct {
	id     nixie.ID
	number int64 // of the lease
}

func leaseKeyOf(d *nixie.Delivery) leaseKey { return leaseKey{d.ID, d.Lease.Number} }

// Receive implements nixie.Source.
func (c *tracked) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	got, err := c.Source.Receive(ctx, want)
	c.r.outage.note(ctx, receiving, err)
	c.mu.Lock()
	for _, d := range got {
		c.inHand[leaseKeyOf(d)] = true
	}
	c.mu.Unlock()
	if len(got) > 0 {
		wake(c.activity)
	}
	return got, err
}

// Extend implements nixie.Source. A delivery that is lost before it began is never settled.
func (c *tracked) Extend(ctx context.Context, deliveries []*nixie.Delivery, lease time.Duration) []error {
	errs := c.Source.Extend(ctx, deliveries, lease)
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, err := range errs[:min(len(errs), len(deliveries))] {
		if nixie.CodeOf(err) == nixie.CodeLeaseLost {
			delete(c.inHand, leaseKeyOf(deliveries[i]))
		}
	}
	return errs
}

// Settle implements nixie.Source.
func (c *tracked) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	errs := c.Source.Settle(ctx, settlements)
	ended := false
	var failed error
	for i := range settlements[:min(len(settlements), len(errs))] {
		err := errs[i]
		kept := err == nil || nixie.CodeOf(err) == nixie.CodeLeaseLost
		c.noteOutcome(settlements[i].Delivery, kept)
		if kept {
			ended = true
		} else if failed == nil && !errors.Is(err, nixie.ErrHeldUp) { // the worker ends with that
			failed = err
		}
	}
	c.r.outage.note(ctx, settling, failed)
	if ended {
		wake(c.activity)
	}
	return errs
}

// noteOutcome notes whether the source kept an outcome.
func (c *tracked) noteOutcome(d *nixie.Delivery, kept bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := d.ID
	if kept {
		delete(c.inHand, leaseKeyOf(d))
	}
	switch {
	case !kept && c.unsettled == nil:
		c.unsettled = map[nixie.ID]bool{id: true}
	case !kept:
		c.unsettled[id] = true
	case c.unsettled != nil:
		delete(c.unsettled, id)
	}
}

// LeasesLost implements [lease.LossNotifier] where the source does.
func (c *tracked) LeasesLost() <-chan struct{} {
	if alarm, ok := c.Source.(lease.LossNotifier); ok {
		return alarm.LeasesLost()
	}
	return nil
}

// MaxLease implements [lease.Renewer] where the source does.
func (c *tracked) MaxLease() time.Duration {
	if r, ok := c.Source.(lease.Renewer); ok {
		return r.MaxLease()
	}
	return 0
}

// Renew implements [lease.Renewer] where the source does.
func (c *tracked) Renew(ctx context.Context, d time.Duration) error {
	if r, ok := c.Source.(lease.Renewer); ok {
		return r.Renew(ctx, d)
	}
	return nil
}

// Slow implements [lease.SlowSettler] where the source does.
func (c *tracked) Slow(st *nixie.Settlement) bool {
	slow, ok := c.Source.(lease.SlowSettler)
	return ok && slow.Slow(st)
}

// Stopping implements [lease.Stopper] where the source does.
func (c *tracked) Stopping(ctx context.Context, told bool) error {
	if s, ok := c.Source.(lease.Stopper); ok {
		return s.Stopping(ctx, told)
	}
	return nil
}

// LastFailure implements [lease.Historian] where the source does.
func (c *tracked) LastFailure(ctx context.Context, d *nixie.Delivery) (*nixie.Failure, error) {
	if h, ok := c.Source.(lease.Historian); ok {
		return h.LastFailure(ctx, d)
	}
	return nil, nil
}

// untilIdle ends the work when there was nothing to do for the time idle, and nothing is left.
func (c *tracked) untilIdle(ctx context.Context, idle time.Duration, done context.CancelCauseFunc) {
	if idle == 0 {
		<-ctx.Done()
		return
	}
	timer := time.NewTimer(idle)
	defer timer.Stop()
	others := standstill{clock: c.r.c.Clock}
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.activity:
			timer.Reset(idle)
		case <-timer.C:
			switch left, err := c.remaining(ctx); {
			case c.busy() || len(c.activity) > 0 || c.r.heldBack().State != "":
				timer.Reset(idle)
			case err == nil && (left.All == 0 || others.lasts(left)):
				c.left = left.All
				done(nil)
				return
			default:
				timer.Reset(min(max(idle, minRecount), maxRecount))
			}
		}
	}
}

// Bounds of the time after which untilIdle asks a source again.
const (
	minRecount = 200 * time.Millisecond
	maxRecount = time.Second
)

func (c *tracked) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.inHand) > 0
}

// remaining asks the source for the number of records left, if it knows.
func (c *tracked) remaining(ctx context.Context) (broker.Remaining, error) {
	counter, ok := c.Source.(broker.Counter)
	if !ok || c.busy() {
		return broker.Remaining{}, nil
	}
	left, err := counter.Remaining(ctx)
	c.r.outage.note(ctx, counting, err)
	return left, err
}

// standstill notices that other members make no progress with the records left.
type standstill struct {
	clock func() time.Time
	all   int64
	since time.Time // of the first answer with this number; zero means none
}

// lasts reports whether the number left has been the same for longer than the broker needs to
// reassign the partitions of a vanished member. Records of this member do not count: it will get
// them.
func (s *standstill) lasts(left broker.Remaining) bool {
	now := s.clock()
	if left.Ours > 0 || left.All != s.all || s.since.IsZero() {
		s.all, s.since = left.All, now
	}
	return now.Sub(s.since) >= left.Within
}

// brokerPatience bounds the time that a broker may be away. Nothing is lost meanwhile, and no
// command starts whose outcome could not be reported.
const brokerPatience = 5 * time.Minute
