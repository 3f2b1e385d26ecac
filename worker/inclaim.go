package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// RetryInClaim returns a handler that runs h again under the same claim while
// the limits allow it: for hiccups that are over before a retry by policy would
// be worth its row. The policy says what needs no second run (a permanent
// failure, a verb that the handler asked for) and what is no failure but asks
// for more time; the worker's renewals keep the lease meanwhile. Only the last
// failure is recorded, and nothing survives a crash but the attempt itself. A
// panic is not run again.
//
// MaxTime ends the context of a run that exceeds it: reason timeout. A wait that
// the end of the worker interrupts gives the message back, its attempt refunded.
// Waits take a goroutine of the worker. The clock is time.Now but in tests.
func RetryInClaim(h nixie.Handler, p *policy.Policy, limits policy.InClaim, clock func() time.Time) (nixie.Handler, error) {
	if h == nil || p == nil || clock == nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "retry in one claim has no handler, policy or clock: give all three, the clock being time.Now")
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
			return nixie.WithReason(fmt.Errorf("max_time %s of the retries in one claim is over: %w", i.limits.MaxTime, err), nixie.ReasonTimeout)
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
		if !pause(ctx, wait) {
			return interrupted(ctx, err)
		}
	}
}

// interrupted is the outcome of a wait that did not end. An attempt whose time
// was up has failed; one that was stopped has not had its runs.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == context.DeadlineExceeded {
		return err
	}
	return nixie.Verdict(nixie.Release, err)
}

// pause waits, unless the context ends first.
func pause(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
