package policy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
)

// BreakerRules configure a circuit breaker. With Failures −1 there is none, and every run may
// begin.
type BreakerRules struct {
	Failures    int           // this many in a row open it; in a config 0 is the default, and −1 none
	Successes   int           // this many while half-open close it again
	OpenFor     time.Duration // nothing runs for this long; then it is half-open
	HalfOpenMax int           // most runs at once while half-open

	// MaxOpenFor doubles the time for which it is open after each try that failed, up to this. 0
	// leaves it at OpenFor.
	MaxOpenFor time.Duration

	// Healing makes only failures count that time may heal, see [Heals], and each message once.
	// What is tried while it is half-open costs no attempt.
	Healing bool
}

// The breaker of the profile nixie.
const (
	breakerMessages = 10               // different messages in a row open it,
	oneHandMessages = 5                // and this many where one runs at a time
	breakerTries    = 3                // successes close it
	firstTry        = 2 * time.Second  // after it has opened; doubled after each try that fails,
	lastTry         = 5 * time.Minute  // up to this,
	awaitedTry      = 15 * time.Second // and up to this where a caller waits for the end

	// maxTries limits the tries of an open breaker that cost a message nothing, in one generation.
	maxTries = 25

	maxRow = 1000 // most failures that open a breaker which remembers each message
)

// DefaultBreaker returns the breaker of the profile nixie: it stops what fails because something
// that the work needs is away, and no bad message opens it.
func DefaultBreaker() BreakerRules {
	return BreakerRules{
		Failures: breakerMessages, Successes: breakerTries, OpenFor: firstTry, HalfOpenMax: 1, MaxOpenFor: lastTry, Healing: true,
	}
}

// countingBreaker returns the numbers of a breaker that counts failures of any reason.
func countingBreaker() BreakerRules {
	return BreakerRules{Failures: 5, Successes: 3, OpenFor: 30 * time.Second, HalfOpenMax: 3}
}

// Of fits the default breaker to work that runs that many messages at a time, and whose end a
// caller awaits or not. Other rules stay.
func (r BreakerRules) Of(hands int, awaited bool) BreakerRules {
	if r != DefaultBreaker() {
		return r
	}
	if hands == 1 {
		r.Failures = oneHandMessages
	}
	if awaited {
		r.MaxOpenFor = awaitedTry
	}
	return r
}

// On reports whether there is a breaker.
func (r BreakerRules) On() bool { return r.Failures > 0 }

// Check validates the rules. The zero value is valid, and so is Failures −1 alone.
func (r BreakerRules) Check() error {
	if r == (BreakerRules{}) || r == (BreakerRules{Failures: none}) {
		return nil
	}
	most := MaxCount
	if r.Healing {
		most = maxRow
	}
	for _, n := range [...]struct {
		name        string
		value, most int
	}{{"failures", r.Failures, most}, {"successes", r.Successes, MaxCount}, {"half_open_max", r.HalfOpenMax, MaxCount}} {
		if n.value < 1 || n.value > n.most {
			return nixie.Errorf(nixie.CodeInvalid,
				"breaker %s is %d: give a number from 1 to %d, or failures −1 alone for no breaker", n.name, n.value, n.most)
		}
	}
	if r.OpenFor < MinSpacing || r.OpenFor > nixie.MaxDelay {
		return nixie.Errorf(nixie.CodeInvalid,
			"breaker open_for is %s: give a duration from %s to %s", r.OpenFor, MinSpacing, nixie.MaxDelay)
	}
	if r.MaxOpenFor != 0 && (r.MaxOpenFor < r.OpenFor || r.MaxOpenFor > nixie.MaxDelay) {
		return nixie.Errorf(nixie.CodeInvalid,
			"breaker max_open_for is %s: give a duration from open_for, %s, to %s, or 0 for open_for",
			r.MaxOpenFor, r.OpenFor, nixie.MaxDelay)
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

	Messages []nixie.ID // those of Failures, with Healing
	Opened   int        // times in a row that it opened without a success
	Since    time.Time  // when it was closed last; zero while it is closed
}

// BreakerEvent asks a breaker for permission to run, or tells it that a run has ended.
type BreakerEvent struct {
	On     BreakerMoment
	Ticket int // from the decision that allowed the run that ended

	Message nixie.ID // of a run that failed
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
	Try     bool          // asked and allowed: the run finds out whether the cause is gone
	Wait    time.Duration // asked and refused: ask again after that, or when a run has ended
	Changed bool          // the breaker entered another state
}

// Next applies an event. An open breaker allows no run, so no attempt is spent on a message that
// will fail, and the messages stay queued. A run counts only for the state in which it began: an
// outcome of an older run changes nothing. A half-open breaker forgets runs that have given no
// outcome for as long as it may be open, and allows others.
func (r BreakerRules) Next(b Breaker, e BreakerEvent, now time.Time) (Breaker, BreakerDecision) {
	if !r.On() {
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
		return r.endClosed(b, e, now)
	case BreakerHalfOpen:
		return r.endTrial(b, e.On, now)
	}
	return b, BreakerDecision{} // nothing begins while it is open
}

// Room returns how many runs may be under way at once, −1 for any number; if none, it also returns
// how long to wait. Callers that fetch work ahead use it; each run still has to ask.
func (r BreakerRules) Room(b Breaker, now time.Time) (runs int, wait time.Duration) {
	switch {
	case !r.On() || b.State == BreakerClosed:
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
		b.Until = now.Add(r.longest())
	}
	if b.State == BreakerHalfOpen {
		if wait := b.Until.Sub(now); wait <= 0 { // their holder may have vanished
			b.Running, b.Until = 0, now.Add(r.longest())
		} else if b.Running >= r.HalfOpenMax {
			return b, BreakerDecision{Wait: min(wait, r.OpenFor)}
		}
		b.Running++
	}
	return b, BreakerDecision{Allow: true, Ticket: b.Entered, Try: b.State == BreakerHalfOpen, Changed: changed}
}

func (r BreakerRules) endClosed(b Breaker, e BreakerEvent, now time.Time) (Breaker, BreakerDecision) {
	switch e.On {
	case BreakerSucceeded:
		b.Failures, b.Messages = 0, nil
	case BreakerFailed:
		if r.Healing {
			if slices.Contains(b.Messages, e.Message) {
				return b, BreakerDecision{}
			}
			b.Messages = append(slices.Clip(b.Messages), e.Message)
		}
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
		b.Opened = 0
		if b.Successes >= r.Successes {
			return b.enter(BreakerClosed), BreakerDecision{Changed: true}
		}
	}
	return b, BreakerDecision{}
}

func (r BreakerRules) open(b Breaker, now time.Time) (Breaker, BreakerDecision) {
	if b.State == BreakerClosed {
		b.Since = now
	}
	b = b.enter(BreakerOpen)
	wait := r.OpenFor
	for range min(b.Opened, doublings) {
		wait = min(2*wait, r.longest())
	}
	b.Opened++
	b.Until = now.Add(wait)
	return b, BreakerDecision{Changed: true}
}

// doublings is more than a time needs to become the longest one.
const doublings = 64

// longest returns the longest time for which the breaker is open.
func (r BreakerRules) longest() time.Duration { return max(r.OpenFor, r.MaxOpenFor) }

// enter begins a state with counters at zero. What it knows of the trouble it forgets when closed.
func (b Breaker) enter(s BreakerState) Breaker {
	next := Breaker{State: s, Entered: b.Entered + 1}
	if s != BreakerClosed {
		next.Opened, next.Since = b.Opened, b.Since
	}
	return next
}

// String describes the rules in words.
func (r BreakerRules) String() string {
	switch {
	case !r.On():
		return "none"
	case r.Healing:
		return count(r.Failures) + " messages that fail in a row open it for " + short(r.OpenFor) + " to " +
			short(max(r.OpenFor, r.MaxOpenFor)) + " if time may heal it, " + count(r.Successes) + " successes close it"
	}
	return count(r.Failures) + " failures open it for " + short(r.OpenFor) + ", " +
		count(r.Successes) + " successes close it, " + count(r.HalfOpenMax) + " at once meanwhile"
}

// ParseBreaker reads rules from a command line: none, default for [DefaultBreaker], or up to four
// numbers such as 5,3,30s,3. They are failures, successes, open_for and half_open_max; those of
// the example are for what the text leaves out. Failures of any reason count for such a breaker.
// Errors have [nixie.CodeInvalid].
func ParseBreaker(text string) (BreakerRules, error) {
	switch text {
	case "none":
		return BreakerRules{Failures: none}, nil
	case "default":
		return DefaultBreaker(), nil
	}
	const form = "give none, default, or failures,successes,open_for,half_open_max such as 5,3,30s,3"
	r := countingBreaker()
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
	if !r.On() {
		return r, nixie.Errorf(nixie.CodeInvalid, "breaker %q opens after %d failures: %s", text, r.Failures, form)
	}
	return r, r.Check()
}
