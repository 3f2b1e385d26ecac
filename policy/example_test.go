package policy_test

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// A policy decides about each failure of a message. Without jitter the waits are exact.
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
		f := p.Diagnose(d, errors.New("invoice 4711: bank is closed"), policy.Attempt{StartedAt: now, FailedAt: now})
		s := p.Decide(d, f, now)
		fmt.Println(d.Attempts, s.Verb, s.Delay)
		if s.Burial != nil {
			fmt.Println(s.Burial.Cause, s.Burial.Signature, s.Burial.Fingerprint)
		}
	}

	d.Attempts = 1
	f := p.Diagnose(d, fmt.Errorf("read key: %w", fs.ErrPermission), policy.Attempt{})
	fmt.Println(p.Decide(d, f, now).Burial.Cause)
	// Output:
	// 1 retry 1s
	// 2 retry 2s
	// 3 bury 0s
	// exhausted handler: invoice <n>: bank is closed v3-e145febd0626f80c
	// permanent
}

// errorBudget buries a message if too large a part of all messages has failed lately. It leaves all
// other decisions to a policy.
type errorBudget struct {
	*policy.Policy
	budget float64
	rate   func() float64
}

func (b errorBudget) Decide(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
	if f == nil || b.rate() <= b.budget {
		return b.Policy.Decide(d, f, now)
	}
	spent := *f
	spent.Err = nixie.Verdict(nixie.Bury, f.Err)
	return b.Policy.Decide(d, &spent, now)
}

// A worker uses this decider instead of a policy. The decider asks a policy for most decisions.
func ExampleDecider() {
	p, err := policy.New(policy.Config{Profile: "wink", MaxAttempts: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	failed, all := 0.0, 100.0
	var decider policy.Decider = errorBudget{p, 0.3, func() float64 { return failed / all }}

	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d := &nixie.Delivery{Message: nixie.Message{Generation: 1}}
	decide := func(attempt int, failures float64) {
		d.Attempts, failed = attempt, failures
		f := p.Diagnose(d, errors.New("no answer"), policy.Attempt{StartedAt: now, FailedAt: now})
		fmt.Println(attempt, failures/all, decider.Decide(d, f, now).Verb)
	}
	decide(1, 10) // within the budget
	decide(2, 31) // beyond it
	decide(10, 0) // the count still holds
	// Output:
	// 1 0.1 retry
	// 2 0.31 bury
	// 10 0 bury
}

// A simulation shows the decisions of a profile without waiting.
func ExampleSimulate() {
	p, err := policy.New(policy.Config{Profile: "wink"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, run := range policy.Simulate(p, policy.Scenario{Err: errors.New("no answer")}) {
		fmt.Println(run.After, run.Rule, run.Verb, run.Wait)
	}
	// Output:
	// 0s retry retry 1m0s
	// 1m0s retry retry 2m0s
	// 3m0s retry retry 3m0s
	// 6m0s retry retry 4m0s
	// 10m0s max-attempts bury 0s
}

// The names of the rules can go into the documentation of a deployment.
func ExampleDecisionRules() {
	for _, rule := range policy.DecisionRules() {
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
	// try
	// never-dead
	// permanent
	// crashed
	// min-age
	// max-attempts
	// retry-budget
	// retry
}
