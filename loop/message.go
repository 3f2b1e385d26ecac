package loop

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
)

// Message is a received message. It is invisible to other receivers until it is finalized by
// Acknowledge or Nack, or its visibility ends. It is safe for concurrent use.
type Message[T, R any] struct {
	Body T

	box       *Mailbox[T, R]
	d         *nixie.Delivery
	mu        sync.Mutex
	finalized bool
}

// ID returns the ID that Send returned.
func (m *Message[T, R]) ID() nixie.ID { return IDOf(m.d) }

// Receipt returns the handle of this delivery: the number of its lease, new each time.
func (m *Message[T, R]) Receipt() int64 { return m.d.Lease.Number }

// DeliveryCount returns how often the message was received, this time included: 1 at first. A
// redrive of its letter begins anew.
func (m *Message[T, R]) DeliveryCount() int {
	return max(1, m.d.Deliveries-m.box.back.judged(m.d))
}

// EnqueuedAt returns when the message was sent.
func (m *Message[T, R]) EnqueuedAt() time.Time { return m.d.EnqueuedAt }

// FirstReceivedAt returns when the message was first received. A broker does not tell it.
func (m *Message[T, R]) FirstReceivedAt() time.Time { return m.d.FirstReceivedAt }

// ReplyTo returns the name of the mailbox for replies, or "".
func (m *Message[T, R]) ReplyTo() string { return m.d.Header(HeaderReplyTo) }

// RequestID returns the header request-id, or else the ID. Replies have it as their request-id.
func (m *Message[T, R]) RequestID() string { return requestIDOf(m.d) }

// Headers returns a copy of the headers.
func (m *Message[T, R]) Headers() []nixie.Header { return slices.Clone(m.d.Headers) }

// Finalized reports whether Acknowledge or Nack has succeeded.
func (m *Message[T, R]) Finalized() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.finalized
}

// Acknowledge removes the message. Errors are [ErrReceiptHandleExpired], which means that another
// receiver decides about it, [ErrMessageFinalized] and [ErrConnection].
func (m *Message[T, R]) Acknowledge(ctx context.Context) error {
	return m.settle(ctx, nixie.Settlement{Verb: nixie.Complete}, true)
}

// Nack gives the message back. Others see it after visibility; 0…[MaxVisibility].
func (m *Message[T, R]) Nack(ctx context.Context, visibility time.Duration) error {
	return m.release(ctx, visibility, true)
}

// Extend hides the message for visibility from now; 0…[MaxVisibility]. With 0 it is visible at
// once, and this handle has expired.
func (m *Message[T, R]) Extend(ctx context.Context, visibility time.Duration) error {
	if visibility == 0 {
		return m.release(ctx, 0, false)
	}
	if err := checkVisibility(visibility, MinVisibility); err != nil {
		return err
	}
	return m.act(false, func() error { return m.box.back.Extend(ctx, []*nixie.Delivery{m.d}, visibility)[0] })
}

func (m *Message[T, R]) release(ctx context.Context, visibility time.Duration, finalize bool) error {
	if err := checkVisibility(visibility, 1); err != nil {
		return err
	}
	return m.settle(ctx, nixie.Settlement{Verb: nixie.Release, Delay: visibility}, finalize)
}

func (m *Message[T, R]) settle(ctx context.Context, st nixie.Settlement, finalize bool) error {
	st.Delivery = m.d
	return m.act(finalize, func() error { return m.box.back.Settle(ctx, []nixie.Settlement{st})[0] })
}

// act does something with a message that is not finalized, and finalizes it if that succeeds.
func (m *Message[T, R]) act(finalize bool, do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.finalized {
		return fail(ErrMessageFinalized, nixie.CodeConflict, "message %s is finalized: do this before Acknowledge and Nack", m.ID())
	}
	err := do()
	m.finalized = finalize && err == nil
	return explain(err)
}

// Reply sends an answer to the mailbox that the sender named, and returns its ID. A message may get
// several replies, until it is finalized. Reply before Acknowledge: after a crash in between the
// message comes again, and its answer is not lost. Errors are those of Send, and
//
//	[ErrReplyNotAvailable]  the sender named no mailbox, or one that is not found ([ErrResolution])
//	[ErrMessageFinalized]
func (m *Message[T, R]) Reply(ctx context.Context, body R, opts ...nixie.Option) (id nixie.ID, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.finalized {
		return id, fail(ErrMessageFinalized, nixie.CodeConflict, "message %s is finalized: reply before that", m.ID())
	}
	if m.ReplyTo() == "" {
		return id, fail(ErrReplyNotAvailable, nixie.CodeNotFound, "message %s names no mailbox for replies: send it with ReplyTo", m.ID())
	}
	to, err := m.box.c.Resolver.Resolve(m.ReplyTo())
	if err != nil {
		return id, &mailboxError{ErrReplyNotAvailable, err}
	}
	return to.Put(ctx, body, append([]nixie.Option{nixie.WithHeader(nixie.HeaderRequestID, m.RequestID())}, opts...)...)
}

// HeaderMessageID has the ID of a message that was sent over a broker.
const HeaderMessageID = "message-id"

// IDOf returns the ID that Send returned for the message of a delivery.
func IDOf(d *nixie.Delivery) nixie.ID {
	if id, err := nixie.ParseID(d.Header(HeaderMessageID)); err == nil {
		return id
	}
	return d.ID
}

func requestIDOf(d *nixie.Delivery) string {
	return cmp.Or(d.Header(nixie.HeaderRequestID), IDOf(d).String())
}

// requestIDIn returns the request ID of a [Request] in the body, or "".
func requestIDIn(codec Codec, d *nixie.Delivery) string {
	var req struct {
		RequestID string `json:"request_id"`
	}
	if codec.Decode(d.Body, &req) != nil {
		return ""
	}
	return req.RequestID
}
