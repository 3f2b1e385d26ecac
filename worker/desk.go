package worker

import (
	"context"
	"errors"
	"time"

	"github.com/nixie-go/nixie"
)

// Desk decides and settles for callers that have a loop of their own. It is safe for concurrent
// use. It renews nothing by itself.
type Desk struct{ c Config }

// NewDesk checks a config and makes a desk of it. Of Handler it knows the attempts and the backoffs
// of its routes. Concurrency, Prefetch, Timeout, Drain, Use and SettleEach are not used.
func NewDesk(c Config) (*Desk, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Desk{c}, nil
}

// Receive claims deliveries and returns those to run. It settles the others itself: a holder
// vanished with them, they have expired, they were claimed too often, or their body is damaged. If
// that fails, it tells the observer, and returns the error only if there is nothing to run. The
// source delivers those messages again when their leases end.
func (k *Desk) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	if want.Lease == 0 {
		want.Lease = k.c.Lease
	}
	got, err := k.c.receive(ctx, want)
	return k.take(ctx, got, err)
}

// take settles deliveries that must not run, and returns the others.
func (k *Desk) take(ctx context.Context, got []*nixie.Delivery, err error) ([]*nixie.Delivery, error) {
	if err == nil {
		k.c.events.over(receiving)
	}
	if len(got) == 0 {
		return nil, err
	}
	k.c.Observer.Received(k.c.Queue, got)
	now := k.c.Clock()
	var run []*nixie.Delivery
	var judged []nixie.Settlement
	for _, d := range got {
		st, refused := k.c.judge(ctx, d, now)
		if bad := damaged(d); !refused && bad != nil {
			st, refused = k.c.decide(d, bad, nil, now, now), true
		}
		if refused {
			judged = append(judged, st)
		} else {
			run = append(run, d)
		}
	}
	if len(judged) > 0 {
		err = errors.Join(append(k.c.settle(ctx, judged), err)...)
	}
	if err != nil && len(run) > 0 {
		k.c.trouble(receiving, err)
		return run, nil
	}
	return run, err
}

// Done settles a delivery by the error of its handler; nil completes it. It returns the settlement
// that applied: Complete if the handler completed the message in a transaction of its own. Two
// errors need the caller's attention:
//
//	[nixie.CodeLeaseLost]       another worker decides about the message now
//	[nixie.CodeOutcomeUnknown]  the settlement may have happened: call Done again
func (k *Desk) Done(ctx context.Context, d *nixie.Delivery, err error, startedAt time.Time) (nixie.Settlement, error) {
	sts := []nixie.Settlement{k.decide(d, err, startedAt)}
	err = k.c.settle(ctx, sts)[0]
	return sts[0], k.settleRefused(ctx, sts, err)
}

// Outcome says how a delivery went.
type Outcome struct {
	Delivery  *nixie.Delivery
	Err       error     // of the handler; nil completes
	StartedAt time.Time // of the handler; zero: it was not begun, and is released
}

// Settled is the answer to an [Outcome]: what [Desk.Done] returns.
type Settled struct {
	nixie.Settlement
	Err error
}

// Exchange settles deliveries as [Desk.Done] and [Desk.Release] do, and claims the next ones as
// [Desk.Receive] does. Messages of [nixie.Delivery.Then] are enqueued. With a store in SQLite or
// PostgreSQL and one queue all of it is one transaction. Other sources get two calls.
//
// The i-th Settled answers the i-th outcome, and the error tells of the claim. One fails without
// the other. What was claimed without an answer comes again when its leases end.
func (k *Desk) Exchange(ctx context.Context, outcomes []Outcome, want nixie.Want) ([]Settled, []*nixie.Delivery, error) {
	if want.Lease == 0 {
		want.Lease = k.c.Lease
	}
	sts, answers := make([]nixie.Settlement, len(outcomes)), make([]Settled, len(outcomes))
	for i, o := range outcomes {
		if o.StartedAt.IsZero() {
			sts[i] = nixie.Settlement{Delivery: o.Delivery, Verb: nixie.Release}
		} else {
			sts[i] = k.decide(o.Delivery, o.Err, o.StartedAt)
		}
	}
	errs, got, err := k.c.exchange(ctx, sts, want)
	for i := range answers {
		errs[i] = k.settleRefused(ctx, sts[i:i+1], errs[i])
		answers[i] = Settled{sts[i], errs[i]}
	}
	next, err := k.take(ctx, got, err)
	return answers, next, err
}

// decide makes the settlement of a delivery whose handler has returned.
func (k *Desk) decide(d *nixie.Delivery, err error, startedAt time.Time) nixie.Settlement {
	now := k.c.Clock()
	st := k.c.decide(d, err, nil, startedAt, now)
	st.Took = now.Sub(startedAt)
	return st
}

// settleRefused settles again what the source refused for the messages that follow it.
func (k *Desk) settleRefused(ctx context.Context, sts []nixie.Settlement, err error) error {
	for err != nil && refusesThen(&sts[0], err) {
		sts[0] = k.c.refused(&sts[0], err)
		err = k.c.settle(ctx, sts)[0]
	}
	return err
}

// Release gives back deliveries that were not begun, and refunds their attempts. The i-th error
// answers the i-th delivery.
func (k *Desk) Release(ctx context.Context, ds []*nixie.Delivery) []error {
	sts := make([]nixie.Settlement, len(ds))
	for i, d := range ds {
		sts[i] = nixie.Settlement{Delivery: d, Verb: nixie.Release}
	}
	return k.c.settle(ctx, sts)
}

// Extend renews leases and saves new steps. A lease of 0 is that of the config. The i-th error
// answers the i-th delivery. The caller must not add steps during the call.
func (k *Desk) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	if lease == 0 {
		lease = k.c.Lease
	}
	errs := answers(k.c.Source.Extend(ctx, ds, lease), len(ds))
	k.c.Observer.Extended(k.c.Queue, ds, errs)
	return errs
}
