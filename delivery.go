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
	// that the one which vanished before it had not either: see [AloneTwice].
	AbandonedAlone bool

	// Damage names what could not be read of the stored record and is left
	// out. Such a delivery must not be run; policy buries it.
	Damage []string

	lender    Lender
	saved     int    // how many of Steps the store has
	completed uint32 // 1: in a transaction of its handler; accessed atomically
	intact    bool   // the body was compared with its hash
}

// Loan makes a delivery ready for use. Stores and brokers call it; handlers
// receive deliveries that are ready.
func (d *Delivery) Loan() { d.saved = len(d.Steps) }

// Intact reports whether the body has the hash that was taken when it was accepted. A
// body that was found so is not hashed again: the store asks, and then the worker.
func (d *Delivery) Intact() bool {
	d.intact = d.intact || HashBody(d.Body) == d.Hash
	return d.intact
}

// Lost returns a channel that is closed when the lease is no longer ours: the
// handler should stop, as its outcome will be refused. It is nil when nobody
// watches over the lease.
func (d *Delivery) Lost() <-chan struct{} {
	if d.lender == nil {
		return nil
	}
	return d.lender.Lost()
}

// Lender watches over the leases of deliveries: a worker or a broker.
type Lender interface{ Lost() <-chan struct{} }

// StepKeeper is a Lender that wants to know of finished steps while the handler
// runs, to save them when it renews the lease. It must not change what it is
// given; the handler only appends to it.
type StepKeeper interface{ KeepSteps(steps []string) }

// LentBy says who watches over the lease. Workers and brokers call it before
// the handler starts.
func (d *Delivery) LentBy(l Lender) { d.lender = l }

// MarkCompleted says that the message was completed in a transaction of the
// handler itself. Stores call it, when that transaction has committed if they
// can tell.
func (d *Delivery) MarkCompleted() { atomic.StoreUint32(&d.completed, 1) }

// Completed reports whether the message was completed in a transaction of its
// handler. The handler then returns nil; an error comes too late to count.
func (d *Delivery) Completed() bool { return atomic.LoadUint32(&d.completed) != 0 }

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
	if keeper, ok := d.lender.(StepKeeper); ok {
		keeper.KeepSteps(d.Steps)
	}
	return nil
}

// NewSteps returns the steps done since the delivery was received.
func (d *Delivery) NewSteps() []string { return d.Steps[min(d.saved, len(d.Steps)):] }

// Claim is what names a delivery and its lease, with the steps given: what
// Source.Extend needs while a handler works on the delivery itself. It has no
// body and no headers.
func (d *Delivery) Claim(steps []string) *Delivery {
	return &Delivery{
		Message: Message{
			ID: d.ID, Queue: d.Queue, Type: d.Type, Key: d.Key, Stream: d.Stream, Origin: d.Origin, Steps: steps,
			Attempts: d.Attempts, Deliveries: d.Deliveries, Crashes: d.Crashes, Generation: d.Generation, Redrives: d.Redrives,
		},
		Lease:     d.Lease,
		Abandoned: d.Abandoned,
		saved:     d.saved,
	}
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
	Noted bool          // those received are noted as waiting, in the claim itself; see [Recorder]

	// NoSuspects is set by who has something else in hand: no suspects, which are messages
	// that vanished with a holder, are to be run beside that.
	NoSuspects bool
	// Parallel is how many messages the receiver runs at once, 0 is one: suspects come
	// in groups of [GroupOf].
	Parallel int
}

// GroupOf is how many suspects are run together after so many holders of each vanished
// in a row: half of those that run at once, then a quarter, and at last one.
func GroupOf(parallel, crashes int) int {
	return max(1, parallel>>min(max(crashes, 0), maxHalvings))
}

// AloneTwice reports whether a suspect of so many crashes, whose groups were those of
// [GroupOf], was alone already when its last holder vanished.
func AloneTwice(parallel, crashes int) bool {
	return max(parallel, 1)>>min(max(crashes, 0), maxHalvings) == 0
}

// maxHalvings makes one of any number that runs at once.
const maxHalvings = 31

// Source is where deliveries come from and settlements go to: the one
// interface between handlers above and stores and brokers below. It is safe
// for concurrent use.
type Source interface {
	// Receive claims up to want.Max messages and returns none when want.Wait
	// or ctx ends first. What is to be judged comes by itself, as much as there is
	// whatever want.Max says. Suspects come in groups of [GroupOf], with nothing beside
	// them, so that their neighbours seldom share their fate twice.
	Receive(ctx context.Context, want Want) ([]*Delivery, error)
	// Extend renews leases and saves new steps. The i-th error answers the
	// i-th delivery; [CodeLeaseLost] means that it is no longer the caller's.
	// A delivery may be given as its [Delivery.Claim], because its handler is
	// at work on the delivery itself.
	Extend(ctx context.Context, deliveries []*Delivery, lease time.Duration) []error
	// Settle applies decisions. The i-th error answers the i-th settlement.
	Settle(ctx context.Context, settlements []Settlement) []error
}

// Alarm is an optional ability of a source: to say at once that leases may be lost
// before their time, because what is handed out is shared anew for example.
type Alarm interface {
	// LeasesLost returns a channel that is closed when that next happens. Extend
	// then tells which leases it was. It is nil where it cannot happen.
	LeasesLost() <-chan struct{}
}

// PolicyKeeper is an optional ability of a source: to say which policies are kept with
// its queues, for workers that have none of their own.
type PolicyKeeper interface {
	// Policies returns [QueueSettings].Policy of the source's queues by their names,
	// without those that have none.
	Policies(ctx context.Context) (map[string]string, error)
}

// Slow is an optional ability of a source: to say which settlements wait for something
// that others do not, such as a broker that confirms a letter. Those have calls of
// Settle of their own, beside the others, which a worker waits for as long as they take:
// their context ends 30 s after its last handler has returned.
type Slow interface {
	// Slow reports whether a settlement is such a one.
	Slow(st *Settlement) bool
}

// Stage is how far the holder of a delivery is with it.
type Stage byte

// The stages of a delivery.
const (
	StageWaiting   Stage = 1 + iota // received, not begun
	StageBegun                      // nobody knows what it has done
	StageSucceeded                  // it will be settled so, with no step that is new
)

// Recorder is an optional ability of a store: to note how far this process is
// with what it holds, for much less than a commit costs. The notes outlive the
// process, however it ends; a power loss may take them, but never makes what was
// begun look as if it had waited.
type Recorder interface {
	// Record notes a stage; that of waiting is noted by a claim with Noted. When
	// the lease of such a delivery ends without a word, by time or because this
	// process died, what has succeeded is settled, what waited is queued again as
	// if it had been released, and only what was begun is to be judged, like
	// everything of which nothing is noted. After an error nobody knows whether the
	// stage is noted.
	Record(stage Stage, deliveries ...*Delivery) error
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
