package nixie

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Type joins a Go type with its name on the wire and its codec. A program declares each type once.
type Type[T any] struct {
	name     string
	defaults []Option
}

// NewType declares a type whose bodies are JSON. The name becomes Message.Type and must never
// change. The defaults apply to every message, before the options of the call. Where T has any, a
// number is read as a float64, which rounds large ones: json.Number keeps its digits.
func NewType[T any](name string, defaults ...Option) Type[T] { return Type[T]{name, defaults} }

// Name returns the name on the wire.
func (t Type[T]) Name() string { return t.name }

// Message returns the message that Enqueue would send.
func (t Type[T]) Message(body T, opts ...Option) (Message, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return Message{}, Errorf(CodeInvalid, "body of type %s cannot be encoded: %w", t.name, err)
	}
	m := Message{Type: t.name, Body: data}
	for _, set := range t.defaults {
		set(&m)
	}
	for _, set := range opts {
		set(&m)
	}
	return m, nil
}

// Enqueue sends one body. The queue comes from an [Option].
func (t Type[T]) Enqueue(ctx context.Context, to Enqueuer, body T, opts ...Option) (Receipt, error) {
	m, err := t.Message(body, opts...)
	if err != nil {
		return Receipt{}, err
	}
	receipts, err := to.Enqueue(ctx, m)
	if err != nil {
		return Receipt{}, err
	}
	return receipts[0], nil
}

// TypeDeadLetter is the type of a notice of a death; see [QueueSettings].DeadLetterTo. Policies cap
// neither its attempts nor its deliveries.
const TypeDeadLetter = "nixie.dead-letter"

// Job is a delivery with its decoded body.
type Job[T any] struct {
	*Delivery
	Body T
}

// Handle makes a route from a function over decoded bodies. A body that cannot be decoded is a
// permanent failure with the reason serialization; its letter keeps the raw bytes.
func (t Type[T]) Handle(do func(context.Context, *Job[T]) error) Route {
	return Route{Type: t.name, Handler: HandlerFunc(func(ctx context.Context, d *Delivery) error {
		job := Job[T]{Delivery: d}
		if err := json.Unmarshal(d.Message.Body, &job.Body); err != nil {
			return WithReason(Permanent(fmt.Errorf("decode %s: %w", t.name, err)), ReasonSerialization)
		}
		return do(ctx, &job)
	})}
}

// Route is a message type with its handler, or an option of [Routes].
type Route struct {
	Type    string
	Handler Handler

	unknown *time.Duration
}

// DefaultUnknownTypes is the time of [UnknownTypes].
const DefaultUnknownTypes = 15 * time.Minute

// UnknownTypes is an option of [Routes]: how long a message of a type without a route is left to
// other workers, from the first one that refused it in this generation. The default is
// [DefaultUnknownTypes]; with 0 it dies at once. A time below 0 is a mistake in the program: it
// panics.
func UnknownTypes(within time.Duration) Route {
	if within < 0 {
		panic(fmt.Sprintf("nixie: unknown types within %s: give 0 for none, or a positive time", within))
	}
	return Route{unknown: &within}
}

// Routes makes one handler that chooses a route by Message.Type. In a rolling deploy a worker meets
// types that only newer ones know. It releases a message of another type, which costs nothing, and
// after 1 s up to 30 s the next worker looks at it. When [UnknownTypes] is over the message dies,
// with the reason unknown-type. Two routes of one type are a mistake in the program: Routes panics.
func Routes(routes ...Route) Handler {
	byType := make(map[string]Handler, len(routes))
	within := DefaultUnknownTypes
	for _, r := range routes {
		switch {
		case r.unknown != nil:
			within = *r.unknown
			continue
		case byType[r.Type] != nil:
			panic("nixie: two routes for type " + r.Type)
		}
		byType[r.Type] = r.Handler
	}
	return HandlerFunc(func(ctx context.Context, d *Delivery) error {
		h := byType[d.Type]
		if h == nil {
			return &Outcome{Verb: Release, Reason: ReasonUnknownType, Within: within,
				Err: fmt.Errorf("no route for messages of type %q", d.Type)}
		}
		return h.Handle(ctx, d)
	})
}
