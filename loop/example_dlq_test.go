package loop_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/loop"
	"github.com/nixie-go/nixie/policy"
)

// Errors of a provider, as a program may know them.
var (
	errRateLimit = errors.New("rate limit")
	errTimeout   = errors.New("timeout")
	errInvalid   = errors.New("validation failed")
)

// decided shows what a policy decides about an error of an attempt.
func decided(p loop.DLQPolicy, attempt int, err error) {
	dlq, bad := loop.NewDLQ(p)
	if bad != nil {
		fmt.Println(bad)
		return
	}
	now := time.Now()
	d := &nixie.Delivery{Message: nixie.Message{Queue: "requests", Attempts: attempt, Deliveries: attempt, EnqueuedAt: now}}
	st := dlq.Decide(d, dlq.Policy().Diagnose(d, err, policy.Attempt{StartedAt: now, FailedAt: now}), now)
	fmt.Printf("attempt %d, %v: %s", attempt, err, st.Verb)
	if st.Delay > 0 {
		fmt.Print(" after ", st.Delay)
	}
	for _, m := range st.Then {
		fmt.Print(", and a message to ", m.Queue)
	}
	fmt.Println()
}

// A message dies at its fifth attempt.
func ExampleDLQPolicy() {
	p := loop.DLQPolicy{Mailbox: loop.DefaultDLQ, MaxDeliveryCount: 5}
	for attempt := 1; attempt <= 5; attempt++ {
		decided(p, attempt, errTimeout)
	}
	// Output:
	// attempt 1, timeout: retry after 1m0s
	// attempt 2, timeout: retry after 2m0s
	// attempt 3, timeout: retry after 3m0s
	// attempt 4, timeout: retry after 4m0s
	// attempt 5, timeout: bury, and a message to requests-dlq
}

// Some errors let a message die at once.
func ExampleDLQPolicy_include() {
	p := loop.DLQPolicy{Include: []policy.Matcher{policy.MatchError(errInvalid), policy.MatchError(errContentPolicy)}}
	decided(p, 1, fmt.Errorf("field amount: %w", errInvalid))
	decided(p, 1, errTimeout)
	// Output:
	// attempt 1, field amount: validation failed: bury, and a message to requests-dlq
	// attempt 1, timeout: retry after 1m0s
}

// Some errors never let a message die; a hard cap ends even these retries.
func ExampleDLQPolicy_exclude() {
	p := loop.DLQPolicy{
		Exclude:       []policy.Matcher{policy.MatchError(errRateLimit), policy.MatchError(loop.ErrConnection)},
		MaxDeliveries: 100,
	}
	decided(p, 20, errRateLimit)
	decided(p, 100, errRateLimit)
	// Output:
	// attempt 20, rate limit: retry after 15m0s
	// attempt 100, rate limit: bury, and a message to requests-dlq
}

// Exclude beats include, and include beats the count.
func ExampleDLQPolicy_combined() {
	p := loop.DLQPolicy{
		MaxDeliveryCount: 5,
		Include:          []policy.Matcher{policy.MatchError(errInvalid)},   // at once
		Exclude:          []policy.Matcher{policy.MatchError(errRateLimit)}, // never
	}
	decided(p, 1, errInvalid)
	decided(p, 9, errRateLimit)
	decided(p, 9, errors.Join(errInvalid, errRateLimit))
	decided(p, 5, errTimeout)
	// Output:
	// attempt 1, validation failed: bury, and a message to requests-dlq
	// attempt 9, rate limit: retry after 9m0s
	// attempt 9, validation failed
	// rate limit: retry after 9m0s
	// attempt 5, timeout: bury, and a message to requests-dlq
}

// A function decides by the rate of errors; what it does not decide follows the count.
func ExampleDLQPolicy_errorBudget() {
	rate := 0.2 // of errors among the last requests, as a program measures it
	budget := 0.5
	p := loop.DLQPolicy{MaxDeliveryCount: 10, Decide: func(_ *nixie.Delivery, _ *nixie.Failure, rules func() nixie.Verb) nixie.Verb {
		if rate > budget {
			return nixie.Bury
		}
		return rules() // or "", which is the same
	}}
	decided(p, 1, errTimeout)
	decided(p, 10, errTimeout)
	rate = 0.6
	decided(p, 1, errTimeout)
	// Output:
	// attempt 1, timeout: retry after 1m0s
	// attempt 10, timeout: bury, and a message to requests-dlq
	// attempt 1, timeout: bury, and a message to requests-dlq
}

// Mailboxes of dead letters are named after the mailbox that the messages come from. Some errors
// may have one of their own, and some are rejected.
func ExampleDLQPolicy_naming() {
	p := loop.DLQPolicy{
		Mailbox: "{source}-dlq",
		Include: []policy.Matcher{policy.MatchError(errInvalid), policy.MatchError(errTimeout)},
		Routes:  []loop.Route{{When: policy.MatchError(errTimeout), Mailbox: "{source}-timeouts"}},
		Reject:  []policy.Matcher{policy.MatchError(errContentPolicy)},
	}
	decided(p, 1, errInvalid)
	decided(p, 1, errTimeout)
	decided(p, 1, errContentPolicy)
	// Output:
	// attempt 1, validation failed: bury, and a message to requests-dlq
	// attempt 1, timeout: bury, and a message to requests-timeouts
	// attempt 1, content policy violation: discard
}
