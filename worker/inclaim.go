package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// RetryInClaim returns a handler that runs h again under the same claim while the limits allow it.
// Use it for short disturbances, for which a retry by policy would cost too much. After each run
// the policy decides:
//
//	permanent, or the handler asked for a verb  no further run
//	an extend_on matcher holds                  another run; it is no failure
//	any other failure                           another run after the backoff
//
// The worker renews the lease meanwhile. Only the last failure is recorded, and a crash loses all
// but the attempt itself. A panic gets no second run.
//
// MaxTime ends the context of a run that exceeds it, and the reason is timeout. If the worker stops
// during a wait, the message is given back and its attempt refunded. Waits occupy a goroutine of
// the worker. Outside of tests the clock is time.Now.
func RetryInClaim(h nixie.Handler, p *policy.Policy, limits policy.InClaim, clock func() time.Time) (nixie.Handler, error) {
	if h == nil || p == nil || clock == nil {
		return nil, nixie.Errorf(nixie.CodeInvalid,
			"retry in one claim has no handler, policy or clock: give all three, the clock being time.Now")
	}
	if err := limits.Check(); err != nil {
		return nil, err
	}
	return &inClaim{h, p, limits, clock}, nil
}

type inClaim struct {
	handler nixie.Handler
	policy  *policy.Policy
	limits  policy.InClaim
	clock   func() time.Time
}

// Handle implements [nixie.Handler].
func (i *inClaim) Handle(ctx context.Context, d *nixie.Delivery) error {
	began := i.clock()
	run := ctx
	if i.limits.MaxTime > 0 {
		limited, cancel := context.WithTimeout(ctx, i.limits.MaxTime)
		defer cancel()
		run = limited
	}
	for failed, extended := 0, 0; ; {
		err := i.handler.Handle(run, d)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		if run.Err() != nil {
			late := fmt.Errorf("max_time %s of the retries in one claim is over: %w", i.limits.MaxTime, err)
			return nixie.WithReason(late, nixie.ReasonTimeout)
		}
		now := i.clock()
		f := i.policy.Diagnose(d, err, policy.Attempt{StartedAt: began, FailedAt: now})
		if i.policy.Extends(d, f) {
			if extended == i.limits.Extensions {
				return err
			}
			extended++
			continue
		}
		failed++
		wait, again := i.limits.Next(d, failed, now.Sub(began))
		if !again || policy.Final(f) {
			return err
		}
		if !sleep(ctx, wait) {
			return interrupted(ctx, err)
		}
	}
}

// interrupted returns the outcome of a wait that the end of the context cut short. At a deadline
// the attempt has failed. When the worker stops, the message is given back.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == context.DeadlineExceeded {
		return err
	}
	return nixie.Verdict(nixie.Release, err)
}
