package worker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// maxBreakerTypes limits the types of messages that have breakers at one time. Failures of other
// types open none.
const maxBreakerTypes = 10_000

// breakers holds the circuit breakers of a worker: one for each queue, message type and reason that
// fails.
type breakers struct {
	rules    policy.BreakerRules
	troubled atomic.Bool // some type fails; otherwise no goroutine takes the lock

	mu      sync.Mutex
	failing map[typeKey]typeBreakers // types that fail
	seen    map[typeKey]bool         // types that were received
	fresh   map[breakerKey]bool      // breakers whose changes the source was not told of
	told    chan struct{}            // there are some; nil: the source does not want to know
	paused  bool                     // nothing is received while a breaker is open: see saveDeliveries
}

// breakerKey names a breaker.
type breakerKey struct {
	typeKey
	reason nixie.Reason
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
		news = append(news, changeOf(key, c.failing[key.typeKey][key.reason]))
	}
	clear(c.fresh)
	return news
}

// typeKey names a queue and a message type. Messages of one key fail together.
type typeKey struct{ queue, messageType string }

func typeKeyOf(d *nixie.Delivery) typeKey { return typeKey{d.Queue, d.Type} }

// typeBreakers holds the breakers of one key, by reason.
type typeBreakers map[nixie.Reason]policy.Breaker

// ticket is the number that a breaker gave to a run when it began. A missing ticket counts as
// number 0.
type ticket struct {
	reason nixie.Reason
	number int
}

// begin asks whether a run may begin, and if not, how long to wait.
func (c *breakers) begin(k typeKey, now time.Time) (tickets []ticket, wait time.Duration, changes []nixie.BreakerChange, ok bool) {
	if !c.troubled.Load() {
		return nil, 0, nil, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	breakers := c.failing[k]
	for reason, b := range breakers {
		next, answer := c.rules.Next(b, policy.BreakerEvent{On: policy.BreakerAsked}, now)
		breakers[reason] = next
		changes = appendChange(changes, k, reason, next, answer)
		if !answer.Allow {
			for _, t := range tickets {
				returned := policy.BreakerEvent{On: policy.BreakerReturned, Ticket: t.number}
				breakers[t.reason], _ = c.rules.Next(breakers[t.reason], returned, now)
			}
			return nil, answer.Wait, changes, false
		}
		if answer.Ticket > 0 {
			tickets = append(tickets, ticket{reason, answer.Ticket})
		}
	}
	return tickets, 0, changes, true
}

// end tells the breakers the outcome of a run. Only a failure has a reason.
func (c *breakers) end(
	k typeKey, tickets []ticket, on policy.BreakerMoment, reason nixie.Reason, now time.Time,
) (changes []nixie.BreakerChange) {
	if c.rules.Failures == 0 || on != policy.BreakerFailed && !c.troubled.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	breakers := c.failing[k]
	if on == policy.BreakerFailed {
		breakers = c.with(k, reason)
	}
	quiet := true
	for r, b := range breakers {
		e := policy.BreakerEvent{On: on, Ticket: numberOf(tickets, r)}
		if on == policy.BreakerFailed && r != reason {
			e.On = policy.BreakerReturned // the breaker of another reason learns nothing
		}
		next, answer := c.rules.Next(b, e, now)
		breakers[r] = next
		changes = appendChange(changes, k, r, next, answer)
		quiet = quiet && next.State == policy.BreakerClosed && next.Failures == 0
	}
	if quiet {
		delete(c.failing, k)
	}
	c.troubled.Store(len(c.failing) > 0)
	c.paused = c.paused && len(c.failing) > 0
	return changes
}

// with returns the breakers of a key, with one for the reason.
func (c *breakers) with(k typeKey, reason nixie.Reason) typeBreakers {
	breakers := c.failing[k]
	if breakers == nil {
		if len(c.failing) == maxBreakerTypes {
			return nil
		}
		if c.failing == nil {
			c.failing = map[typeKey]typeBreakers{}
		}
		breakers = typeBreakers{}
		c.failing[k] = breakers
	}
	if _, known := breakers[reason]; !known {
		breakers[reason] = policy.Breaker{}
	}
	return breakers
}

func numberOf(tickets []ticket, reason nixie.Reason) int {
	for _, t := range tickets {
		if t.reason == reason {
			return t.number
		}
	}
	return 0
}

func appendChange(
	changes []nixie.BreakerChange, k typeKey, reason nixie.Reason, b policy.Breaker, answer policy.BreakerDecision,
) []nixie.BreakerChange {
	if !answer.Changed {
		return changes
	}
	return append(changes, changeOf(breakerKey{k, reason}, b))
}

func changeOf(key breakerKey, b policy.Breaker) nixie.BreakerChange {
	change := nixie.BreakerChange{Queue: key.queue, Type: key.messageType, Reason: key.reason, State: b.State.String()}
	if b.State == policy.BreakerOpen {
		change.Until = b.Until
	}
	return change
}

// received notes which types of messages the source has.
func (c *breakers) received(ds []*nixie.Delivery) {
	if c.rules.Failures == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[typeKey]bool{}
	}
	for _, d := range ds {
		if len(c.seen) < maxBreakerTypes {
			c.seen[typeKeyOf(d)] = true
		}
	}
}

// saveDeliveries notes that an open breaker uses up the deliveries of a message: giving it back
// costs one each time. From then on the worker receives nothing while a breaker is open.
func (c *breakers) saveDeliveries() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = len(c.failing) > 0
}

// room returns how many deliveries may be in hand, −1 for any number; if none, it also returns how
// long to wait. A receive cannot choose types. So if one type may run the worker receives all,
// unless that would use up deliveries.
func (c *breakers) room(now time.Time) (runs int, wait time.Duration) {
	if !c.troubled.Load() {
		return -1, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	closed := len(c.seen)
	for k, breakers := range c.failing {
		least, last := -1, time.Duration(0)
		for _, b := range breakers {
			if n, w := c.rules.Room(b, now); n >= 0 && (least < 0 || n < least) {
				least, last = n, w
			}
		}
		switch {
		case least < 0:
			continue
		case least == 0 && (wait == 0 || last < wait):
			wait = last
		}
		runs += least
		if c.seen[k] {
			closed--
		}
	}
	if closed > 0 && !(c.paused && (runs > 0 || wait > 0)) {
		return -1, 0
	}
	return runs, wait
}
