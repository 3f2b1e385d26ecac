package loop

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// HeaderReplyTo names the mailbox for the replies to a message.
const HeaderReplyTo = store.HeaderReplyTo

// ReplyTo asks for replies in the named mailbox.
func ReplyTo(mailbox string) nixie.Option { return nixie.WithHeader(HeaderReplyTo, mailbox) }

// Codec encodes bodies and decodes them. It is safe for concurrent use.
type Codec interface {
	Encode(body any) ([]byte, error)
	Decode(data []byte, into any) error // into is a pointer
}

// JSON is the default codec.
type JSON struct{}

// Encode implements [Codec].
func (JSON) Encode(body any) ([]byte, error) { return json.Marshal(body) }

// Decode implements [Codec].
func (JSON) Decode(data []byte, into any) error { return json.Unmarshal(data, into) }

// Outlet is a mailbox to send to only. It is safe for concurrent use.
type Outlet[T any] struct {
	name  string
	to    nixie.Enqueuer
	codec Codec
	room  func(context.Context) error // refuses when the mailbox is full
}

// NewOutlet makes an outlet of a queue. A nil codec is [JSON].
func NewOutlet[T any](to nixie.Enqueuer, name string, codec Codec) (*Outlet[T], error) {
	if codec == nil {
		codec = JSON{}
	}
	o := &Outlet[T]{name: name, to: to, codec: codec, room: func(context.Context) error { return nil }}
	return o, checkName("mailbox", name)
}

func checkName(what, name string) error {
	if name == "" {
		return invalid("name of the %s is empty: give one", what)
	}
	if err := nixie.CheckName(what, name); err != nil {
		return explain(err)
	}
	return nil
}

// Name returns the name of the mailbox.
func (o *Outlet[T]) Name() string { return o.name }

// Message returns the message that Send would send. The ID of a [Request] is its header request-id,
// unless an option gives another one. Its errors are [ErrSerialization] and
// [ErrInvalidParameter].
func (o *Outlet[T]) Message(body T, opts ...nixie.Option) (nixie.Message, error) {
	data, err := o.codec.Encode(body)
	if err != nil {
		return nixie.Message{}, fail(ErrSerialization, nixie.CodeInvalid, "body for mailbox %s cannot be encoded: %w", o.name, err)
	}
	m := nixie.Message{Body: data}
	for _, set := range opts {
		set(&m)
	}
	if asks, ok := any(body).(interface{ requestID() string }); ok && asks.requestID() != "" && m.Header(nixie.HeaderRequestID) == "" {
		nixie.WithHeader(nixie.HeaderRequestID, asks.requestID())(&m) // logs and commands read no bodies
	}
	m.Queue = o.name
	for _, h := range m.Headers {
		if h.Name == HeaderReplyTo {
			if err := checkName("mailbox for replies", h.Value); err != nil {
				return m, err
			}
		}
	}
	if err := m.Check(); err != nil {
		return m, &mailboxError{ErrInvalidParameter, err}
	}
	return m, nil
}

// Send sends one body and returns the ID of its message. The message is durable when Send returns
// without an error; after [ErrConnection] it may have been sent.
func (o *Outlet[T]) Send(ctx context.Context, body T, opts ...nixie.Option) (nixie.ID, error) {
	m, err := o.Message(body, opts...)
	if err != nil {
		return nixie.ID{}, err
	}
	if err := o.room(ctx); err != nil {
		return nixie.ID{}, err
	}
	receipts, err := o.to.Enqueue(ctx, m)
	if err != nil {
		return nixie.ID{}, explain(err)
	}
	return receipts[0].ID, nil
}

// Put implements [Target]. A body of another type is [ErrSerialization].
func (o *Outlet[T]) Put(ctx context.Context, body any, opts ...nixie.Option) (nixie.ID, error) {
	typed, ok := body.(T)
	if !ok {
		return nixie.ID{}, fail(ErrSerialization, nixie.CodeInvalid, "mailbox %s takes bodies of type %s and not %T: send it elsewhere",
			o.name, reflect.TypeFor[T](), body)
	}
	return o.Send(ctx, typed, opts...)
}
