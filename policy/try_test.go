package policy

import (
	"errors"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"pgregory.net/rapid"
)

// A try of an open breaker costs nothing, unless a limit or the message itself ends it.
func TestWhatATryCosts(t *testing.T) {
	dependency := nixie.WithReason(errors.New("x"), nixie.ReasonDependency)
	for name, c := range map[string]struct {
		config Config
		change func(*nixie.Delivery)
		err    error
		verb   nixie.Verb
		waiver nixie.Waiver
	}{
		"free":                 {verb: nixie.Retry, waiver: nixie.WaiveTry},
		"over max_attempts":    {change: func(d *nixie.Delivery) { d.Attempts = 9 }, verb: nixie.Retry, waiver: nixie.WaiveTry},
		"its last free try":    {change: func(d *nixie.Delivery) { d.Patience.Tries = 24 }, verb: nixie.Retry, waiver: nixie.WaiveTry},
		"one too many":         {change: func(d *nixie.Delivery) { d.Patience.Tries = 25 }, verb: nixie.Retry},
		"no try":               {change: func(d *nixie.Delivery) { d.Tracking.Trial = nixie.NoTrial }, verb: nixie.Retry},
		"another reason":       {err: errors.New("x"), verb: nixie.Retry},
		"permanent":            {err: nixie.Permanent(dependency), verb: nixie.Bury},
		"permanent, any":       {change: anyReason, err: nixie.Permanent(dependency), verb: nixie.Retry, waiver: nixie.WaiveTry},
		"another reason, any":  {change: anyReason, err: errors.New("x"), verb: nixie.Retry, waiver: nixie.WaiveTry},
		"asked for":            {change: anyReason, err: nixie.Verdict(nixie.Hold, dependency), verb: nixie.Hold},
		"one attempt":          {config: Config{MaxAttempts: 1}, verb: nixie.Bury},
		"max_age":              {config: Config{MaxAge: time.Minute}, verb: nixie.Bury},
		"expiry":               {change: func(d *nixie.Delivery) { d.ExpiresAt = noon }, verb: nixie.Bury},
		"max_deliveries":       {config: Config{MaxDeliveries: 5}, change: claimed(5, 0), verb: nixie.Bury},
		"free claims":          {config: Config{MaxDeliveries: 5}, change: claimed(9, 5), verb: nixie.Retry, waiver: nixie.WaiveTry},
		"retry_budget":         {config: Config{RetryBudget: time.Millisecond}, verb: nixie.Bury},
		"a vanished holder":    {change: vanished, verb: nixie.Retry},
		"on_exhausted discard": {config: Config{OnExhausted: nixie.Discard}, verb: nixie.Retry, waiver: nixie.WaiveTry},
	} {
		d := delivery()
		d.Attempts, d.Deliveries, d.EnqueuedAt, d.Tracking.Trial = 2, 2, noon.Add(-time.Hour), nixie.TrialHealing
		if c.change != nil {
			c.change(d)
		}
		if c.err == nil {
			c.err = dependency
		}
		p := mustNew(t, c.config)
		if c.config.RetryBudget > 0 {
			d.Attempts = 5
		}
		s := p.Decide(d, p.Diagnose(d, c.err, Attempt{StartedAt: noon, FailedAt: noon}), noon)
		if s.Verb != c.verb || s.Waiver != c.waiver {
			t.Errorf("%s: %s %q, want %s %q", name, s.Verb, s.Waiver, c.verb, c.waiver)
		}
	}
}

func anyReason(d *nixie.Delivery) { d.Tracking.Trial = nixie.TrialAny }

func vanished(d *nixie.Delivery) { d.Abandoned, d.Tracking.Trial = true, nixie.NoTrial }

func claimed(n, free int) func(*nixie.Delivery) {
	return func(d *nixie.Delivery) { d.Deliveries, d.Patience.Free = n, free }
}

// However a dependency behaves, a message runs max_attempts times and maxTries times more at most,
// and what it tried costs no attempt.
func TestTriesEnd(t *testing.T) {
	p := mustNew(t, Config{MaxAttempts: 5})
	rapid.Check(t, func(t *rapid.T) {
		d := &nixie.Delivery{Message: nixie.Message{ID: nixie.ID{rapid.Byte().Draw(t, "id")}, Generation: 1, EnqueuedAt: noon}}
		now := noon
		for runs := 1; ; runs++ {
			d.Attempts, d.Deliveries = d.Attempts+1, d.Deliveries+1
			d.Tracking.Trial = rapid.SampledFrom([]nixie.Trial{nixie.NoTrial, nixie.TrialHealing, nixie.TrialAny}).Draw(t, "trial")
			reasons := rapid.SampledFrom([]nixie.Reason{nixie.ReasonDependency, nixie.ReasonHandler})
			err := nixie.WithReason(errors.New("x"), reasons.Draw(t, "reason"))
			s := p.Decide(d, p.Diagnose(d, err, Attempt{StartedAt: now, FailedAt: now}), now)
			now = now.Add(s.Delay)
			switch {
			case runs > 5+maxTries:
				t.Fatalf("%d runs", runs)
			case s.Verb == nixie.Bury && d.Attempts == 5:
				return
			case s.Verb != nixie.Retry:
				t.Fatalf("%s at attempt %d", s.Verb, d.Attempts)
			case s.Waiver == nixie.WaiveTry && d.Tracking.Trial == nixie.NoTrial:
				t.Fatal("an attempt that is no try is free")
			case s.Waiver == nixie.WaiveTry:
				d.Attempts--
				d.Patience.Tries++
				d.Patience.Free++
			}
		}
	})
}
