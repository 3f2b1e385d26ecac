package policy

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
)

// BreakerRules configure a circuit breaker. With Failures 0 there is no breaker, and every run
// may begin.
type BreakerRules struct {
	Failures    int           // this many in a row open it
	Successes   int           // this many while half-open close it again
	OpenFor     time.Duration // nothing runs for this long; then it is half-open
	HalfOpenMax int           // most runs at once while half-open
}

// DefaultBreaker returns the rules of a breaker that is switched on without numbers.
func DefaultBreaker() BreakerRules {
	return BreakerRules{Failures: 5, Successes: 3, OpenFor: 30 * time.Second, HalfOpenMax: 3}
}

// Check validates the rules. The zero value is valid.
func (r BreakerRules) Check() error {
	if r == (BreakerRules{}) {
		return nil
	}
	for _, n := range [...]struct {
		name  string
		value int
	}{{"failures", r.Failures}, {"successes", r.Successes}, {"half_open_max", r.HalfOpenMax}} {
		if n.value < 1 || n.value > MaxCount {
			return nixie.Errorf(nixie.CodeInvalid,
				"breaker %s is %d: give a number from 1 to %d, or set none of its numbers for no breaker", n.name, n.value, MaxCount)
		}
	}
	if r.OpenFor < MinSpacing || r.OpenFor > nixie.MaxDelay {
		return nixie.Errorf(nixie.CodeInvalid,
			"breaker open_for is %s: give a duration from %s to %s", r.OpenFor, MinSpacing, nixie.MaxDelay)
	}
	return nil
}

// BreakerState names a state of a breaker. The zero Breaker is closed.
type BreakerState string

// The states and the events that end them:
//
//	closed     Failures in a row           → open
//	open       asked after OpenFor         → half-open
//	half-open  a failure                   → open
//	half-open  Successes                   → closed
const (
	BreakerClosed   BreakerState = ""          // everything runs
	BreakerOpen     BreakerState = "open"      // nothing runs
	BreakerHalfOpen BreakerState = "half-open" // HalfOpenMax run, to find out whether the cause is gone
)

// String names the state.
func (s BreakerState) String() string { return string(cmp.Or(s, "closed")) }

// Breaker holds the state of one circuit breaker. It is a value: [BreakerRules.Next] returns the
// next one. Its counters begin at zero in each state.
type Breaker struct {
	State     BreakerState
	Entered   int       // states entered so far; also the ticket of runs that begin in this state
	Failures  int       // in a row, while closed
	Successes int       // while half-open
	Running   int       // runs begun while half-open that have not ended
	Until     time.Time // while open: when it becomes half-open; while half-open: when it forgets runs without an outcome
}

// BreakerEvent asks a breaker for permission to run, or tells it that a run has ended.
type BreakerEvent struct {
	On     BreakerMoment
	Ticket int // from the decision that allowed the run that ended
}

// BreakerMoment names an event.
type BreakerMoment string

// The events.
const (
	BreakerAsked     BreakerMoment = "asked"     // may a run begin?
	BreakerSucceeded BreakerMoment = "succeeded" // a run ended well
	BreakerFailed    BreakerMoment = "failed"    // a run failed
	BreakerReturned  BreakerMoment = "returned"  // a run ended without an outcome: released, or its lease lost
)

// BreakerDecision answers an event.
type BreakerDecision struct {
	Allow   bool          // asked: the run may begin
	Ticket  int           // asked and allowed: the caller passes it on with the outcome
	Wait    time.Duration // asked and refused: ask again after that, or when a run has ended
	Changed bool          // the breaker entered another state
}

// Next applies an event. An open breaker allows no run, so no attempt is spent on a message that
// will fail, and the messages stay queued. A run counts only for the state in which it began: an
// outcome of an older run changes nothing. A half-open breaker forgets runs that have given no
// outcome for OpenFor, and allows others.
func (r BreakerRules) Next(b Breaker, e BreakerEvent, now time.Time) (Breaker, BreakerDecision) {
	if r.Failures == 0 {
		return b, BreakerDecision{Allow: e.On == BreakerAsked}
	}
	if e.On == BreakerAsked {
		return r.ask(b, now)
	}
	if e.Ticket != b.Entered {
		return b, BreakerDecision{}
	}
	switch b.State {
	case BreakerClosed:
		return r.endClosed(b, e.On, now)
	case BreakerHalfOpen:
		return r.endTrial(b, e.On, now)
	}
	return b, BreakerDecision{} // nothing begins while it is open
}

// Room returns how many runs may be under way at once, −1 for any number; if none, it also returns
// how long to wait. Callers that fetch work ahead use it; each run still has to ask.
func (r BreakerRules) Room(b Breaker, now time.Time) (runs int, wait time.Duration) {
	switch {
	case r.Failures == 0 || b.State == BreakerClosed:
		return none, 0
	case b.State == BreakerOpen && now.Before(b.Until):
		return 0, b.Until.Sub(now)
	}
	return r.HalfOpenMax, 0
}

func (r BreakerRules) ask(b Breaker, now time.Time) (Breaker, BreakerDecision) {
	changed := false
	if b.State == BreakerOpen {
		if wait := b.Until.Sub(now); wait > 0 {
			return b, BreakerDecision{Wait: wait}
		}
		b, changed = b.enter(BreakerHalfOpen), true
		b.Until = now.Add(r.OpenFor)
	}
	if b.State == BreakerHalfOpen {
		if wait := b.Until.Sub(now); wait <= 0 { // their holder may have vanished
			b.Running, b.Until = 0, now.Add(r.OpenFor)
		} else if b.Running >= r.HalfOpenMax {
			return b, BreakerDecision{Wait: wait}
		}
		b.Running++
	}
	return b, BreakerDecision{Allow: true, Ticket: b.Entered, Changed: changed}
}

func (r BreakerRules) endClosed(b Breaker, on BreakerMoment, now time.Time) (Breaker, BreakerDecision) {
	switch on {
	case BreakerSucceeded:
		b.Failures = 0
	case BreakerFailed:
		b.Failures++
		if b.Failures >= r.Failures {
			return r.open(b, now)
		}
	}
	return b, BreakerDecision{}
}

func (r BreakerRules) endTrial(b Breaker, on BreakerMoment, now time.Time) (Breaker, BreakerDecision) {
	b.Running = max(b.Running-1, 0)
	switch on {
	case BreakerFailed:
		return r.open(b, now)
	case BreakerSucceeded:
		b.Successes++
		if b.Successes >= r.Successes {
			return b.enter(BreakerClosed), BreakerDecision{Changed: true}
		}
	}
	return b, BreakerDecision{}
}

func (r BreakerRules) open(b Breaker, now time.Time) (Breaker, BreakerDecision) {
	b = b.enter(BreakerOpen)
	b.Until = now.Add(r.OpenFor)
	return b, BreakerDecision{Changed: true}
}

// enter begins a state with counters at zero.
func (b Breaker) enter(s BreakerState) Breaker { return Breaker{State: s, Entered: b.Entered + 1} }

// String describes the rules in words.
func (r BreakerRules) String() string {
	if r.Failures == 0 {
		return "none"
	}
	return count(r.Failures) + " failures open it for " + short(r.OpenFor) + ", " +
		count(r.Successes) + " successes close it, " + count(r.HalfOpenMax) + " at once meanwhile"
}

// ParseBreaker reads rules from a command line: none, default, or up to four numbers such as
// 5,3,30s,3. They are failures, successes, open_for and half_open_max; [DefaultBreaker] gives
// those that the text leaves out. Errors have [nixie.CodeInvalid].
func ParseBreaker(text string) (BreakerRules, error) {
	switch text {
	case "none":
		return BreakerRules{}, nil
	case "default":
		return DefaultBreaker(), nil
	}
	const form = "give none, default, or failures,successes,open_for,half_open_max such as 5,3,30s,3"
	r := DefaultBreaker()
	parts := strings.Split(text, ",")
	if len(parts) > 4 {
		return r, nixie.Errorf(nixie.CodeInvalid, "breaker %q has %d parts: %s", text, len(parts), form)
	}
	for i, part := range parts {
		var err error
		part = strings.TrimSpace(part)
		switch i {
		case 0:
			r.Failures, err = strconv.Atoi(part)
		case 1:
			r.Successes, err = strconv.Atoi(part)
		case 2:
			r.OpenFor, err = filter.ParseDuration(part)
		case 3:
			r.HalfOpenMax, err = strconv.Atoi(part)
		}
		if err != nil {
			return r, nixie.Errorf(nixie.CodeInvalid, "breaker %q cannot be read at %q: %s", text, part, form)
		}
	}
	if r.Failures == 0 {
		return r, nixie.Errorf(nixie.CodeInvalid, "breaker %q opens after 0 failures: %s", text, form)
	}
	return r, r.Check()
}
