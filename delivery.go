package nixie

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// Lease says until when a delivery belongs to its holder. A settlement with an old lease is
// refused.
type Lease struct {
	Number    int64       `json:"number"` // fencing token of the message: each claim adds to it, also after a redrive
	Owner     string      `json:"owner"`  // the holder
	ExpiresAt time.Time   `json:"expires_at"`
	Handle    LeaseHandle `json:"-"`
}

// LeaseHandle lets the store or broker that made a lease find it again without a search. Only
// that store or broker reads it. A lease without a handle is looked up by message ID and number.
type LeaseHandle struct{ Pos, Batch, Member, Stream int64 }

// Delivery is a claimed message. It belongs to one handler at a time. Other goroutines may call
// Lost and Completed only.
type Delivery struct {
	Message
	Lease       Lease
	Abandoned   bool   // the last holder vanished: policy judges the delivery before it runs again
	AbandonedBy string // the holder that vanished

	// Of a redriven message, else zero: the operation that sent it back, zero too if none did, and
	// the moment of its first failure, in any generation.
	Operation     ID
	FirstFailedAt time.Time

	// AbandonedAlone reports that the last two holders vanished with this message alone in hand:
	// see lease.AloneTwice.
	AbandonedAlone bool

	// Damage names the parts of the stored record that could not be read, and are missing here.
	// A worker does not run such a delivery; policy buries it.
	Damage []string

	// Tracking belongs to the store, the broker and the worker; see package lease. Handlers
	// leave it alone.
	Tracking Tracking `json:"-"`
}

// Tracking holds what a store, a broker and a worker know of a delivery. They read and change
// it with package lease.
type Tracking struct {
	Watcher    interface{ Lost() <-chan struct{} } // nil: no worker watches over the lease
	SavedSteps int                                 // the store has this many of Steps
	Completed  uint32                              // 1: completed by a transaction of the handler; accessed atomically
	Intact     bool                                // the body was compared with its hash
	Then       []Message                           // see Delivery.Then
	Trial      Trial                               // it tries an open breaker
	OfBroker   bool                                // Then takes no dedupe keys
}

// Lost returns a channel that is closed when the lease is lost: the handler should stop, because
// its outcome will be refused. The channel is nil when no worker watches over the lease.
func (d *Delivery) Lost() <-chan struct{} {
	if d == nil || d.Tracking.Watcher == nil {
		return nil
	}
	return d.Tracking.Watcher.Lost()
}

// Completed reports whether a transaction of the handler has completed the message. The handler
// then returns nil: an error comes too late and is ignored.
func (d *Delivery) Completed() bool { return d != nil && atomic.LoadUint32(&d.Tracking.Completed) != 0 }

// Then adds messages that are enqueued when this delivery completes, in the same transaction: all
// of them and the success, or nothing. A delivery that does not complete enqueues none of them. A
// broker, which has no transaction, publishes them before it acknowledges, perhaps more than once.
//
// A message may have a dedupe key, also the one of this delivery, which is free by then; see
// [Settlement]. A broker takes no keys.
//
// It refuses what [CheckThen] refuses, for a broker [CheckThenOfBroker], and adds nothing then. A
// message to a closed queue is refused later, with the settlement: then the attempt has failed.
func (d *Delivery) Then(messages ...Message) error {
	if d == nil {
		return CheckThen(messages)
	}
	all, check := append(slices.Clip(d.Tracking.Then), messages...), CheckThen
	if d.Tracking.OfBroker {
		check = CheckThenOfBroker
	}
	if err := check(all); err != nil {
		return err
	}
	d.Tracking.Then = all
	return nil
}

// Done reports whether the named step is done.
func (d *Delivery) Done(step string) bool { return d != nil && slices.Contains(d.Steps, step) }

// Step runs do unless the named step of this message is done already, in this attempt, an earlier
// attempt or an earlier generation. The next extend or settle saves the step. After a crash before
// that do may run once more.
func (d *Delivery) Step(name string, do func() error) error {
	if d.Done(name) {
		return nil
	}
	if err := CheckName("step", name); err != nil {
		return err
	}
	if d == nil {
		d = &Delivery{} // a Job of a test: nothing keeps its steps
	}
	if len(d.Steps) >= MaxSteps {
		return Errorf(CodeLimit, "message has %d steps, the limit: use fewer, larger steps", MaxSteps)
	}
	if err := do(); err != nil {
		return &stepError{name, err}
	}
	d.Steps = append(d.Steps, name)
	if keeper, ok := d.Tracking.Watcher.(interface{ KeepSteps(steps []string) }); ok {
		keeper.KeepSteps(d.Steps)
	}
	return nil
}

type stepError struct {
	step string
	err  error
}

func (e *stepError) Error() string { return e.step + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// Step tells policy the step that failed.
func (e *stepError) Step() string { return e.step }

// Want tells a source what to deliver.
type Want struct {
	Max   int           // most deliveries to run; 1…[MaxBatch]
	Wait  time.Duration // longest wait for the first delivery; 0 returns at once
	Lease time.Duration // length of the leases; 0 is that of the queue, 30 s by default

	// LogProgress asks the claim to write down that these deliveries wait: see
	// lease.ProgressLog.
	LogProgress bool

	// NoSuspects excludes suspects: messages that vanished with a holder. A worker that has other
	// messages in hand sets it, because suspects run with nothing else.
	NoSuspects bool
	// Parallel says how many messages the receiver runs at once; 0 is one. It decides how many
	// suspects come together: see lease.GroupSize.
	Parallel int
}

// Source delivers messages and takes settlements. Workers and handlers are above it, stores and
// brokers below. It is safe for concurrent use.
type Source interface {
	// Receive claims up to want.Max messages. It returns none when want.Wait or ctx ends first.
	// Deliveries to be judged come alone, all that one call can carry, also beyond want.Max.
	// Suspects come alone too, in groups of lease.GroupSize: so other messages seldom vanish twice
	// with the same suspect.
	Receive(ctx context.Context, want Want) ([]*Delivery, error)
	// Extend renews leases and saves new steps. The i-th error answers the i-th delivery;
	// [CodeLeaseLost] tells the caller that the lease is lost. While a handler uses a delivery,
	// its worker gives the copy that lease.Renewal makes.
	Extend(ctx context.Context, deliveries []*Delivery, lease time.Duration) []error
	// Settle applies decisions. The i-th error answers the i-th settlement. If a message that was
	// to follow is refused, Queue of the [Error] names its queue.
	Settle(ctx context.Context, settlements []Settlement) []error
}

// Handler does the work. A nil error completes the message. Package policy decides what other
// errors mean.
type Handler interface {
	Handle(ctx context.Context, d *Delivery) error
}

// HandlerFunc makes a function a Handler.
type HandlerFunc func(ctx context.Context, d *Delivery) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, d *Delivery) error { return f(ctx, d) }

// Enqueuer accepts messages, all of a call or none. They are durable when the call returns without
// an error. After [CodeOutcomeUnknown] they may be accepted or not: repeat the call with the same
// dedupe keys. After any other error none is accepted.
type Enqueuer interface {
	Enqueue(ctx context.Context, messages ...Message) ([]Receipt, error)
}
