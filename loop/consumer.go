package loop

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/worker"
)

// ConsumerConfig configures a [DeadLetterConsumer]. Zero fields mean their default.
type ConsumerConfig[T any] struct {
	Mailbox *Mailbox[DeadLetter[T], struct{}]          // required
	Handle  func(context.Context, DeadLetter[T]) error // required

	// OnFailure says what becomes of a dead letter whose handler failed: Retry, the default, hands
	// it out again after RetryAfter, and Discard drops it.
	OnFailure  nixie.Verb
	RetryAfter time.Duration // default [DefaultRetryAfter]
	MaxLetters int           // Run ends when the handler has had this many; default none. Worker has Until for other ends
	Worker     worker.Config // without Source, Handler, Policy and Decider; default one handler at once, and a lease of 5 min
}

// Defaults of a consumer.
const (
	DefaultRetryAfter    = time.Hour
	defaultConsumerLease = 5 * time.Minute
)

// DeadLetterConsumer hands the messages of a mailbox of dead letters to a handler. They never die
// themselves, however often the handler fails or its process vanishes: they only wait. A message
// that is no [DeadLetter] becomes a letter itself, and no handler sees it.
//
// Over a store a notice is about one death of a message. If its letter has moved on since, because
// it was redriven, discarded, quarantined or purged, the consumer acknowledges the notice and no
// handler sees it.
//
// The observer of its worker hears of each notice by Noticed.
type DeadLetterConsumer[T any] struct {
	engine
	c       ConsumerConfig[T]
	taken   atomic.Int64
	strict  *policy.Policy // buries what is no notice
	notices *notices       // nil: not over a store
	handled *handled
}

// unreadable is the error of a message that is no notice.
type unreadable struct{ error }

func (u unreadable) Unwrap() error { return u.error }

// NewConsumer checks a config and makes a consumer of it. Errors are [ErrInvalidParameter].
func NewConsumer[T any](c ConsumerConfig[T]) (*DeadLetterConsumer[T], error) {
	c.OnFailure, c.RetryAfter = cmp.Or(c.OnFailure, nixie.Retry), cmp.Or(c.RetryAfter, DefaultRetryAfter)
	w := c.Worker
	switch {
	case c.Mailbox == nil || c.Handle == nil:
		return nil, invalid("consumer has no mailbox or no handler: set Mailbox and Handle")
	case w.Source != nil || w.Handler != nil || w.Policy != nil || w.Decider != nil:
		return nil, invalid("worker of the consumer has a source, handler, policy or decider: set Mailbox and Handle instead")
	case c.OnFailure != nixie.Retry && c.OnFailure != nixie.Discard:
		return nil, invalid("on failure is %q: choose retry or discard", c.OnFailure)
	case c.RetryAfter < 0 || c.RetryAfter > MaxVisibility:
		return nil, invalid("retry after is %s: give a positive one up to %s, or 0 for %s", c.RetryAfter, MaxVisibility, DefaultRetryAfter)
	case c.MaxLetters < 0:
		return nil, invalid("max letters is %d: give a positive one, or 0 for none", c.MaxLetters)
	}
	// Only the consumer decides, so no message may be refused before it runs.
	endless, err := policy.New(policy.Config{MaxAttempts: -1, MaxDeliveries: policy.MaxCount, MaxCrashes: policy.MaxCount})
	if err != nil {
		return nil, err
	}
	k := &DeadLetterConsumer[T]{c: c}
	if w.Logger == nil {
		w.Logger = slog.Default()
	}
	if w.Clock == nil {
		w.Clock = time.Now
	}
	k.handled = newHandled(w.Observer, w.Clock)
	w.Observer = nixie.Tee(w.Observer, &nixie.Observer{Settled: k.settled})
	w.Source, w.Policy, w.Decider, w.Handler = c.Mailbox.back.Source, endless, k, nixie.HandlerFunc(k.handle)
	if of, ok := w.Source.(*store.Source); ok && c.Mailbox.back.letters != nil {
		k.notices = &notices{Source: of, letters: c.Mailbox.back.letters, log: w.Logger, known: map[*nixie.Delivery]*death{}}
		w.Source = k.notices
	}
	w.Concurrency = cmp.Or(w.Concurrency, 1)
	if k.engine, err = newEngine(c.Mailbox.name, w, defaultConsumerLease); err != nil {
		return nil, err
	}
	k.strict = endless
	if check := c.Mailbox.check; check != nil {
		k.ready = func(ctx context.Context) error { return check(ctx, nil) }
	}
	return k, nil
}

// deathOf returns what is known of the death that a notice is about.
func (k *DeadLetterConsumer[T]) deathOf(d *nixie.Delivery) *death {
	if k.notices != nil {
		if known := k.notices.take(d); known != nil {
			return known
		}
	}
	c, _ := claimOf(d)
	return &death{generation: c.Generation}
}

func (k *DeadLetterConsumer[T]) settled(source string, sts []nixie.Settlement, errs []error) {
	if k.notices != nil {
		for i := range sts { // also those that no handler had
			k.notices.take(sts[i].Delivery)
		}
	}
	k.handled.settled(source, sts, errs)
}

func (k *DeadLetterConsumer[T]) handle(ctx context.Context, d *nixie.Delivery) error {
	about := k.deathOf(d)
	if about.over {
		return nil
	}
	if most := int64(k.c.MaxLetters); most > 0 {
		n := k.taken.Add(1)
		if n >= most {
			defer k.stop()
		}
		if n > most {
			return nixie.Verdict(nixie.Release, nil)
		}
	}
	var l DeadLetter[T]
	if err := decode(k.c.Mailbox.codec, d, &l); err != nil {
		return unreadable{err}
	}
	l.death = about
	k.handled.begin(d, underway{death: about, died: l.DeadLetteredAt, NoticeHandled: nixie.NoticeHandled{
		Queue: l.SourceMailbox, Message: l.MessageID, Generation: about.generation,
		RequestID: l.RequestID, TraceID: l.TraceID, ErrorType: l.LastErrorType,
	}})
	return k.c.Handle(ctx, l)
}

// Decide implements [policy.Decider]. A handler may ask for Release or Discard itself.
func (k *DeadLetterConsumer[T]) Decide(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
	st := nixie.Settlement{Delivery: d, Verb: nixie.Complete}
	if f == nil {
		return st
	}
	if errors.As(f.Err, new(unreadable)) {
		return k.strict.Decide(d, f, now)
	}
	asked := nixie.OutcomeOf(f.Err)
	failure := *f
	st.Verb, st.Failure = k.c.OnFailure, &failure
	switch {
	case asked.Verb == nixie.Release:
		return nixie.Settlement{Delivery: d, Verb: nixie.Release, Delay: asked.After, Waiver: asked.Waiver()}
	case asked.Verb == nixie.Discard:
		st.Verb = nixie.Discard
	case d.Abandoned:
		st.Verb = nixie.Retry // the handler did not fail
	}
	if failure.Decision = st.Verb; st.Verb == nixie.Discard {
		st.Note = f.Text
		return st
	}
	st.Delay = k.c.RetryAfter
	failure.NextAt = now.Add(st.Delay)
	return st
}
