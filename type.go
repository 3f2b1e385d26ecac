package nixie

import (
	"context"
	"encoding/json"
	"fmt"
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
func (t Type[T]) Handle(do func(context.Context, *Job[T]) error, options ...RouteOption) Route {
	r := Route{Type: t.name, Handler: HandlerFunc(func(ctx context.Context, d *Delivery) error {
		job := Job[T]{Delivery: d}
		if err := json.Unmarshal(d.Message.Body, &job.Body); err != nil {
			return WithReason(Permanent(fmt.Errorf("decode %s: %w", t.name, err)), ReasonSerialization)
		}
		return do(ctx, &job)
	})}
	for _, set := range options {
		set(&r.Limits)
	}
	return r
}

// Job returns a job as a worker would give it, in its first attempt, for tests of a handler alone.
// A Job without a Delivery has methods that do nothing lasting, and no fields but Body.
func (t Type[T]) Job(body T, opts ...Option) (*Job[T], error) {
	m, err := t.Message(body, opts...)
	if err != nil {
		return nil, err
	}
	m.Attempts, m.Deliveries, m.Generation, m.State = 1, 1, 1, Leased
	return &Job[T]{Delivery: &Delivery{Message: m}, Body: body}, nil
}
