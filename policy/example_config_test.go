package policy_test

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// fates simulates a message whose attempts all fail in the same way, and tells how often it runs
// and how it ends.
func fates(c policy.Config, messageType string, err error) string {
	p, bad := policy.New(c)
	if bad != nil {
		return bad.Error()
	}
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	runs := policy.Simulate(p, policy.Scenario{Message: nixie.Message{Type: messageType}, Err: err, Start: start})
	last := runs[len(runs)-1]
	return fmt.Sprintf("%s after %d attempts and %s by %s", last.Verb, last.Attempt, last.After, last.Rule)
}

// A profile is a set of values with the numbers of another system. A value of the config itself
// replaces that of the profile.
func ExampleProfileNamed() {
	late := nixie.WithReason(errors.New("no answer"), nixie.ReasonTimeout)
	for _, name := range policy.Profiles() {
		fmt.Printf("%-9s %s\n", name, fates(policy.Config{Profile: name}, "", late))
	}
	fmt.Println("whizbang, 3 attempts:", fates(policy.Config{Profile: "whizbang", MaxAttempts: 3}, "", late))
	// Output:
	// nixie     bury after 11 attempts and 15m0s by max-attempts
	// whizbang  bury after 10 attempts and 4h3m0s by max-attempts
	// kafka-dlc bury after 5 attempts and 6s by max-attempts
	// pgqueuer  bury after 1 attempts and 0s by max-attempts
	// wink      bury after 25 attempts and 4h15m0s by max-deliveries
	// prodigy   bury after 3 attempts and 3s by max-attempts
	// whizbang, 3 attempts: bury after 3 attempts and 3m0s by max-attempts
}

// Cases give other values to some types and reasons.
func ExampleCase() {
	c := policy.Config{
		MaxAttempts: 3,
		Cases: []policy.Case{
			{Reason: nixie.ReasonDependency, Config: policy.Config{MaxAttempts: 8}},
			{Type: "newsletter", Config: policy.Config{OnExhausted: nixie.Discard}},
		},
	}
	down := nixie.WithReason(errors.New("the bank is down"), nixie.ReasonDependency)
	fmt.Println(fates(c, "invoice", errors.New("no")))
	fmt.Println(fates(c, "invoice", down))
	fmt.Println(fates(c, "newsletter", down))
	// Output:
	// bury after 3 attempts and 3s by max-attempts
	// bury after 8 attempts and 2m7s by max-attempts
	// discard after 8 attempts and 2m7s by max-attempts
}

// Class rules classify errors without marks. Matchers choose failures not to retry, failures to
// retry until a hard cap, and letters that a person has to review.
func ExampleClassRule() {
	c := policy.Config{
		ClassRules: []policy.ClassRule{
			{When: policy.MatchText(regexp.MustCompile(`(?i)too many requests`)), Reason: nixie.ReasonThrottled},
		},
		DeadAtOnce: []policy.Matcher{policy.MatchText(regexp.MustCompile(`^no such customer`))},
		NeverDead:  []policy.Matcher{policy.MatchReason(nixie.ReasonThrottled)},
	}
	fmt.Println(fates(c, "", errors.New("no such customer: 7")))
	fmt.Println(fates(c, "", errors.New("429 Too Many Requests")))
	// Output:
	// bury after 1 attempts and 0s by permanent
	// bury after 25 attempts and 3h47m3s by max-deliveries
}

// A band holds the shortest and the longest wait that jitter can produce.
func ExampleBackoff_Band() {
	for _, b := range []policy.Backoff{
		{Base: time.Second, Cap: 10 * time.Second},
		{Formula: policy.Linear, Base: time.Minute, Jitter: policy.JitterNone},
		{Formula: policy.Fibonacci, Base: time.Second, Jitter: policy.JitterEqual},
		{Formula: policy.List, Delays: []time.Duration{time.Second, time.Minute, time.Hour}, Jitter: policy.JitterProportional,
			Fraction: 0.1},
	} {
		p, err := policy.New(policy.Config{Backoff: b})
		if err != nil {
			fmt.Println(err)
			return
		}
		b = p.Config().Backoff // with what was left out
		fmt.Println(b)
		for _, n := range []int{1, 2, 5} {
			least, most := b.Band(n)
			fmt.Printf("  after failure %d: %s to %s\n", n, least, most)
		}
	}
	// Output:
	// 1s ×2 up to 10s, equal jitter
	//   after failure 1: 500ms to 1s
	//   after failure 2: 1s to 2s
	//   after failure 5: 5s to 10s
	// 1m +1m up to 15m, no jitter
	//   after failure 1: 1m0s to 1m0s
	//   after failure 2: 2m0s to 2m0s
	//   after failure 5: 5m0s to 5m0s
	// 1s ×1, 1, 2, 3, 5 … up to 15m, equal jitter
	//   after failure 1: 500ms to 1s
	//   after failure 2: 500ms to 1s
	//   after failure 5: 2.5s to 5s
	// 1s, 1m, 1h, then up to 15m, ±10 % jitter
	//   after failure 1: 900ms to 1.1s
	//   after failure 2: 54s to 1m6s
	//   after failure 5: 13m30s to 15m0s
}

// A breaker stops runs that would fail. Here two failures in a row open it, and after half a minute
// one run finds out whether the cause is gone.
func ExampleBreakerRules_Next() {
	rules := policy.BreakerRules{Failures: 2, Successes: 1, OpenFor: 30 * time.Second, HalfOpenMax: 1}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var b policy.Breaker
	run := func(on policy.BreakerMoment) {
		var asked policy.BreakerDecision
		if b, asked = rules.Next(b, policy.BreakerEvent{On: policy.BreakerAsked}, now); !asked.Allow {
			fmt.Println("refused, ask again in", asked.Wait)
			return
		}
		b, _ = rules.Next(b, policy.BreakerEvent{On: on, Ticket: asked.Ticket}, now)
		fmt.Println(on, "and now", b.State)
	}
	run(policy.BreakerFailed)
	run(policy.BreakerFailed)
	run(policy.BreakerSucceeded)
	now = now.Add(30 * time.Second)
	run(policy.BreakerSucceeded)
	// Output:
	// failed and now closed
	// failed and now open
	// refused, ask again in 30s
	// succeeded and now closed
}
