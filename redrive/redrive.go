// Package redrive, for programs that carry out operations without package office, and for that one,
// works on many letters: it sends them back to their queues, discards or purges them.
//
//	package main
//
//	import (
//		"context"
//		"errors"
//		"fmt"
//		"log"
//		"time"
//
//		"github.com/nixie-go/nixie"
//		"github.com/nixie-go/nixie/redrive"
//		"github.com/nixie-go/nixie/store"
//		"github.com/nixie-go/nixie/store/memory"
//		"github.com/nixie-go/nixie/worker"
//	)
//
//	// dies lets a message of the queue die, as a worker does.
//	func dies(ctx context.Context, st store.Store, queue string) error {
//		desk, err := worker.NewDesk(worker.Config{Source: store.NewSource(st, queue)})
//		if err != nil {
//			return err
//		}
//		deliveries, err := desk.Receive(ctx, nixie.Want{Max: 1})
//		for _, d := range deliveries {
//			_, failed := desk.Done(ctx, d, nixie.WithReason(nixie.Permanent(errors.New("no answer")), nixie.ReasonDependency), time.Now())
//			err = errors.Join(err, failed)
//		}
//		return err
//	}
//
//	func main() {
//		ctx := context.Background()
//		st := memory.New(memory.Options{}) // or the store in which your letters are
//		_, err := st.Enqueue(ctx, nixie.Message{Queue: "billing"})
//		if err := errors.Join(err, dies(ctx, st, "billing")); err != nil {
//			log.Fatal(err)
//		}
//		engine, err := redrive.New(redrive.Config{Store: st, Rate: 50})
//		if err != nil {
//			log.Fatal(err)
//		}
//		work := store.Operation{Event: store.OnRedrive, Actor: "ann", Reason: "it answers again"}
//		operation, err := engine.Plan(ctx, work, nixie.Filter{}, 0)
//		if err != nil {
//			log.Fatal(err)
//		}
//		result, err := engine.Run(ctx, operation.ID) // may be stopped, and called again
//		fmt.Println(result.Done, "done,", result.Pending, "to go", err)
//	}
//
// An operation has two halves. [Engine.Plan] freezes a selection in the store. [Engine.Run]
// resolves it in the order of the plan, in small groups, never faster than the rate. The
// transaction that resolves a group also marks it as done. So Run may be stopped or killed anywhere
// and called again, also by several processes at once, and moves each letter once.
package redrive

import (
	"cmp"
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Bounds of an engine.
const (
	// DefaultBatch letters share a commit.
	DefaultBatch = 100
	// DefaultSend letters share a commit if they go to a broker. While they are resolved the next
	// as many are sent. So a kill repeats at most twice that number.
	DefaultSend = 500
	// MaxBatch limits the letters that share a commit. A stop waits for that many.
	MaxBatch = 1_000
	// MaxRate limits the rate, in letters per second.
	MaxRate = 1_000_000
	// MaxRefusals limits the refusals that a [Result] names.
	MaxRefusals = 20

	fetch = 10_000           // pending letters of one page
	grace = 30 * time.Second // for calls under way when the context ends
)

// Store holds the letters and the operations of an engine.
type Store interface {
	store.DeadLetters
	store.Operations
}

// Config of an engine. Zero fields mean the default, −1 none.
type Config struct {
	Store       Store         // required
	Send        SendFunc      // sends redriven letters to a broker; default: the store queues them again
	Actor       string        // who runs it, for the audit; default the actor of the operation
	Edit        EditFunc      // edits letters that go back to their queues; default: no edit
	Batch       int           // letters in one commit; [DefaultBatch], with Send [DefaultSend]
	Rate        float64       // letters per second: at most Rate·t + 1 after t; default none
	MaxRedrives int           // a letter that was redriven this often is refused; [policy.DefaultMaxRedrives]
	Force       bool          // also for operations without Force
	ExpiresIn   time.Duration // new expiry of messages that have one, see [store.Resolution]; not with Send
	SetsAside   bool          // Send puts such a letter aside instead, see [Destination.Quarantine]
	Stop        Stop          // makes a redrive stop by itself

	Clock    func() time.Time                                 // default time.Now
	Wait     func(ctx context.Context, d time.Duration) error // default a timer
	Progress func(store.Operation)                            // called after each group; must not block
}

// SendFunc sends letters to a broker and answers each:
//
//	nil                       the broker has it for good
//	an error that [Refuses]   only this letter fails: the run skips it
//	any other error           the letter stays pending, and the run ends
type SendFunc = func(ctx context.Context, letters []nixie.Letter) []error

// Engine carries out operations. It is safe for concurrent use.
type Engine struct{ c Config }

// Refusal tells why a letter was left as it is.
type Refusal struct {
	Letter nixie.ID `json:"letter"`
	Why    string   `json:"why"`
}

// Result describes an operation after a run.
type Result struct {
	store.Operation
	Refused []Refusal // by this run, at most [MaxRefusals]; Skipped and Failed count all

	Quarantined int64 // done by this run: put aside, see [Config.SetsAside]
	Unanswered  int64 // sent by this run, and the broker may have them; they are pending

	older *bool // the store has letters of earlier builds; nil is not known
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
	case c.Send != nil && c.ExpiresIn != 0:
		return nil, nixie.Errorf(nixie.CodeInvalid, "redrive has Send and ExpiresIn: a broker keeps no expiry of ours")
	case c.Batch < 1 || c.Batch > MaxBatch:
		return nil, nixie.Errorf(nixie.CodeInvalid, "batch is %d: give one from 1 to %d", c.Batch, MaxBatch)
	case !(c.Rate >= 0 && c.Rate <= MaxRate): // also when it is not a number
		return nil, nixie.Errorf(nixie.CodeInvalid, "rate is %g letters per second: give one up to %d, or 0 for no limit", c.Rate, MaxRate)
	}
	return &Engine{c}, nil
}

// orSystem returns the clock, or that of the system if it is nil.
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

// Plan freezes the letters that match the filter now, oldest death first, at most max of them; 0 is
// all. The operation does op.Event to each, for op.Actor and op.Reason. Before Run it changes
// nothing else.
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

// Run carries out the pending part of an operation and returns its state at the end. When ctx ends,
// it finishes the group under way, and the error wraps the context's. The operation can run again
// at any time. A letter that the store refuses is no error: it counts as skipped, and no later run
// tries it again.
//
// A redrive stops by itself with a [StoppedError] when too many of its letters die again while it
// runs; see [Stop]. It can run again too, and counts anew.
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
			return r, nil
		}
		if b == nil {
			b = e.brake(&op)
			if err := b.begin(ctx, op.Done); err != nil {
				return e.stopped(ctx, r, id, err)
			}
			q = e.probe(&r, b)
		}
		if op.Pending == before {
			return r, nixie.Errorf(nixie.CodeInternal, "operation %s makes no progress with %d letters left: run nixie verify", id,
				op.Pending)
		}
		before = op.Pending
		if err := e.drive(ctx, &r, pending, p, b, q); err != nil {
			return e.stopped(ctx, r, id, err)
		}
	}
}

// drive resolves letters group by group. With a broker it sends the next group while the last one
// is resolved.
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
		err = e.complete(r, under)
		under = next
		e.resolve(ctx, under)
		if err == nil {
			err = failed
		}
		if !e.sends(r) && err == nil {
			err, under = e.complete(r, under), nil
		}
	}
	if late := e.complete(r, under); err == nil {
		err = late
	}
	return err
}

// allowed waits until at least one letter may go and returns how many may.
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

// outlast returns a context that ends a time after ctx, so that calls under way can finish. The
// time counts from the end of ctx, so a slow machine loses nothing before that.
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
		Letter: letter, Event: r.Event, Actor: cmp.Or(e.c.Actor, r.Actor), Reason: r.Reason, Operation: r.ID,
		Force: r.Force || e.c.Force, Reviewed: r.Reviewed, MaxRedrives: e.c.MaxRedrives, ExpiresIn: e.expiresIn(r.Event),
		Statuses: r.Statuses,
	}
}

// expiresIn returns the new expiry that an event gives.
func (e *Engine) expiresIn(on store.Event) time.Duration {
	if on != store.OnRedrive {
		return 0
	}
	return e.c.ExpiresIn
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
		case nixie.CodeInternal: // a damaged letter must not hold up the others
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

// stopped reads the operation once more, so that the caller can report its state.
func (e *Engine) stopped(ctx context.Context, r Result, id nixie.ID, cause error) (Result, error) {
	ended := ctx.Err()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if op, err := store.FindOperation(ctx, e.c.Store, store.OperationQuery{ID: id}); err == nil {
		r.Operation = op
	}
	if ended != nil {
		return r, nixie.Errorf(nixie.CodeUnavailable, "operation %s was stopped with %d of %d letters to go: %w", id, r.Pending,
			r.Selected, ended)
	}
	return r, cause
}
