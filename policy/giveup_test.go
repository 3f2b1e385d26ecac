package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"pgregory.net/rapid"
)

// The profiles of other systems end a message when those do: with the numbers that they had before
// min_age and the breaker were defaults of ours.
func TestProfilesKeepTheirTimelines(t *testing.T) {
	for name, want := range map[string]string{
		"whizbang":  "10 runs, 4h3m0s, max-attempts; 10 runs, 4h3m0s, max-attempts; 1 runs, 0s, permanent; 3 runs, 0s, max-crashes",
		"kafka-dlc": "5 runs, 6s, max-attempts; 5 runs, 6s, max-attempts; 1 runs, 0s, permanent; 3 runs, 0s, max-crashes",
		"pgqueuer":  "5 runs, 1.5s, max-attempts; 5 runs, 1.5s, max-attempts; 1 runs, 0s, permanent; 4 runs, 0s, max-crashes",
		"wink":      "5 runs, 10m0s, max-attempts; 25 runs, 4h15m0s, max-deliveries; 1 runs, 0s, permanent; 3 runs, 0s, max-crashes",
		"prodigy":   "3 runs, 3s, max-attempts; 3 runs, 3s, max-attempts; 1 runs, 0s, permanent; 3 runs, 0s, max-crashes",
	} {
		p := mustNew(t, Config{Profile: name})
		if c := p.Config(); c.MinAge != none {
			t.Errorf("%s has min_age %s", name, c.MinAge)
		}
		profile, err := ProfileNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		var ends []string
		for _, failed := range []error{
			errors.New("x"), nixie.WithReason(errors.New("x"), nixie.ReasonTimeout),
			nixie.WithReason(errors.New("x"), nixie.ReasonValidation), nil,
		} {
			runs := Simulate(p, Scenario{Err: failed, InClaim: profile.InClaim, Start: noon})
			last := runs[len(runs)-1]
			ends = append(ends, fmt.Sprintf("%d runs, %s, %s", len(runs), last.After, last.Rule))
		}
		if got := strings.Join(ends, "; "); got != want {
			t.Errorf("%s ends so:\n%s\nwant\n%s", name, got, want)
		}
	}
}

// Who names a limit means it: min_age is a default of those who named none.
func TestMinAgeIsForThoseWhoNamedNoLimit(t *testing.T) {
	timeout := nixie.ReasonTimeout
	for name, c := range map[string]struct {
		config Config
		want   time.Duration
	}{
		"default":                    {Config{}, DefaultMinAge},
		"awaited":                    {Config{Awaited: true}, AwaitedMinAge},
		"given":                      {Config{MinAge: time.Hour}, time.Hour},
		"given, and awaited":         {Config{MinAge: time.Hour, Awaited: true}, time.Hour},
		"switched off":               {Config{MinAge: none}, none},
		"max_attempts":               {Config{MaxAttempts: 5}, none},
		"max_retries":                {Config{MaxRetries: 4}, none},
		"retry_budget":               {Config{RetryBudget: time.Minute}, none},
		"max_attempts and its own":   {Config{MaxAttempts: 5, MinAge: time.Minute}, time.Minute},
		"another profile":            {Config{Profile: "wink", Awaited: true}, none},
		"another profile, its own":   {Config{Profile: "wink", MinAge: time.Minute}, time.Minute},
		"cut to max_age":             {Config{MaxAge: time.Minute}, time.Minute},
		"backoff is no limit":        {Config{Backoff: Backoff{Base: time.Minute}}, DefaultMinAge},
		"max_deliveries is a cap":    {Config{MaxDeliveries: 7}, DefaultMinAge},
		"case with max_attempts":     {Config{Cases: onTimeout(Config{MaxAttempts: 2})}, none},
		"case that inherits":         {Config{Awaited: true, Cases: onTimeout(Config{MaxRedrives: 2})}, AwaitedMinAge},
		"case of the profile":        {Config{Awaited: true, MaxAttempts: 3, Cases: onTimeout(Config{Profile: "nixie"})}, AwaitedMinAge},
		"case that is cut":           {Config{Cases: onTimeout(Config{MaxAge: time.Minute})}, time.Minute},
		"case of another profile":    {Config{Cases: onTimeout(Config{Profile: "prodigy"})}, none},
		"case of its own, with more": {Config{MaxAttempts: 3, Cases: onTimeout(Config{MinAge: time.Hour})}, time.Hour},
	} {
		if got := mustNew(t, c.config).ConfigFor("", timeout).MinAge; got != c.want {
			t.Errorf("%s: min_age is %s, want %s", name, got, c.want)
		}
	}
	for name, c := range map[string]Config{
		"alone":  {MinAge: time.Hour, MaxAge: time.Minute},
		"a case": {MinAge: time.Hour, Cases: []Case{{Type: "t", Config: Config{MaxAge: time.Minute}}}},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), "min_age is 1h, more than max_age 1m") {
			t.Errorf("%s: a given min_age beyond max_age is told as %v", name, err)
		}
	}
}

func onTimeout(c Config) []Case { return []Case{{Reason: nixie.ReasonTimeout, Config: c}} }

// Time heals what something else caused, or what the handler calls transient.
func TestHeals(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{errors.New("x"), false},
		{nixie.Transient(errors.New("x")), true},
		{nixie.Permanent(nixie.WithReason(errors.New("x"), nixie.ReasonDependency)), false},
		{nixie.WithReason(errors.New("x"), nixie.ReasonDependency), true},
		{nixie.WithReason(errors.New("x"), nixie.ReasonThrottled), true},
		{nixie.WithReason(errors.New("x"), nixie.ReasonMergeConflict), false},
		{nixie.Errorf(nixie.CodeUnavailable, "x"), true},
		{exit(69), true}, {exit(75), true}, {exit(124), true}, {exit(137), true},
		{exit(1), false}, {exit(65), false}, {exit(77), false}, {exit(127), false}, {exit(139), false},
	} {
		p, d := mustNew(t, Config{}), delivery()
		if f := p.Diagnose(d, c.err, Attempt{}); Heals(f) != c.want {
			t.Errorf("%v (%s, %s): %v", c.err, f.Class, f.Reason, !c.want)
		}
	}
}

func exit(code int) error {
	return nixie.WithEvidence(errors.New("exit status"), nixie.Failure{ExitCode: &code})
}

// A message of mixed failures and tries of a breaker: it dies by a failure that time may heal only
// when both conditions hold, by any other with max_attempts, and it always dies.
func TestGivingUpProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := New(Config{Awaited: rapid.Bool().Draw(t, "awaited")})
		if err != nil {
			t.Fatal(err)
		}
		c := p.Config()
		d := &nixie.Delivery{Message: nixie.Message{ID: nixie.ID{rapid.Byte().Draw(t, "id")}, Generation: 1, EnqueuedAt: noon}}
		reasons := rapid.SampledFrom([]nixie.Reason{nixie.ReasonTimeout, nixie.ReasonDependency, nixie.ReasonHandler, nixie.ReasonPanic})
		now := noon
		for runs := 1; ; runs++ {
			d.Attempts, d.Deliveries, d.State = d.Attempts+1, d.Deliveries+1, nixie.Leased
			if p.Admit(d, now) != nil {
				t.Fatalf("run %d is not admitted", runs)
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "took")))
			f := p.Diagnose(d, nixie.WithReason(errors.New("x"), reasons.Draw(t, "reason")), Attempt{FailedAt: now})
			s := p.Decide(d, f, now)
			first := d.Patience.FailingSince
			if first.IsZero() {
				first = now
			}
			young := Heals(f) && now.Sub(first) < c.MinAge
			switch {
			case d.Attempts < c.MaxAttempts && s.Verb != nixie.Retry:
				t.Fatalf("attempt %d of %s dies", d.Attempts, f.Reason)
			case d.Attempts >= c.MaxAttempts && !Heals(f) && s.Verb != nixie.Bury:
				t.Fatalf("attempt %d of %s is retried", d.Attempts, f.Reason)
			case young && s.Verb != nixie.Retry:
				t.Fatalf("attempt %d dies %s after its first failure", d.Attempts, now.Sub(first))
			case !young && d.Attempts >= c.MaxAttempts && s.Verb == nixie.Retry:
				t.Fatalf("attempt %d is retried %s after its first failure", d.Attempts, now.Sub(first))
			case runs > c.MaxAttempts+lateAttempts:
				t.Fatalf("%d runs", runs)
			}
			if s.Verb != nixie.Retry {
				return
			}
			d.Patience.FailingSince = first
			now = now.Add(s.Delay)
		}
	})
}

// The end of a policy is looked up by pages, so a policy that goes on for long costs them little.
func TestEarliestIsCheap(t *testing.T) {
	for _, c := range []Config{
		{MaxAttempts: MaxBudgeted, RetryBudget: nixie.MaxDelay, Backoff: Backoff{Base: MinSpacing, Cap: MinSpacing}},
		{MaxAttempts: none, MaxAge: nixie.MaxDelay},
	} {
		for _, row := range mustNew(t, c).Table() {
			if row.Name == "earliest_end" && row.Value != "after more than 1000 runs" {
				t.Errorf("%d attempts end %s", c.MaxAttempts, row.Value)
			}
		}
	}
}
