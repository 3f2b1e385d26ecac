package nixie

import "time"

// Observer is told what happened. Its functions take slices, must not block and
// must not keep what they are given; a nil Observer and nil functions are fine.
type Observer struct {
	Received func(queue string, deliveries []*Delivery)
	Settled  func(queue string, settlements []Settlement, errs []error)
	Late     func(d *Delivery, after time.Duration) // a handler is past its deadline and still running; d is a copy by lease.Renewal
	Trouble  func(queue string, err error)          // the source failed; the worker goes on
	Breaker  func(change BreakerChange)             // a circuit breaker of a worker entered another state
}

// BreakerChange is a circuit breaker that enters a state.
type BreakerChange struct {
	Queue  string
	Type   string    // of the messages it stands for
	Reason Reason    // of the failures it stands for
	State  string    // open, half-open or closed
	Until  time.Time // when an open one is tried
}

// Tee joins two observers; either may be nil.
func Tee(a, b *Observer) *Observer {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	return &Observer{
		Received: func(q string, ds []*Delivery) { a.OnReceived(q, ds); b.OnReceived(q, ds) },
		Settled:  func(q string, ss []Settlement, es []error) { a.OnSettled(q, ss, es); b.OnSettled(q, ss, es) },
		Late:     func(d *Delivery, after time.Duration) { a.OnLate(d, after); b.OnLate(d, after) },
		Trouble:  func(q string, err error) { a.OnTrouble(q, err); b.OnTrouble(q, err) },
		Breaker:  func(c BreakerChange) { a.OnBreaker(c); b.OnBreaker(c) },
	}
}

// OnReceived calls Received if there is one.
func (o *Observer) OnReceived(queue string, deliveries []*Delivery) {
	if o != nil && o.Received != nil {
		o.Received(queue, deliveries)
	}
}

// OnSettled calls Settled if there is one.
func (o *Observer) OnSettled(queue string, settlements []Settlement, errs []error) {
	if o != nil && o.Settled != nil {
		o.Settled(queue, settlements, errs)
	}
}

// OnLate calls Late if there is one.
func (o *Observer) OnLate(d *Delivery, after time.Duration) {
	if o != nil && o.Late != nil {
		o.Late(d, after)
	}
}

// OnTrouble calls Trouble if there is one.
func (o *Observer) OnTrouble(queue string, err error) {
	if o != nil && o.Trouble != nil {
		o.Trouble(queue, err)
	}
}

// OnBreaker calls Breaker if there is one.
func (o *Observer) OnBreaker(change BreakerChange) {
	if o != nil && o.Breaker != nil {
		o.Breaker(change)
	}
}
