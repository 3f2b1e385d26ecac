package nixie

import (
	"context"
	"slices"
	"sync/atomic"
	"time"
)

// Lease is a claim with an end.
type Lease struct {
	Number    int64       `json:"number"` // fencing token of the message, grows at each claim of all lives
	Owner     string      `json:"owner"`  // who holds it
	ExpiresAt time.Time   `json:"expires_at"`
	Handle    LeaseHandle `json:"-"`
}

// LeaseHandle lets the store or broker that made a lease find it again without a search. Only
// that store or broker reads it. A lease without a handle is looked up by message ID and number.
type LeaseHandle struct{ Pos, Batch, Member, Stream int64 }

// Delivery is a message on loan. It belongs to one handler at a time; only
// Lost and Completed may be asked from other goroutines.
type Delivery struct {
	Message
	Lease       Lease
	Abandoned   bool   // the holder before vanished; a claim to judge, not to run
	AbandonedBy string // that holder

	// AbandonedAlone says that the holder which vanished had nothing else in hand, and
	// that the one which vanished before it had not either: see lease.AloneTwice.
	AbandonedAlone bool

	// Damage names what could not be read of the stored record and is left
	// out. Such a delivery must not be run; policy buries it.
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
}

// Lost returns a channel that is closed when the lease is lost: the handler should stop, because
// its outcome will be refused. The channel is nil when no worker watches over the lease.
func (d *Delivery) Lost() <-chan struct{} {
	if d.Tracking.Watcher == nil {
		return nil
	}
	return d.Tracking.Watcher.Lost()
}

// Completed reports whether the message was completed in a transaction of its
// handler. The handler then returns nil; an error comes too late to count.
func (d *Delivery) Completed() bool { return atomic.LoadUint32(&d.Tracking.Completed) != 0 }

// Done reports whether the named step is done.
func (d *Delivery) Done(step string) bool { return slices.Contains(d.Steps, step) }

// Step runs do unless the named step of this message is done already, in this
// attempt, an earlier one or an earlier life. Done steps are saved with the
// next extend or settle, so after a crash in between do may run once more.
func (d *Delivery) Step(name string, do func() error) error {
	if d.Done(name) {
		return nil
	}
	if err := CheckName("step", name); err != nil {
		return err
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

// Step lets policy find out in which step it failed.
func (e *stepError) Step() string { return e.step }

// Want says what a receiver can take.
type Want struct {
	Max   int           // most deliveries to return that are to be run; 1…[MaxBatch]
	Wait  time.Duration // how long to wait for the first one; 0 returns at once
	Lease time.Duration // how long to hold them; 0 is the queue's own, 30 s by default

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

// Source is where deliveries come from and settlements go to: the one
// interface between handlers above and stores and brokers below. It is safe
// for concurrent use.
type Source interface {
	// Receive claims up to want.Max messages and returns none when want.Wait
	// or ctx ends first. What is to be judged comes by itself, as much as there is
	// whatever want.Max says. Suspects come in
	// groups of lease.GroupSize and with nothing else, so that other messages seldom vanish with
	// the same suspect twice.
	Receive(ctx context.Context, want Want) ([]*Delivery, error)
	// Extend renews leases and saves new steps. The i-th error answers the
	// i-th delivery; [CodeLeaseLost] means that it is no longer the caller's.
	// A delivery may be given as its copy by lease.Renewal, while its handler uses
	// the delivery itself.
	Extend(ctx context.Context, deliveries []*Delivery, lease time.Duration) []error
	// Settle applies decisions. The i-th error answers the i-th settlement.
	Settle(ctx context.Context, settlements []Settlement) []error
}

// Handler does the work. A nil error completes the message; what other errors
// mean is decided by package policy.
type Handler interface {
	Handle(ctx context.Context, d *Delivery) error
}

// HandlerFunc makes a function a Handler.
type HandlerFunc func(ctx context.Context, d *Delivery) error

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, d *Delivery) error { return f(ctx, d) }

// Enqueuer takes messages in. The call is atomic: all are accepted and durable
// when it returns without an error, none when the error is a definite one. An
// error of [CodeOutcomeUnknown] says that nobody can tell: repeat the call
// with the same dedupe keys.
type Enqueuer interface {
	Enqueue(ctx context.Context, messages ...Message) ([]Receipt, error)
}
