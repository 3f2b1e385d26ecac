package nixie

import "time"

// Observer receives events of a worker, for example to count them. Its functions must not block and
// must not keep their arguments. A nil Observer and nil functions are allowed.
type Observer struct {
	Received func(queue string, deliveries []*Delivery)
	Settled  func(queue string, settlements []Settlement, errs []error)
	Late     func(d *Delivery, after time.Duration) // a handler runs past its deadline; d has no body: see lease.Renewal
	Trouble  func(queue string, err error)          // the source failed; the worker goes on
	Breaker  func(change BreakerChange)             // a circuit breaker entered another state
}

// BreakerChange tells that a circuit breaker entered a state.
type BreakerChange struct {
	Queue  string
	Type   string    // of the messages that the breaker holds back
	Reason Reason    // of the failures that it counts
	State  string    // open, half-open or closed
	Until  time.Time // end of the state open
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
