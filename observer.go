package nixie

import "time"

// Observer receives events, for example to count them. A worker raises those of deliveries,
// store.Observe the others. Several goroutines call its functions at once. They must not block, and
// neither change nor keep their arguments. A nil Observer and nil functions are allowed.
type Observer struct {
	Enqueued func(queue string, messages int) // accepted, and not there before
	Received func(queue string, deliveries []*Delivery)
	Extended func(queue string, deliveries []*Delivery, errs []error) // leases were renewed, or not; see Late for the deliveries
	Settled  func(queue string, settlements []Settlement, errs []error)
	Lost     func(d *Delivery)                      // its lease is lost before its handler has ended; see Late for d
	Late     func(d *Delivery, after time.Duration) // a handler runs past its deadline; d has no body: see lease.Renewal
	Moved    func(moves []LetterMove)               // letters were redriven, discarded or held, or refused
	Noticed  func(n NoticeHandled)                  // a consumer of dead letters is done with a notice of a death
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
	At     time.Time // when it changed, or a source was told of it
	Since  time.Time // when it was closed last; zero in the state closed

	Failures int    // that opened it, while closed
	Text     string // of the newest failure that counted
	ExitCode *int   // of the same; nil when there was none
}

// LetterMove tells what an actor did with a letter.
type LetterMove struct {
	Letter *Letter // as it was before, without body, history and artifacts; only its ID if it was not found
	Event  string  // redrive, confirm, discard, hold, unhold, requalify, restore, note or purge: see store.Event
	Actor  string
	Err    error // why the letter stays as it was; nil: it was moved
}

// NoticeHandled tells what a consumer of dead letters did with the notice of a death.
type NoticeHandled struct {
	Queue                         string // where the message died
	Message                       ID
	Generation                    int           // of the message, that died; 0 is not known
	RequestID, TraceID, ErrorType string        // as in the notice
	Age                           time.Duration // since the death
	Took                          time.Duration // of the handler
	Action                        string        // [ActionReplay], [ActionDiscard] or [ActionAlert]
}

// What a consumer did with a notice.
const (
	ActionReplay  = "replay"  // the handler replayed the letter
	ActionDiscard = "discard" // the handler failed, or said so, and the notice was dropped; the letter stays
	ActionAlert   = "alert"   // the handler has taken note
)

// Complete returns an observer with a function for each event: those that o has, and for the others
// one that does nothing. O may be nil. It is for the code that raises events.
func (o *Observer) Complete() *Observer {
	all := Observer{}
	if o != nil {
		all = *o
	}
	if all.Enqueued == nil {
		all.Enqueued = func(string, int) {}
	}
	if all.Received == nil {
		all.Received = func(string, []*Delivery) {}
	}
	if all.Extended == nil {
		all.Extended = func(string, []*Delivery, []error) {}
	}
	if all.Settled == nil {
		all.Settled = func(string, []Settlement, []error) {}
	}
	if all.Lost == nil {
		all.Lost = func(*Delivery) {}
	}
	if all.Late == nil {
		all.Late = func(*Delivery, time.Duration) {}
	}
	if all.Moved == nil {
		all.Moved = func([]LetterMove) {}
	}
	if all.Noticed == nil {
		all.Noticed = func(NoticeHandled) {}
	}
	if all.Pruned == nil {
		all.Pruned = func(int64) {}
	}
	if all.Trouble == nil {
		all.Trouble = func(string, error) {}
	}
	if all.Connected == nil {
		all.Connected = func(string, bool) {}
	}
	if all.Breaker == nil {
		all.Breaker = func(BreakerChange) {}
	}
	return &all
}

// Tee joins two observers; either may be nil.
func Tee(a, b *Observer) *Observer {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	a, b = a.Complete(), b.Complete()
	return &Observer{
		Enqueued:  func(q string, n int) { a.Enqueued(q, n); b.Enqueued(q, n) },
		Received:  func(q string, ds []*Delivery) { a.Received(q, ds); b.Received(q, ds) },
		Extended:  func(q string, ds []*Delivery, es []error) { a.Extended(q, ds, es); b.Extended(q, ds, es) },
		Settled:   func(q string, ss []Settlement, es []error) { a.Settled(q, ss, es); b.Settled(q, ss, es) },
		Lost:      func(d *Delivery) { a.Lost(d); b.Lost(d) },
		Late:      func(d *Delivery, after time.Duration) { a.Late(d, after); b.Late(d, after) },
		Moved:     func(ms []LetterMove) { a.Moved(ms); b.Moved(ms) },
		Noticed:   func(n NoticeHandled) { a.Noticed(n); b.Noticed(n) },
		Pruned:    func(rows int64) { a.Pruned(rows); b.Pruned(rows) },
		Trouble:   func(q string, err error) { a.Trouble(q, err); b.Trouble(q, err) },
		Connected: func(q string, up bool) { a.Connected(q, up); b.Connected(q, up) },
		Breaker:   func(c BreakerChange) { a.Breaker(c); b.Breaker(c) },
	}
}
