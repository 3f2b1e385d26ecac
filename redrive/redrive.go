// Package redrive carries out long work on letters: sending them back to their
// queues, discarding or purging them, or whatever else an operator does to many.
//
// Such an operation has two halves. [Engine.Plan] freezes a selection in the
// store; [Engine.Run] resolves it in the order of the plan, in small groups,
// never faster than the rate. What is done is marked in the same transaction
// that does it, so Run may be stopped or killed anywhere and called again, also
// by several processes at once: each letter is moved once.
package redrive

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Bounds of an engine.
const (
	// DefaultBatch is how many letters share a commit.
	DefaultBatch = 100
	// DefaultSend is how many letters that go to a broker do. While they are resolved,
	// as many are sent: that is what a kill repeats at most, twice that number.
	DefaultSend = 500
	// MaxBatch is the most letters that may share a commit: what a stop has to
	// wait for.
	MaxBatch = 1_000
	// MaxRate is the highest rate, in letters per second.
	MaxRate = 1_000_000
	// MaxRefusals is how many refusals a [Result] names.
	MaxRefusals = 20

	fetch = 10_000           // pending letters asked for at once
	grace = 30 * time.Second // for what is under way when the context ends
)

// Store is what the engine needs of a store.
type Store interface {
	store.DeadLetters
	store.Operations
}

// Config of an engine. Zero fields mean the default, −1 none.
type Config struct {
	Store       Store                                            // required
	Send        SendFunc                                         // of letters that are redriven; default: the store queues them again
	Edit        EditFunc                                         // of letters that are redriven into their queues; default: they go as they are
	Batch       int                                              // letters in one commit; [DefaultBatch], with Send [DefaultSend]
	Rate        float64                                          // letters per second: at most Rate·t + 1 after t; default none
	MaxRedrives int                                              // a letter redriven so often is refused; [policy.DefaultMaxRedrives]
	Force       bool                                             // also if the operation does not say so
	SetsAside   bool                                             // Send puts such a letter aside instead, see [Destination.Quarantine]
	Stop        Stop                                             // when a redrive stops by itself
	Clock       func() time.Time                                 // default time.Now
	Wait        func(ctx context.Context, d time.Duration) error // default a timer
	Progress    func(store.Operation)                            // told after each group; must not block
}

// SendFunc hands letters to a broker and answers each: no error means that the broker
// has it for good. What is wrong with one letter is of [nixie.CodeInvalid],
// [nixie.CodeConflict], [nixie.CodeNotFound], [nixie.CodeLimit] or
// [nixie.CodeDenied], and the letter is skipped; any other error ends the run, and
// the letter stays pending.
type SendFunc = func(ctx context.Context, letters []nixie.Letter) []error

// Engine carries out operations. It is safe for concurrent use.
type Engine struct{ c Config }

// Refusal is a letter that was left as it is, and why.
type Refusal struct {
	Letter nixie.ID `json:"letter"`
	Why    string   `json:"why"`
}

// Result is how far an operation is after a run.
type Result struct {
	store.Operation
	Refused []Refusal // by this run, at most [MaxRefusals]; Skipped and Failed count all

	Quarantined int64 // of those done by this run: put aside, see [Config.SetsAside]
	Unanswered  int64 // by this run: sent, and nobody knows whether the broker has them; they are pending

	Outcome store.Outcome // of a redrive
}

// New checks a config and makes an engine of it.
func New(c Config) (*Engine, error) {
	switch {
	case c.Batch == 0 && c.Send != nil:
		c.Batch = DefaultSend
	case c.Batch == 0:
		c.Batch = DefaultBatch
	}
	var err error
	if c.MaxRedrives, err = capOf(c.MaxRedrives); err != nil {
		return nil, err
	}
	if c.Stop, err = c.Stop.withDefaults(); err != nil {
		return nil, err
	}
	c.Clock = orSystem(c.Clock)
	if c.Wait == nil {
		c.Wait = wait
	}
	switch {
	case c.Store == nil:
		return nil, nixie.Errorf(nixie.CodeInvalid, "redrive has no store")
	case c.Send != nil && c.Edit != nil:
		return nil, nixie.Errorf(nixie.CodeInvalid, "redrive has Send and Edit: what is sent is changed by its Destination")
	case c.Batch < 1 || c.Batch > MaxBatch:
		return nil, nixie.Errorf(nixie.CodeInvalid, "batch is %d: give one from 1 to %d", c.Batch, MaxBatch)
	case !(c.Rate >= 0 && c.Rate <= MaxRate): // also when it is not a number
		return nil, nixie.Errorf(nixie.CodeInvalid, "rate is %g letters per second: give one up to %d, or 0 for no limit", c.Rate, MaxRate)
	}
	return &Engine{c}, nil
}

// orSystem is a clock, or that of the system.
func orSystem(clock func() time.Time) func() time.Time {
	if clock == nil {
		return time.Now //nolint:forbidigo // the default
	}
	return clock
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Plan freezes the letters that match the filter now, oldest death first, at
// most max of them (0: all), as an operation that does op.Event to each for
// op.Actor and op.Reason. Nothing else is changed before Run.
func (e *Engine) Plan(ctx context.Context, op store.Operation, filter nixie.Filter, max int) (store.Operation, error) {
	needs := op.Event == store.OnRedrive || (&store.Resolution{Event: op.Event}).NeedsReason()
	switch {
	case op.Reason == "" && needs:
		return op, nixie.Errorf(nixie.CodeInvalid, "reason is empty: say why, it is recorded with every letter")
	case max < 0:
		return op, nixie.Errorf(nixie.CodeInvalid, "max is %d: give a positive number, or 0 for all", max)
	}
	return e.c.Store.Plan(ctx, op, filter, max)
}

// Run does what is pending of an operation and returns how it stands in the
// end. When ctx ends, the group under way is finished and the error wraps the
// context's; the operation can be run again at any time. What the store refuses
// is not an error: it is counted as skipped, and no later run tries it again.
//
// A redrive stops by itself with a [StoppedError] when too much of what it moved dies
// again while it runs; see [Stop]. It can be run again as well, and counts anew.
func (e *Engine) Run(ctx context.Context, id nixie.ID) (Result, error) {
	r := Result{}
	p := newPace(e.c.Rate, e.c.Clock())
	var b *brake
	var q *probe
	before := int64(-1)
	for {
		op, err := store.FindOperation(ctx, e.c.Store, store.OperationQuery{ID: id, Next: fetch})
		if err != nil {
			return e.stopped(ctx, r, id, err)
		}
		pending := op.Next
		r.Operation = op
		if len(pending) == 0 {
			return r, e.follow(ctx, &r)
		}
		if b == nil {
			b = e.brake(&op)
			if err := b.begin(ctx, op.Done); err != nil {
				return e.stopped(ctx, r, id, err)
			}
			if err := e.follow(ctx, &r); err != nil {
				return e.stopped(ctx, r, id, err)
			}
			q = e.probe(&r, b)
		}
		if op.Pending == before {
			return r, nixie.Errorf(nixie.CodeInternal, "operation %s makes no progress with %d letters left: run nixie verify", id, op.Pending)
		}
		before = op.Pending
		if err := e.drive(ctx, &r, pending, p, b, q); err != nil {
			return e.stopped(ctx, r, id, err)
		}
	}
}

// drive resolves letters group by group. While one is resolved that a broker took, the
// next one is sent.
func (e *Engine) drive(ctx context.Context, r *Result, pending []nixie.ID, p *pace, b *brake, q *probe) (err error) {
	var under *group // being resolved
	for len(pending) > 0 && err == nil {
		most := 0
		if most, err = e.room(ctx, r, b, q, min(e.c.Batch, len(pending))); err != nil {
			break
		}
		if most, err = e.allowed(ctx, p, most); err != nil {
			break
		}
		if err = b.check(ctx, r.Done); err != nil {
			break
		}
		next, taken, failed := e.group(ctx, r, pending[:most])
		pending = pending[taken:]
		p.took(taken)
		err = e.land(r, under)
		under = next
		e.resolve(ctx, under)
		if err == nil {
			err = failed
		}
		if !e.sends(r) && err == nil {
			err, under = e.land(r, under), nil
		}
	}
	if late := e.land(r, under); err == nil {
		err = late
	}
	return err
}

// allowed waits until at least one letter may go and says how many may.
func (e *Engine) allowed(ctx context.Context, p *pace, most int) (int, error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		n, later := p.due(e.c.Clock(), most)
		if n > 0 {
			return n, nil
		}
		if err := e.c.Wait(ctx, later); err != nil {
			return 0, err
		}
	}
}

// outlast is a context that ends only so long after another: what is under way then is
// finished, and a machine that is slow before that costs nothing.
func outlast(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(by)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() { stop(); cancel() }
}

func (e *Engine) resolution(r *Result, letter nixie.ID) store.Resolution {
	return store.Resolution{
		Letter: letter, Event: r.Event, Actor: r.Actor, Reason: r.Reason, Operation: r.ID,
		Force: r.Force || e.c.Force, Reviewed: r.Reviewed, MaxRedrives: e.c.MaxRedrives, Statuses: r.Statuses,
	}
}

// count adds up answers of the store.
func (r *Result) count(letters []nixie.ID, errs []error) error {
	for i, err := range errs {
		switch nixie.CodeOf(err) {
		case "":
			r.Done++
		case nixie.CodeConflict, nixie.CodeNotFound:
			r.Skipped++
			r.refuse(letters[i], err)
		case nixie.CodeInternal: // a damaged letter does not hold up the others
			r.Failed++
			r.refuse(letters[i], err)
		default:
			return err
		}
		r.Pending--
	}
	return nil
}

func (r *Result) refuse(letter nixie.ID, err error) {
	if len(r.Refused) < MaxRefusals {
		r.Refused = append(r.Refused, Refusal{letter, err.Error()})
	}
}

// follow looks what became of what was moved.
func (e *Engine) follow(ctx context.Context, r *Result) (err error) {
	if r.Event == store.OnRedrive {
		r.Outcome, err = e.outcome(ctx, r.ID)
	}
	return err
}

// stopped looks once more at how the operation stands, so that the caller can
// say it.
func (e *Engine) stopped(ctx context.Context, r Result, id nixie.ID, cause error) (Result, error) {
	ended := ctx.Err()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if op, err := store.FindOperation(ctx, e.c.Store, store.OperationQuery{ID: id}); err == nil {
		r.Operation = op
		_ = e.follow(ctx, &r) // the cause says more
	}
	if ended != nil {
		return r, nixie.Errorf(nixie.CodeUnavailable, "operation %s was stopped with %d of %d letters to go: %w", id, r.Pending, r.Selected, ended)
	}
	return r, cause
}
