package runner

import (
	"context"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// Consumed is how the work on a channel of a broker went.
type Consumed struct {
	Channel   string `json:"channel"`
	Attempts  int64  `json:"attempts"` // commands started
	Succeeded int64  `json:"succeeded"`
	Retried   int64  `json:"retried"` // attempts that are repeated, here or by whoever comes next
	Dead      int64  `json:"dead"`    // letters
	Discarded int64  `json:"discarded"`

	Halted string `json:"-"` // why the work stopped by itself
}

// Consume runs the command on what a source hands out, until ctx ends, somebody
// halts it, or nothing came and nothing was in hand for idle; 0 is for ever. There
// is no store: what is retried or dies the source sees to.
func (r *Runner) Consume(ctx context.Context, from nixie.Source, idle time.Duration) (Consumed, error) {
	end, err := r.begin()
	if err != nil {
		return Consumed{}, err
	}
	defer end()
	c := &consumption{Source: from, r: r, moved: make(chan struct{}, 1)}
	w, err := r.workerOn(c, nil, 2)
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
		Retried: r.count.retried.Load(), Dead: r.count.buried.Load(), Discarded: r.count.discarded.Load(),
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
	inHand int
	unkept map[nixie.ID]bool // whose last settlement failed; nil: never one did
}

// Receive implements nixie.Source.
func (c *consumption) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	got, err := c.Source.Receive(ctx, want)
	c.r.trouble.note(ctx, receiving, err)
	c.move(len(got))
	return got, err
}

// Settle implements nixie.Source.
func (c *consumption) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	errs := c.Source.Settle(ctx, settlements)
	ended := 0
	var failed error
	for i := range settlements[:min(len(settlements), len(errs))] {
		err := errs[i]
		kept := err == nil || nixie.CodeOf(err) == nixie.CodeLeaseLost
		c.keep(settlements[i].Delivery.ID, kept)
		if kept {
			ended++
		} else if failed == nil {
			failed = err
		}
	}
	c.r.trouble.note(ctx, settling, failed)
	c.move(-ended)
	return errs
}

// keep notes whether an outcome is kept.
func (c *consumption) keep(id nixie.ID, kept bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !kept && c.unkept == nil:
		c.unkept = map[nixie.ID]bool{id: true}
	case !kept:
		c.unkept[id] = true
	case c.unkept != nil:
		delete(c.unkept, id)
	}
}

// LeasesLost implements [nixie.Alarm] where the source does.
func (c *consumption) LeasesLost() <-chan struct{} {
	if alarm, ok := c.Source.(nixie.Alarm); ok {
		return alarm.LeasesLost()
	}
	return nil
}

// Slow implements [nixie.Slow] where the source does.
func (c *consumption) Slow(st *nixie.Settlement) bool {
	slow, ok := c.Source.(nixie.Slow)
	return ok && slow.Slow(st)
}

func (c *consumption) move(by int) {
	if by == 0 {
		return
	}
	c.mu.Lock()
	c.inHand += by
	c.mu.Unlock()
	select {
	case c.moved <- struct{}{}:
	default:
	}
}

// untilIdle ends the work when there was nothing to do for so long.
func (c *consumption) untilIdle(ctx context.Context, idle time.Duration, done context.CancelCauseFunc) {
	if idle == 0 {
		<-ctx.Done()
		return
	}
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.moved:
			timer.Reset(idle)
		case <-timer.C:
			c.mu.Lock()
			busy := c.inHand > 0
			c.mu.Unlock()
			if !busy {
				done(nil)
				return
			}
			timer.Reset(idle)
		}
	}
}

// brokerPatience is how long a broker may be away. Nothing is lost meanwhile, and
// nothing is started that could not be told of.
const brokerPatience = 5 * time.Minute
