package policy_test

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// A policy turns each failure of a message into a verdict, here without jitter
// so that the waits can be seen.
func Example() {
	p, err := policy.New(policy.Config{
		MaxAttempts: 3,
		Backoff:     policy.Backoff{Jitter: policy.JitterNone},
		DeadAtOnce:  []policy.Matcher{policy.MatchError(fs.ErrPermission)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d := &nixie.Delivery{Message: nixie.Message{Generation: 1}}
	for d.Attempts = 1; d.Attempts <= 3; d.Attempts++ {
		f := p.Diagnose(d, errors.New("invoice 4711: bank is closed"), policy.Facts{StartedAt: now, FailedAt: now})
		s := p.Decide(d, f, now)
		fmt.Println(d.Attempts, s.Verb, s.Delay)
		if s.Burial != nil {
			fmt.Println(s.Burial.Cause, s.Burial.Signature, s.Burial.Fingerprint)
		}
	}

	d.Attempts = 1
	f := p.Diagnose(d, fmt.Errorf("read key: %w", fs.ErrPermission), policy.Facts{})
	fmt.Println(p.Decide(d, f, now).Burial.Cause)
	// Output:
	// 1 retry 1s
	// 2 retry 2s
	// 3 bury 0s
	// exhausted handler: invoice <n>: bank is closed v1-247addbadb81bb4a
	// permanent
}

// Order is what the documentation of a deployment can print.
func ExampleOrder() {
	for _, rule := range policy.Order() {
		fmt.Println(rule.Name)
	}
	// Output:
	// success
	// asked
	// expired
	// max-age
	// max-deliveries
	// max-crashes
	// released
	// extend-on
	// never-dead
	// permanent
	// max-attempts
	// retry-budget
	// retry
}
