package worker

import (
	"context"
	"errors"
	"time"

	"github.com/nixie-go/nixie"
)

// Desk decides and settles without the loop, for callers that have one of their
// own. It is safe for concurrent use; it renews nothing by itself.
type Desk struct{ c Config }

// NewDesk checks a config and makes a desk of it. Handler, Concurrency,
// Prefetch, Timeout, Drain and SettleEach are not used.
func NewDesk(c Config) (*Desk, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Desk{c}, nil
}

// Receive claims deliveries to run. Those that must not be run, because a
// holder vanished with them, they expired, they were claimed too often or their
// body is damaged, are settled on the way and not returned. Trouble with that
// is told to the observer, and returned when there is nothing to run: those
// messages come again when their leases end.
func (k *Desk) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	if want.Lease == 0 {
		want.Lease = k.c.Lease
	}
	got, err := k.c.receive(ctx, want)
	if err == nil {
		k.c.journal.over(receiving)
	}
	if len(got) == 0 {
		return nil, err
	}
	k.c.Observer.OnReceived(k.c.Queue, got)
	now := k.c.Clock()
	var run []*nixie.Delivery
	var judged []nixie.Settlement
	for _, d := range got {
		st, refused := k.c.judge(d, now)
		if bad := damaged(d); !refused && bad != nil {
			st, refused = k.c.decide(d, bad, false, now, now), true
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

// Done settles a delivery by the error of its handler; nil completes it. It
// returns the settlement that applied: that of a message which its handler
// completed in a transaction of its own is Complete. An error of [nixie.CodeLeaseLost] says
// that somebody else decides by now, one of [nixie.CodeOutcomeUnknown] that
// nobody can tell: call Done again with the same arguments.
func (k *Desk) Done(ctx context.Context, d *nixie.Delivery, err error, startedAt time.Time) (nixie.Settlement, error) {
	st := k.c.decide(d, err, false, startedAt, k.c.Clock())
	sts := []nixie.Settlement{st}
	err = k.c.settle(ctx, sts)[0]
	return sts[0], err
}

// Release gives deliveries back that were not begun: their attempts are
// refunded. The i-th error answers the i-th delivery.
func (k *Desk) Release(ctx context.Context, ds []*nixie.Delivery) []error {
	sts := make([]nixie.Settlement, len(ds))
	for i, d := range ds {
		sts[i] = nixie.Settlement{Delivery: d, Verb: nixie.Release}
	}
	return k.c.settle(ctx, sts)
}

// Extend renews leases and saves new steps; 0 is the lease of the config. The
// i-th error answers the i-th delivery. Steps may not be added during the call.
func (k *Desk) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	if lease == 0 {
		lease = k.c.Lease
	}
	return answers(k.c.Source.Extend(ctx, ds, lease), len(ds))
}
