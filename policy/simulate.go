package policy

import (
	"maps"
	"math"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// MaxSimulated limits the runs of a simulation.
const MaxSimulated = 10_000

// Names of the rules by which a handler runs again under the same claim.
const (
	ruleInClaim = "in-claim"
	ruleExtend  = "extend-on" // the rule of Decide has the same name
	ruleMinAge  = "min-age"
)

// Scenario describes a message whose attempts all fail in the same way.
type Scenario struct {
	Message nixie.Message // its Type, Redrives and ExpiresAt count; with Jitter also its ID
	Err     error         // the error of the handler; nil is a holder that vanishes
	InClaim InClaim       // retries within each claim
	Took    time.Duration // duration of each run
	Start   time.Time     // when it is enqueued or redriven, and claimed for the first time
	Jitter  bool          // waits have the jitter that the message's ID gives; else none
	Soonest bool          // waits are the shortest that jitter can give
	MaxRuns int           // 0 is all, up to [MaxSimulated]
}

// SimulatedRun is one run of a simulated message.
type SimulatedRun struct {
	Attempt    int            // execution in this generation
	Run        int            // within the attempt; above 1 it was retried in the same claim
	Failure    *nixie.Failure // the record of it
	After      time.Duration  // when it failed, since the start
	Rule       string         // the rule that decided, of [DecisionRules], or "in-claim"
	Verb       nixie.Verb     // empty if the handler runs again under the same claim
	Wait       time.Duration  // before the next run
	Least      time.Duration  // the shortest wait with jitter
	Most       time.Duration  // the longest wait with jitter
	Cause      nixie.Cause    // of a letter
	Status     nixie.Status   // of a letter
	Channel    string         // of a letter: see [ChannelReason]
	Review     bool           // of a letter: a person has to review it
	Redrivable bool           // of a letter: may be redriven
}

// Simulate plays a scenario until the message is settled for good, or until MaxRuns. It is pure,
// like policies.
func Simulate(p *Policy, s Scenario) []SimulatedRun {
	d := &nixie.Delivery{Message: s.Message}
	d.Generation, d.EnqueuedAt, d.RedrivenAt = max(d.Generation, 1), s.Start, time.Time{}
	d.Attempts, d.Deliveries, d.Crashes, d.Patience = 0, 0, 0, nixie.Patience{}
	most := MaxSimulated
	if s.MaxRuns > 0 {
		most = min(s.MaxRuns, most)
	}
	decider := p
	if !s.Jitter {
		decider = p.withoutJitter()
		s.InClaim.Backoff = s.InClaim.Backoff.or(defaultBackoff())
	}
	var runs []SimulatedRun
	now := s.Start
	for len(runs) < most {
		d.Attempts++
		d.Deliveries++
		before := len(runs)
		if s.Err != nil {
			runs, now = s.inClaim(p, d, runs, now, most)
			if len(runs) == most {
				break
			}
		}
		if s.Err == nil {
			vanish(d)
		}
		run := s.fail(p, d, now)
		run.Run = len(runs) - before + 1
		now = run.Failure.FailedAt
		var settled nixie.Settlement
		run.Rule, settled = decider.decide(d, run.Failure, now)
		run.settle(p, d, settled)
		if s.Soonest {
			run.Wait = run.Least
		}
		runs = append(runs, run)
		now = now.Add(run.Wait)
		refund := 0
		switch run.Verb {
		case nixie.Retry:
			if s.Err != nil && d.Patience.FailingSince.IsZero() {
				d.Patience.FailingSince = run.Failure.FailedAt
			}
		case nixie.Release:
			d.Patience, refund = lease.GivenBack(d.Patience, &settled, d.Abandoned, now)
			d.Attempts -= refund
		default:
			return runs
		}
	}
	return runs
}

// maxSought limits the runs in which [Earliest] looks for the end: pages show it.
const maxSought = 1000

// Earliest returns how long after its first failure the message of a scenario ends at the earliest,
// with any jitter; −1 if it does not end within 1,000 runs.
func Earliest(p *Policy, s Scenario) time.Duration {
	s.Jitter, s.MaxRuns, s.Start = false, maxSought, time.Unix(0, 0)
	earliest := time.Duration(none)
	for _, s.Soonest = range [...]bool{false, true} { // short waits may meet min_age later than long ones
		runs := Simulate(p, s)
		last := runs[len(runs)-1]
		if last.Verb == nixie.Retry || last.Verb == nixie.Release || last.Verb == "" {
			return none
		}
		if after := last.After - runs[0].After; earliest == none || after < earliest {
			earliest = after
		}
	}
	return earliest
}

// vanish counts a holder that vanished and held only this message.
func vanish(d *nixie.Delivery) {
	d.Abandoned, d.AbandonedAlone = true, lease.AloneTwice(1, d.Crashes)
	d.Attempts--
	d.Deliveries++ // the claim that judges it
	d.Crashes++
}

// fail makes the record of one more run.
func (s Scenario) fail(p *Policy, d *nixie.Delivery, now time.Time) SimulatedRun {
	ended := now.Add(max(s.Took, 0))
	run := SimulatedRun{After: ended.Sub(s.Start)}
	if s.Err == nil {
		run.Failure = p.Abandoned(d, ended)
	} else {
		run.Failure = p.Diagnose(d, s.Err, Attempt{StartedAt: now, FailedAt: ended})
	}
	run.Attempt = run.Failure.Attempt
	return run
}

// inClaim adds all runs of an attempt but the last: those that another run under the same claim
// follows.
func (s Scenario) inClaim(p *Policy, d *nixie.Delivery, runs []SimulatedRun, now time.Time, most int) ([]SimulatedRun, time.Time) {
	began := now
	limits := s.InClaim
	if !s.Jitter {
		limits.Backoff.Jitter = JitterNone
	}
	for n, extended := 1, 0; len(runs) < most; {
		run := s.fail(p, d, now)
		run.Run = n + extended
		if p.Extends(d, run.Failure) {
			if extended == limits.Extensions {
				break
			}
			extended++
			run.Rule = ruleExtend
		} else {
			wait, again := limits.Next(d, n, run.Failure.FailedAt.Sub(began))
			if !again || Final(run.Failure) {
				break
			}
			run.Rule, run.Wait = ruleInClaim, wait
			run.Least, run.Most = s.InClaim.Backoff.Band(n)
			if s.Soonest {
				run.Wait = run.Least
			}
			n++
		}
		runs = append(runs, run)
		now = run.Failure.FailedAt.Add(run.Wait)
	}
	return runs, now
}

// Final reports whether a failure gets no second run in its claim: it is permanent, or the handler
// asked for a verb.
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
		q := facts{d: d, f: s.Failure, now: s.Failure.FailedAt, c: p.of(d.Type, s.Failure.Reason)}
		a := answer{late: s.Rule == ruleMinAge}
		least, most := q.wait(a, 0), q.wait(a, math.MaxUint64)
		after := min(marksOf(s.Failure.Err).After, nixie.MaxDelay)
		s.Least, s.Most = max(least, after), max(most, after)
	}
	if b := settled.Burial; b != nil {
		s.Cause, s.Status, s.Review, s.Redrivable = b.Cause, b.Status, b.NeedsReview, b.Redrivable
		s.Channel = ChannelReason(s.Failure.Class, b.Cause)
	}
}

// withoutJitter copies a policy and takes the jitter from all its waits.
func (p *Policy) withoutJitter() *Policy {
	exact := *p
	exact.config.Backoff.Jitter, exact.notice.Backoff.Jitter = JitterNone, JitterNone
	exact.cases = maps.Clone(p.cases)
	for key, c := range exact.cases {
		config := *c
		config.Backoff.Jitter = JitterNone
		exact.cases[key] = &config
	}
	return &exact
}
