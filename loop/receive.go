package loop

import (
	"context"
	"errors"
	"time"

	"github.com/nixie-go/nixie"
)

// Bounds of Receive.
const (
	MaxReceive        = 10
	MaxWait           = 20 * time.Second
	DefaultVisibility = nixie.DefaultLease
	MinVisibility     = nixie.MinLease // shorter ones are 0
	MaxVisibility     = nixie.MaxLease
)

// ReceiveOption changes a call of Receive.
type ReceiveOption func(*receiving)

type receiving struct {
	max              int
	wait, visibility time.Duration
}

// Max asks for up to n messages; 1…[MaxReceive], default 1.
func Max(n int) ReceiveOption { return func(r *receiving) { r.max = n } }

// Wait waits up to d for the first message; 0…[MaxWait], default 0.
func Wait(d time.Duration) ReceiveOption { return func(r *receiving) { r.wait = d } }

// Visibility hides the messages from other receivers for d; 0…[MaxVisibility], default
// [DefaultVisibility]. With 0 they are visible at once, so their handles have expired from the
// beginning.
func Visibility(d time.Duration) ReceiveOption { return func(r *receiving) { r.visibility = d } }

func (r *receiving) check() error {
	switch {
	case r.max < 1 || r.max > MaxReceive:
		return invalid("receive is for %d messages: ask for 1 to %d", r.max, MaxReceive)
	case r.wait < 0 || r.wait > MaxWait:
		return invalid("wait is %s: give one from 0 to %s", r.wait, MaxWait)
	}
	return checkVisibility(r.visibility, MinVisibility)
}

// checkVisibility refuses a visibility that is neither 0 nor between least and the longest.
func checkVisibility(d, least time.Duration) error {
	if d < 0 || d > MaxVisibility || d > 0 && d < least {
		return invalid("visibility is %s: give 0, or one from %s to %s", d, least, MaxVisibility)
	}
	return nil
}

// Receive receives messages. It returns none when the time of [Wait] is over, when ctx ends, and
// when the mailbox is closed. Errors are [ErrConnection] and [ErrInvalidParameter].
func (m *Mailbox[T, R]) Receive(ctx context.Context, opts ...ReceiveOption) ([]*Message[T, R], error) {
	r := receiving{max: 1, visibility: DefaultVisibility}
	for _, set := range opts {
		set(&r)
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(m.closed, cancel)()
	end := m.c.Clock().Add(r.wait)
	// What comes first may only have been there to be judged: so it looks twice at least.
	for looks := 1; ctx.Err() == nil; looks++ {
		left := end.Sub(m.c.Clock())
		got, err := m.look(ctx, r, max(left, 0))
		switch {
		case ctx.Err() != nil:
			return got, nil
		case err != nil && len(got) == 0:
			return nil, explain(err)
		case len(got) > 0 || left <= 0 && looks > 1:
			return got, nil
		}
	}
	return nil, nil
}

// look receives once. It settles what cannot be decoded.
func (m *Mailbox[T, R]) look(ctx context.Context, r receiving, wait time.Duration) ([]*Message[T, R], error) {
	want := nixie.Want{Max: r.max, Wait: wait, Lease: max(r.visibility, MinVisibility), Parallel: r.max}
	ds, err := m.desk.Receive(ctx, want)
	var got []*Message[T, R]
	for _, d := range ds {
		one, bad := m.open(ctx, d)
		if one != nil && r.visibility == 0 {
			bad = one.Extend(ctx, 0)
		}
		if err = errors.Join(err, bad); one != nil && bad == nil {
			got = append(got, one)
		}
	}
	return got, err
}

// open makes the message of a delivery. One whose body cannot be decoded is buried, and nil.
func (m *Mailbox[T, R]) open(ctx context.Context, d *nixie.Delivery) (*Message[T, R], error) {
	one := &Message[T, R]{box: m, d: d}
	if err := decode(m.codec, d, &one.Body); err != nil {
		_, err = m.desk.Done(ctx, d, err, m.c.Clock())
		return nil, err
	}
	return one, nil
}

// decode decodes the body of a delivery. Its error buries the delivery.
func decode(codec Codec, d *nixie.Delivery, into any) error {
	err := codec.Decode(d.Body, into)
	if notice, ok := into.(interface{ whole() error }); ok && err == nil {
		err = notice.whole() // a codec may not know UnmarshalJSON
	}
	if err == nil {
		return nil
	}
	err = fail(ErrSerialization, nixie.CodeInvalid, "body of message %s cannot be decoded: %w", IDOf(d), err)
	return nixie.WithReason(nixie.Permanent(err), nixie.ReasonSerialization)
}
