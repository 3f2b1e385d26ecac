package nixie_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// verdict returns the decision of the default policy about the first failure of a message.
func verdict(err error) nixie.Settlement {
	p, bad := policy.New(policy.Config{Backoff: policy.Backoff{Jitter: policy.JitterNone}})
	if bad != nil {
		return nixie.Settlement{Note: bad.Error()}
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d := &nixie.Delivery{Message: nixie.Message{Generation: 1, Attempts: 1}}
	return p.Decide(d, p.Diagnose(d, err, policy.Attempt{StartedAt: now, FailedAt: now}), now)
}

var errBank = errors.New("the bank says no")

// A permanent error buries the message at once.
func ExamplePermanent() {
	s := verdict(nixie.Permanent(errBank))
	fmt.Println(s.Verb, s.Burial.Cause)

	s = verdict(errBank) // an error without a mark
	fmt.Println(s.Verb, s.Delay)
	// Output:
	// bury permanent
	// retry 1s
}

// A handler that knows how long a failure lasts asks for a delay; policy never waits less.
func ExampleRetryAfter() {
	s := verdict(nixie.RetryAfter(errBank, 10*time.Minute))
	fmt.Println(s.Verb, s.Delay)
	// Output: retry 10m0s
}

// A failure that is not the message's fault costs it no attempt.
func ExampleSnooze() {
	s := verdict(nixie.Snooze(errBank, 10*time.Minute))
	fmt.Println(s.Verb, s.Delay)
	// Output: release 10m0s
}

// The reason decides the group, the advice, and whether a person has to look before a redrive.
// Marks can be nested.
func ExampleWithReason() {
	s := verdict(nixie.WithReason(nixie.Permanent(errBank), nixie.ReasonAuth))
	fmt.Println(s.Failure.Class, s.Failure.Reason)
	fmt.Println(s.Burial.Signature)
	fmt.Println("redrivable:", s.Burial.Redrivable, "needs review:", s.Burial.NeedsReview)
	// Output:
	// permanent auth
	// auth: the bank says no
	// redrivable: true needs review: true
}

// The handler names the group. Texts, types and stacks of its errors may differ.
func ExampleWithGroup() {
	s := verdict(nixie.Permanent(nixie.WithGroup(errBank, "bank declined")))
	fmt.Println(s.Burial.Signature)
	// Output: handler: bank declined
}

// A handler may ask for a verb itself.
func ExampleVerdict() {
	for _, verb := range []nixie.Verb{nixie.Discard, nixie.Hold, nixie.Halt, nixie.Release} {
		s := verdict(nixie.Verdict(verb, errBank))
		status := nixie.Status("-")
		if s.Burial != nil {
			status = s.Burial.Status
		}
		fmt.Println(s.Verb, status)
	}
	// Output:
	// discard -
	// hold review
	// halt open
	// release -
}
