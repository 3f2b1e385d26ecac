package worker

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

const (
	// maxBreakerTypes limits the types of messages that have breakers at one time. Failures of
	// other types open none.
	maxBreakerTypes = 10_000

	// looks limits the deliveries that a worker receives after a breaker has opened, to find
	// messages of types that it has not seen yet.
	looks = 100
)

// breakers holds the circuit breakers of a worker: one for each queue, message type and reason that
// fails.
type breakers struct {
	rulesOf   func(queue string) policy.BreakerRules
	lastTry   func(b *policy.Breaker, now time.Time) time.Time // when one that is open is tried next
	awaited   bool                                             // a caller waits for the end of the work
	troubled  atomic.Bool                                      // some type fails; otherwise no goroutine takes the lock
	succeeded atomic.Bool                                      // some message has succeeded

	mu      sync.Mutex
	failing map[typeKey]*typeBreakers // types that fail
	worked  map[typeKey]time.Time     // when a type that failed had its last success
	seen    map[typeKey]bool          // types that were received; only the receiver uses it
	newest  typeKey                   // of seen; the same
	looks   int                       // deliveries that may still be received while all types are open
	fresh   map[breakerKey]bool       // breakers whose changes the source was not told of
	told    chan struct{}             // there are some; nil: the source does not want to know
}

// typeKey names a queue and a message type. Messages of one key fail together.
type typeKey struct{ queue, messageType string }

func typeKeyOf(d *nixie.Delivery) typeKey { return typeKey{d.Queue, d.Type} }

// breakerKey names a breaker.
type breakerKey struct {
	typeKey
	reason nixie.Reason
}

// typeBreakers holds the breakers of one key.
type typeBreakers struct {
	rules    policy.BreakerRules
	byReason map[nixie.Reason]*breaker
}

// breaker is a breaker with the newest failure that counted.
type breaker struct {
	policy.Breaker
	opening  int // failures that opened it
	heals    bool
	cause    string // fingerprint of the newest failure that time does not heal
	text     string
	exitCode *int
}

// pass allows a run to begin.
type pass struct {
	tickets []ticket
	try     bool        // of a breaker that is not closed
	trial   nixie.Trial // what costs nothing then
}

// ticket is the number that a breaker gave to a run. A missing ticket counts as number 0.
type ticket struct {
	reason nixie.Reason
	number int
}

// begin asks whether a run may begin, and if not, how long to wait.
func (c *breakers) begin(k typeKey, now time.Time) (p pass, wait time.Duration, changes []nixie.BreakerChange, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.failing[k]
	if of == nil {
		return p, 0, nil, true
	}
	for reason, b := range of.byReason {
		answer := b.next(of.rules, policy.BreakerEvent{On: policy.BreakerAsked}, now)
		changes = appendChange(changes, breakerKey{k, reason}, b, answer)
		if !answer.Allow {
			for _, t := range p.tickets {
				of.byReason[t.reason].next(of.rules, policy.BreakerEvent{On: policy.BreakerReturned, Ticket: t.number}, now)
			}
			return pass{}, answer.Wait, changes, false
		}
		if answer.Ticket > 0 {
			p.tickets = append(p.tickets, ticket{reason, answer.Ticket})
		}
		p.try = p.try || answer.Try
	}
	switch {
	case !p.try || !of.rules.Healing:
	case c.everyReason():
		p.trial = nixie.TrialAny
	default:
		p.trial = nixie.TrialHealing
	}
	return p, 0, changes, true
}

// next applies an event.
func (b *breaker) next(rules policy.BreakerRules, e policy.BreakerEvent, now time.Time) (answer policy.BreakerDecision) {
	before := b.Breaker
	b.Breaker, answer = rules.Next(before, e, now)
	if answer.Changed && before.State == policy.BreakerClosed {
		b.opening = before.Failures + 1
	}
	return answer
}

// everyReason reports whether failures of every reason count.
func (c *breakers) everyReason() bool { return c.awaited && !c.succeeded.Load() }

// counts reports whether a failure counts. A permanent one says something about its message, and
// nothing about a service that it needs; so does an end that the handler asked for.
func (c *breakers) counts(rules policy.BreakerRules, f *nixie.Failure) bool {
	switch {
	case !rules.On():
		return false
	case !rules.Healing:
		return f.Class != nixie.ClassPermanent
	case policy.Heals(f):
		return true
	}
	return c.everyReason() && nixie.OutcomeOf(f.Err).Verb == ""
}

// end tells the breakers the outcome of a run. Only a failure that counts is given.
func (c *breakers) end(
	d *nixie.Delivery, p *pass, on policy.BreakerMoment, f *nixie.Failure, now time.Time,
) (changes []nixie.BreakerChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := typeKeyOf(d)
	if f != nil && !p.try && c.blames(d, k) {
		on, f = policy.BreakerReturned, nil
	}
	if f != nil {
		c.note(k, d, f)
	}
	of := c.failing[k]
	if of == nil {
		return nil
	}
	if on == policy.BreakerSucceeded {
		c.worked[k] = now
	}
	quiet := true
	for reason, b := range of.byReason {
		e := policy.BreakerEvent{On: on, Ticket: p.number(reason), Message: d.ID}
		trial := of.rules.Healing && b.State == policy.BreakerHalfOpen // it fails for any reason that counts
		if f != nil && reason != f.Reason && !trial {
			e.On = policy.BreakerReturned // the breaker of another reason learns nothing
		}
		answer := b.next(of.rules, e, now)
		if answer.Changed && !c.succeeded.Load() {
			b.Until = c.lastTry(&b.Breaker, now)
		}
		changes = appendChange(changes, breakerKey{k, reason}, b, answer)
		quiet = quiet && b.State == policy.BreakerClosed && b.Failures == 0
		if answer.Changed && b.State == policy.BreakerOpen && of.rules.Healing {
			c.looks = looks
		}
	}
	if quiet {
		c.forget(k)
	}
	return changes
}

// blames reports whether a failure says something about its message only: that has failed before,
// and since then others of its type have succeeded.
func (c *breakers) blames(d *nixie.Delivery, k typeKey) bool {
	since := d.Patience.FailingSince
	return !since.IsZero() && since.Before(c.worked[k]) && c.rulesOf(k.queue).Healing
}

// note notes a failure that counts, and makes a breaker for its reason.
func (c *breakers) note(k typeKey, d *nixie.Delivery, f *nixie.Failure) {
	of := c.failing[k]
	if of == nil {
		if len(c.failing) == maxBreakerTypes || len(c.worked) >= maxBreakerTypes && c.worked[k].IsZero() {
			return
		}
		if c.failing == nil {
			c.failing, c.worked = map[typeKey]*typeBreakers{}, map[typeKey]time.Time{}
		}
		of = &typeBreakers{c.rulesOf(k.queue), map[nixie.Reason]*breaker{}}
		c.failing[k] = of
		c.troubled.Store(true)
	}
	b := of.byReason[f.Reason]
	if b == nil {
		b = &breaker{heals: true}
		of.byReason[f.Reason] = b
	}
	b.heals = b.heals && policy.Heals(f)
	if of.rules.Healing && !policy.Heals(f) { // items that fail each in its own way open none
		_, cause := policy.SignatureOf(f, &d.Message)
		if b.State == policy.BreakerClosed && cause != b.cause {
			b.Failures, b.Messages = 0, nil
		}
		b.cause = cause
	}
	b.text, b.exitCode = f.Text, f.ExitCode
}

// forget removes a type whose breakers are all closed and count nothing.
func (c *breakers) forget(k typeKey) {
	delete(c.failing, k)
	c.troubled.Store(len(c.failing) > 0)
}

// firstSuccess forgets the failures that count only while nothing has succeeded.
func (c *breakers) firstSuccess() (changes []nixie.BreakerChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.succeeded.Swap(true) || !c.awaited {
		return nil
	}
	for k, of := range c.failing {
		for reason, b := range of.byReason {
			if !of.rules.Healing || b.heals {
				continue
			}
			if b.State != policy.BreakerClosed {
				b.Breaker = policy.Breaker{Entered: b.Entered + 1}
				changes = append(changes, changeOf(breakerKey{k, reason}, b))
			}
			delete(of.byReason, reason)
		}
		if len(of.byReason) == 0 {
			c.forget(k)
		}
	}
	return changes
}

func (p *pass) number(reason nixie.Reason) int {
	for _, t := range p.tickets {
		if t.reason == reason {
			return t.number
		}
	}
	return 0
}

func appendChange(
	changes []nixie.BreakerChange, key breakerKey, b *breaker, answer policy.BreakerDecision,
) []nixie.BreakerChange {
	if !answer.Changed {
		return changes
	}
	return append(changes, changeOf(key, b))
}

func changeOf(key breakerKey, b *breaker) nixie.BreakerChange {
	change := nixie.BreakerChange{Queue: key.queue, Type: key.messageType, Reason: key.reason, State: policy.BreakerClosed.String()}
	if b == nil {
		return change
	}
	change.State, change.Since = b.State.String(), b.Since
	change.Failures, change.Text, change.ExitCode = b.opening, b.text, b.exitCode
	if b.State == policy.BreakerOpen {
		change.Until = b.Until
	}
	return change
}

// received notes which types of messages the source has.
func (c *breakers) received(ds []*nixie.Delivery) {
	for _, d := range ds { // mostly of one type
		if k := typeKeyOf(d); k != c.newest && (c.seen[k] || len(c.seen) < maxBreakerTypes) {
			if c.seen == nil {
				c.seen = map[typeKey]bool{}
			}
			c.seen[k], c.newest = true, k
		}
	}
}

// open lists the breakers that hold messages back.
func (c *breakers) open() (list []nixie.BreakerChange) {
	if !c.troubled.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k, of := range c.failing {
		for reason, b := range of.byReason {
			if b.State != policy.BreakerClosed {
				list = append(list, changeOf(breakerKey{k, reason}, b))
			}
		}
	}
	return list
}

// looked notes that a delivery was received while its breaker is open.
func (c *breakers) looked() {
	c.mu.Lock()
	c.looks = max(c.looks-1, 0)
	c.mu.Unlock()
}

// room returns how many deliveries may be in hand, −1 for any number; if none, it also returns how
// long to wait. A receive cannot choose types. So if one type may run the worker receives all.
func (c *breakers) room(now time.Time) (runs int, wait time.Duration) {
	if !c.troubled.Load() {
		return -1, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	free, held := len(c.seen), false
	for k, of := range c.failing {
		least, last := of.room(now)
		if least < 0 {
			continue
		}
		if least == 0 && (wait == 0 || last < wait) {
			wait = last
		}
		runs, held = runs+least, true
		if c.seen[k] {
			free--
		}
	}
	if free > 0 || !held {
		return -1, 0
	}
	return cmp.Or(runs, c.looks), wait
}

// room returns how many deliveries of one type may be in hand, and how long to wait if none.
func (t *typeBreakers) room(now time.Time) (least int, wait time.Duration) {
	least = -1
	for _, b := range t.byReason {
		if n, w := t.rules.Room(b.Breaker, now); n >= 0 && (least < 0 || n < least || n == 0 && w > wait) {
			least, wait = n, w
		}
	}
	return least, wait
}

// tell notes for the source that a breaker changed.
func (c *breakers) tell(change nixie.BreakerChange) {
	if c.told == nil {
		return
	}
	c.mu.Lock()
	c.fresh[breakerKey{typeKey{change.Queue, change.Type}, change.Reason}] = true
	c.mu.Unlock()
	select {
	case c.told <- struct{}{}:
	default:
	}
}

// news returns the breakers whose changes the source was not told of, as they are now: goroutines
// may note changes in another order than that in which they happened.
func (c *breakers) news() (news []nixie.BreakerChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key := range c.fresh {
		var b *breaker
		if of := c.failing[key.typeKey]; of != nil {
			b = of.byReason[key.reason]
		}
		news = append(news, changeOf(key, b))
	}
	clear(c.fresh)
	return news
}
