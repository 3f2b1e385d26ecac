package worker

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// maxCircuits bounds the types of messages that have breakers at one time.
// Failures of further ones open none.
const maxCircuits = 10_000

// circuits are the circuit breakers of a worker: one for each queue, message type
// and reason that fails.
type circuits struct {
	rules    policy.BreakerRules
	troubled atomic.Bool // there is any: as long as nothing fails nobody locks

	mu     sync.Mutex
	kinds  map[kind]circuit // those that fail
	seen   map[kind]bool    // those that were received
	paused bool             // a message could not afford to be given back: see tight
}

// kind is what messages have in common that fail together.
type kind struct{ queue, kind string }

func kindOf(d *nixie.Delivery) kind { return kind{d.Queue, d.Type} }

// circuit is what stands for one kind.
type circuit map[nixie.Reason]policy.Breaker

// ticket is what a run got from a breaker when it began. One that is missing is
// number 0.
type ticket struct {
	reason nixie.Reason
	number int
}

// begin asks whether a run may begin, and if not, how long to wait.
func (c *circuits) begin(k kind, now time.Time) (tickets []ticket, wait time.Duration, changes []nixie.BreakerChange, ok bool) {
	if !c.troubled.Load() {
		return nil, 0, nil, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	breakers := c.kinds[k]
	for reason, b := range breakers {
		next, answer := c.rules.Next(b, policy.BreakerEvent{On: policy.BreakerAsked}, now)
		breakers[reason] = next
		changes = appendChange(changes, k, reason, next, answer)
		if !answer.Allow {
			for _, t := range tickets {
				breakers[t.reason], _ = c.rules.Next(breakers[t.reason], policy.BreakerEvent{On: policy.BreakerReturned, Ticket: t.number}, now)
			}
			return nil, answer.Wait, changes, false
		}
		if answer.Ticket > 0 {
			tickets = append(tickets, ticket{reason, answer.Ticket})
		}
	}
	return tickets, 0, changes, true
}

// end takes the outcome of a run in. Its reason counts with a failure only.
func (c *circuits) end(k kind, tickets []ticket, on policy.BreakerMoment, reason nixie.Reason, now time.Time) (changes []nixie.BreakerChange) {
	if c.rules.Failures == 0 || on != policy.BreakerFailed && !c.troubled.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	breakers := c.kinds[k]
	if on == policy.BreakerFailed {
		breakers = c.with(k, reason)
	}
	quiet := true
	for r, b := range breakers {
		e := policy.BreakerEvent{On: on, Ticket: numberOf(tickets, r)}
		if on == policy.BreakerFailed && r != reason {
			e.On = policy.BreakerReturned // it says nothing about this reason
		}
		next, answer := c.rules.Next(b, e, now)
		breakers[r] = next
		changes = appendChange(changes, k, r, next, answer)
		quiet = quiet && next.State == policy.BreakerClosed && next.Failures == 0
	}
	if quiet {
		delete(c.kinds, k)
	}
	c.troubled.Store(len(c.kinds) > 0)
	c.paused = c.paused && len(c.kinds) > 0
	return changes
}

// with returns the breakers of a type, one for the reason among them.
func (c *circuits) with(k kind, reason nixie.Reason) circuit {
	breakers := c.kinds[k]
	if breakers == nil {
		if len(c.kinds) == maxCircuits {
			return nil
		}
		if c.kinds == nil {
			c.kinds = map[kind]circuit{}
		}
		breakers = circuit{}
		c.kinds[k] = breakers
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

func appendChange(changes []nixie.BreakerChange, k kind, reason nixie.Reason, b policy.Breaker, answer policy.BreakerDecision) []nixie.BreakerChange {
	if !answer.Changed {
		return changes
	}
	change := nixie.BreakerChange{Queue: k.queue, Type: k.kind, Reason: reason, State: b.State.String()}
	if b.State == policy.BreakerOpen {
		change.Until = b.Until
	}
	return append(changes, change)
}

// received notes what there is.
func (c *circuits) received(ds []*nixie.Delivery) {
	if c.rules.Failures == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[kind]bool{}
	}
	for _, d := range ds {
		if len(c.seen) < maxCircuits {
			c.seen[kindOf(d)] = true
		}
	}
}

// tight notes that a message is given back that cannot afford it often: each time
// is one of the deliveries that a message may have, and a breaker must not use
// them up. From then on nothing is received while a breaker is open.
func (c *circuits) tight() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = len(c.kinds) > 0
}

// room says how many deliveries may be in hand, −1 for any number, and with none
// how long it stays so. A receive cannot choose types: as long as one of them may
// run everything is received, unless that is too dear.
func (c *circuits) room(now time.Time) (runs int, wait time.Duration) {
	if !c.troubled.Load() {
		return -1, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	closed := len(c.seen)
	for k, breakers := range c.kinds {
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
