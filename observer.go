package nixie

import "time"

// Observer receives events, for example to count them. A worker raises those of deliveries,
// store.Observe the others. Several goroutines call its functions at once. They must not block, must
// not change their arguments, and must not keep them. A nil Observer and nil functions are allowed,
// and cost nothing.
type Observer struct {
	Enqueued func(queue string, messages int) // accepted, and not there before
	Received func(queue string, deliveries []*Delivery)
	Extended func(queue string, deliveries []*Delivery, errs []error) // leases were renewed, or not; see Late for the deliveries
	Settled  func(queue string, settlements []Settlement, errs []error)
	Lost     func(d *Delivery)                      // its lease is lost before its handler has ended; see Late for d
	Late     func(d *Delivery, after time.Duration) // a handler runs past its deadline; d has no body: see lease.Renewal
	Moved    func(moves []LetterMove)               // letters were redriven, discarded or held, or refused
	Pruned   func(rows int64)                       // were removed for good: by retention, or a purge

	Trouble   func(queue string, err error) // the source failed; the worker goes on
	Connected func(queue string, up bool)   // the source answers the worker, or no longer
	Breaker   func(change BreakerChange)    // a circuit breaker entered another state
}

// BreakerChange tells that a circuit breaker entered a state.
type BreakerChange struct {
	Queue  string
	Type   string    // of the messages that the breaker holds back
	Reason Reason    // of the failures that it counts
	State  string    // open, half-open or closed
	Until  time.Time // end of the state open
}

// LetterMove tells what an actor did with a letter.
type LetterMove struct {
	Letter *Letter // as it was before, without body, history and artifacts; only its ID if it was not found
	Event  string  // redrive, confirm, discard, hold, unhold, requalify, restore, note or purge: see store.Event
	Actor  string
	Err    error // why the letter stays as it was; nil: it was moved
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
		Enqueued:  func(q string, n int) { a.OnEnqueued(q, n); b.OnEnqueued(q, n) },
		Received:  func(q string, ds []*Delivery) { a.OnReceived(q, ds); b.OnReceived(q, ds) },
		Extended:  func(q string, ds []*Delivery, es []error) { a.OnExtended(q, ds, es); b.OnExtended(q, ds, es) },
		Settled:   func(q string, ss []Settlement, es []error) { a.OnSettled(q, ss, es); b.OnSettled(q, ss, es) },
		Lost:      func(d *Delivery) { a.OnLost(d); b.OnLost(d) },
		Late:      func(d *Delivery, after time.Duration) { a.OnLate(d, after); b.OnLate(d, after) },
		Moved:     func(ms []LetterMove) { a.OnMoved(ms); b.OnMoved(ms) },
		Pruned:    func(rows int64) { a.OnPruned(rows); b.OnPruned(rows) },
		Trouble:   func(q string, err error) { a.OnTrouble(q, err); b.OnTrouble(q, err) },
		Connected: func(q string, up bool) { a.OnConnected(q, up); b.OnConnected(q, up) },
		Breaker:   func(c BreakerChange) { a.OnBreaker(c); b.OnBreaker(c) },
	}
}

// OnEnqueued calls Enqueued if there is one.
func (o *Observer) OnEnqueued(queue string, messages int) {
	if o != nil && o.Enqueued != nil {
		o.Enqueued(queue, messages)
	}
}

// OnReceived calls Received if there is one.
func (o *Observer) OnReceived(queue string, deliveries []*Delivery) {
	if o != nil && o.Received != nil {
		o.Received(queue, deliveries)
	}
}

// OnExtended calls Extended if there is one.
func (o *Observer) OnExtended(queue string, deliveries []*Delivery, errs []error) {
	if o != nil && o.Extended != nil {
		o.Extended(queue, deliveries, errs)
	}
}

// OnSettled calls Settled if there is one.
func (o *Observer) OnSettled(queue string, settlements []Settlement, errs []error) {
	if o != nil && o.Settled != nil {
		o.Settled(queue, settlements, errs)
	}
}

// OnLost calls Lost if there is one.
func (o *Observer) OnLost(d *Delivery) {
	if o != nil && o.Lost != nil {
		o.Lost(d)
	}
}

// OnLate calls Late if there is one.
func (o *Observer) OnLate(d *Delivery, after time.Duration) {
	if o != nil && o.Late != nil {
		o.Late(d, after)
	}
}

// OnMoved calls Moved if there is one.
func (o *Observer) OnMoved(moves []LetterMove) {
	if o != nil && o.Moved != nil {
		o.Moved(moves)
	}
}

// OnPruned calls Pruned if there is one.
func (o *Observer) OnPruned(rows int64) {
	if o != nil && o.Pruned != nil {
		o.Pruned(rows)
	}
}

// OnTrouble calls Trouble if there is one.
func (o *Observer) OnTrouble(queue string, err error) {
	if o != nil && o.Trouble != nil {
		o.Trouble(queue, err)
	}
}

// OnConnected calls Connected if there is one.
func (o *Observer) OnConnected(queue string, up bool) {
	if o != nil && o.Connected != nil {
		o.Connected(queue, up)
	}
}

// OnBreaker calls Breaker if there is one.
func (o *Observer) OnBreaker(change BreakerChange) {
	if o != nil && o.Breaker != nil {
		o.Breaker(change)
	}
}
