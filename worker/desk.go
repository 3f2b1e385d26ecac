package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// Desk decides and settles without the loop, for callers that have one of their
// own. It is safe for concurrent use.
type Desk struct{ c Config }

// NewDesk checks a config and makes a desk of it. Handler, Concurrency,
// Prefetch, Timeout and Drain are not used.
func NewDesk(c Config) (*Desk, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Desk{c}, nil
}

// Receive claims deliveries to run. Those that must not be run, because a
// holder vanished with them, they expired or they were claimed too often, are
// judged and settled on the way and not returned.
func (k *Desk) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	if want.Lease == 0 {
		want.Lease = k.c.Lease
	}
	got, err := k.c.Source.Receive(ctx, want)
	if err != nil {
		return nil, err
	}
	run := got[:0]
	var judged []nixie.Settlement
	for _, d := range got {
		if st, judge := k.c.judge(d); judge {
			judged = append(judged, st)
			continue
		}
		run = append(run, d)
	}
	if len(judged) == 0 {
		return run, nil
	}
	return run, errors.Join(k.settle(ctx, judged)...)
}

// Done settles a delivery by the error of its handler; nil completes it. It
// returns the settlement that applied. An error of [nixie.CodeLeaseLost] says
// that somebody else decides by now.
func (k *Desk) Done(ctx context.Context, d *nixie.Delivery, err error, startedAt time.Time) (nixie.Settlement, error) {
	st := k.c.decide(d, err, startedAt, k.c.Clock())
	return st, k.settle(ctx, []nixie.Settlement{st})[0]
}

// Extend renews leases and saves new steps.
func (k *Desk) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	return k.c.Source.Extend(ctx, ds, lease)
}

func (k *Desk) settle(ctx context.Context, sts []nixie.Settlement) []error {
	errs := k.c.Source.Settle(ctx, sts)
	k.c.Observer.OnSettled(k.c.Queue, sts, errs)
	return errs
}

// judge settles what must not be run.
func (c *Config) judge(d *nixie.Delivery) (nixie.Settlement, bool) {
	now := c.Clock()
	if d.Abandoned {
		return c.Decider.Decide(d, c.Policy.Abandoned(d, now), now), true
	}
	if f := c.Policy.Admit(d, now); f != nil {
		return c.Decider.Decide(d, f, now), true
	}
	return nixie.Settlement{}, false
}

// decide turns the outcome of a handler into a settlement.
func (c *Config) decide(d *nixie.Delivery, err error, started, ended time.Time) nixie.Settlement {
	if err == nil {
		return nixie.Settlement{Delivery: d, Verb: nixie.Complete}
	}
	f := c.Policy.Diagnose(d, err, policy.Facts{StartedAt: started, FailedAt: ended, Worker: c.Name, Node: c.Node})
	st := c.Decider.Decide(d, f, ended)
	st.Delivery = d
	return st
}

// PanicError is a panic of a handler.
type PanicError struct {
	Value any
	Stack string
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// errGoexit is a handler that ended its goroutine instead of returning.
var errGoexit = errors.New("handler ended its goroutine: it has to return")

// errDamaged is a body that is not the one that was accepted.
var errDamaged = errors.New("body is damaged: its hash is not the one taken when it was accepted")

// guard calls the handler and turns a panic into an error. returned is false
// when the handler ended its goroutine, which then goes on ending.
func guard(ctx context.Context, h nixie.Handler, d *nixie.Delivery, finish func(err error, returned bool)) {
	returned := false
	var err error
	defer func() {
		if v := recover(); v != nil {
			stack := string(debug.Stack())
			err = nixie.WithEvidence(nixie.WithReason(&PanicError{v, stack}, nixie.ReasonPanic), nixie.Failure{Stack: stack})
			returned = true
		} else if !returned {
			err = nixie.WithReason(errGoexit, nixie.ReasonPanic)
		}
		finish(err, returned)
	}()
	if nixie.HashBody(d.Body) != d.Hash && d.Hash != (nixie.Hash{}) {
		err = nixie.WithReason(nixie.Permanent(errDamaged), nixie.ReasonSerialization)
	} else {
		err = h.Handle(ctx, d)
	}
	returned = true
}
