package policy

import (
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// MaxSimulated is the most steps of a simulation.
const MaxSimulated = 10_000

// Rules by which a handler runs again under the same claim.
const (
	ruleInClaim = "in-claim"
	ruleExtend  = "extend-on" // the rule of Decide has the same name
)

// Scenario is a message whose every attempt goes wrong in the same way.
type Scenario struct {
	Message nixie.Message // its Type, Redrives and ExpiresAt count; and its ID, with Jitter
	Err     error         // what the handler returns; nil is a holder that vanishes
	InClaim InClaim       // retries within each claim
	Took    time.Duration // how long each run goes on
	Start   time.Time     // when it is enqueued, and claimed for the first time
	Jitter  bool          // throw the dice of the message's ID; else waits are without jitter
	MaxRuns int           // most steps to take; 0 is all, up to [MaxSimulated]
}

// SimulatedRun is one run in the life of a simulated message.
type SimulatedRun struct {
	Attempt    int            // execution in this life
	Run        int            // within the attempt; above 1 it was retried in the same claim
	Failure    *nixie.Failure // what was diagnosed
	After      time.Duration  // when it failed, since the start
	Rule       string         // the rule that decided, of [DecisionRules], or "in-claim"
	Verb       nixie.Verb     // empty where the handler runs again under the same claim
	Wait       time.Duration  // before the next run
	Least      time.Duration  // what jitter can make of that wait …
	Most       time.Duration  // … at least and at most
	Cause      nixie.Cause    // of a letter
	Status     nixie.Status   // of a letter
	Channel    string         // of a letter: see [ChannelReason]
	Review     bool           // of a letter: a person has to look first
	Redrivable bool           // of a letter: may be redriven
}

// Simulate plays a scenario to its end: every decision and every time until the
// message is settled for good, or MaxRuns are done. It is pure, as policies are.
func Simulate(p *Policy, s Scenario) []SimulatedRun {
	d := &nixie.Delivery{Message: s.Message}
	d.Generation, d.EnqueuedAt = max(d.Generation, 1), s.Start
	d.Attempts, d.Deliveries, d.Crashes = 0, 0, 0
	most := MaxSimulated
	if s.MaxRuns > 0 {
		most = min(s.MaxRuns, most)
	}
	decider := p
	if !s.Jitter {
		decider = p.withoutJitter()
		s.InClaim.Backoff = s.InClaim.Backoff.or(defaultBackoff())
	}
	var steps []SimulatedRun
	now := s.Start
	for len(steps) < most {
		d.Attempts++
		d.Deliveries++
		before := len(steps)
		if s.Err != nil {
			steps, now = s.inClaim(p, d, steps, now, most)
			if len(steps) == most {
				break
			}
		}
		if s.Err == nil {
			vanish(d)
		}
		step := s.fail(p, d, now)
		step.Run = len(steps) - before + 1
		now = step.Failure.FailedAt
		var settled nixie.Settlement
		step.Rule, settled = decider.decide(d, step.Failure, now)
		step.settle(p, d, settled)
		steps = append(steps, step)
		now = now.Add(step.Wait)
		switch step.Verb {
		case nixie.Retry:
		case nixie.Release:
			d.Attempts--
		default:
			return steps
		}
	}
	return steps
}

// vanish is what becomes of a run whose holder does, and had nothing beside it.
func vanish(d *nixie.Delivery) {
	d.Abandoned, d.AbandonedAlone = true, lease.AloneTwice(1, d.Crashes)
	d.Attempts--
	d.Deliveries++ // the claim that judges it
	d.Crashes++
}

// fail is one more run.
func (s Scenario) fail(p *Policy, d *nixie.Delivery, now time.Time) SimulatedRun {
	ended := now.Add(max(s.Took, 0))
	step := SimulatedRun{After: ended.Sub(s.Start)}
	if s.Err == nil {
		step.Failure = p.Abandoned(d, ended)
	} else {
		step.Failure = p.Diagnose(d, s.Err, Attempt{StartedAt: now, FailedAt: ended})
	}
	step.Attempt = step.Failure.Attempt
	return step
}

// inClaim adds the runs of an attempt that are followed by another one under the
// same claim.
func (s Scenario) inClaim(p *Policy, d *nixie.Delivery, steps []SimulatedRun, now time.Time, most int) ([]SimulatedRun, time.Time) {
	began := now
	rules := s.InClaim
	if !s.Jitter {
		rules.Backoff.Jitter = JitterNone
	}
	for n, extended := 1, 0; len(steps) < most; {
		step := s.fail(p, d, now)
		step.Run = n + extended
		if p.Extends(d, step.Failure) {
			if extended == rules.Extensions {
				break
			}
			extended++
			step.Rule = ruleExtend
		} else {
			wait, again := rules.Next(d, n, step.Failure.FailedAt.Sub(began))
			if !again || Final(step.Failure) {
				break
			}
			step.Rule, step.Wait = ruleInClaim, wait
			step.Least, step.Most = s.InClaim.Backoff.Band(n)
			n++
		}
		steps = append(steps, step)
		now = step.Failure.FailedAt.Add(step.Wait)
	}
	return steps, now
}

// Final reports whether a failure needs no second run in its claim: it is permanent,
// or the handler asked for a verb.
func Final(f *nixie.Failure) bool {
	return f.Class == nixie.ClassPermanent || marksOf(f.Err).Verb != ""
}

func (s *SimulatedRun) settle(p *Policy, d *nixie.Delivery, settled nixie.Settlement) {
	s.Verb, s.Wait = settled.Verb, settled.Delay
	s.Least, s.Most = settled.Delay, settled.Delay
	if settled.Failure != nil {
		s.Failure = settled.Failure
	}
	if s.Verb == nixie.Retry && s.Wait > 0 {
		least, most := p.of(d.Type, s.Failure.Reason).Backoff.Band(d.Attempts)
		after := min(marksOf(s.Failure.Err).After, nixie.MaxDelay)
		s.Least, s.Most = max(least, after), max(most, after)
	}
	if b := settled.Burial; b != nil {
		s.Cause, s.Status, s.Review, s.Redrivable = b.Cause, b.Status, b.NeedsReview, b.Redrivable
		s.Channel = ChannelReason(s.Failure.Class, b.Cause)
	}
}

// withoutJitter is the same policy with exact waits.
func (p *Policy) withoutJitter() *Policy {
	plain := *p
	plain.config.Backoff.Jitter = JitterNone
	plain.cases = map[caseKey]*Config{}
	for k, c := range p.cases {
		exact := *c
		exact.Backoff.Jitter = JitterNone
		plain.cases[k] = &exact
	}
	if p.cases == nil {
		plain.cases = nil
	}
	return &plain
}
