package loop

import (
	"context"
	"log/slog"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/worker"
)

// Config of a mailbox. A zero field means its default.
type Config struct {
	Resolver *Resolver      // of the mailboxes for replies; default any name in the same store or broker
	Codec    Codec          // default [JSON]
	Capacity int            // Send answers [ErrMailboxFull] when this many wait or are received; default none
	Policy   *policy.Policy // ends what is received too often; default that of the queue
	Clock    func() time.Time
	Logger   *slog.Logger // see worker.Config
}

// Store is the part of a store that a mailbox needs.
type Store interface {
	store.Queue
	Letters(ctx context.Context, filter nixie.Filter, page store.Page) ([]nixie.Letter, string, error)
	Purge(ctx context.Context, queue string, filter nixie.Filter, most int, actor, reason string) (int, error)
}

// backend is a queue of a store, or a channel of a broker.
type backend struct {
	nixie.Enqueuer
	nixie.Source
	count, purge func(context.Context) (int, error)
	judged       func(*nixie.Delivery) int // of Deliveries: those that only judged a vanished receiver
	letters      lookUp                    // nil: of a broker
}

// Mailbox has messages with bodies of type T, and answers of type R. It is safe for concurrent use.
type Mailbox[T, R any] struct {
	*Outlet[T]
	c      Config
	back   backend
	desk   *worker.Desk
	closed context.Context
	close  context.CancelFunc

	letters string                                            // channel of raw letters; "" is none
	check   func(ctx context.Context, notices []string) error // of channels, when a loop starts; nil: of a store
}

// In makes a mailbox of a queue in a store, which need not exist yet.
func In[T, R any](st Store, name string, c Config) (*Mailbox[T, R], error) {
	if st == nil {
		return nil, invalid("mailbox %s has no store: give one", name)
	}
	return newMailbox[T, R](name, c, backend{st, store.NewSource(st, name),
		func(ctx context.Context) (int, error) {
			queues, err := st.Queues(ctx, store.QueueQuery{Names: []string{name}, Brief: true})
			if err != nil || len(queues) == 0 {
				return 0, err
			}
			return int(queues[0].Unfinished()), nil
		},
		func(ctx context.Context) (all int, err error) {
			for {
				n, err := st.Purge(ctx, name, nixie.Filter{}, nixie.MaxBatch, "mailbox", "purge of mailbox "+name)
				if all += n; err != nil || n < nixie.MaxBatch {
					return all, err
				}
			}
		},
		func(d *nixie.Delivery) int { return d.Crashes },
		st.Letters,
	})
}

func newMailbox[T, R any](name string, c Config, back backend) (*Mailbox[T, R], error) {
	if c.Capacity < 0 {
		return nil, invalid("capacity is %d: give a positive one, or 0 for none", c.Capacity)
	}
	out, err := NewOutlet[T](back, name, c.Codec)
	if err != nil {
		return nil, err
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Resolver == nil {
		c.Resolver = &Resolver{Factory: func(name string) (Target, error) { return NewOutlet[R](back, name, out.codec) }}
	}
	desk, err := worker.NewDesk(worker.Config{Source: back.Source, Policy: c.Policy, Queue: name, Clock: c.Clock, Logger: c.Logger})
	if err != nil {
		return nil, explain(err)
	}
	m := &Mailbox[T, R]{Outlet: out, c: c, back: back, desk: desk}
	m.closed, m.close = context.WithCancel(context.Background()) //nolint:gosec // Close calls it
	out.room = m.room
	return m, nil
}

// room refuses to send to a mailbox that is closed or full.
func (m *Mailbox[T, R]) room(ctx context.Context) error {
	if m.Closed() {
		return fail(ErrConnection, nixie.CodeUnavailable, "mailbox %s is %w", m.name, nixie.ErrClosed)
	}
	if m.c.Capacity == 0 {
		return nil
	}
	n, err := m.ApproximateCount(ctx)
	if err == nil && n >= m.c.Capacity {
		err = fail(ErrMailboxFull, nixie.CodeLimit, "mailbox %s has %d messages, its capacity is %d: receive some", m.name, n, m.c.Capacity)
	}
	return err
}

// ApproximateCount counts the messages that wait or are received. Others may send and acknowledge
// meanwhile. A broker that cannot count answers [nixie.CodeUnavailable].
func (m *Mailbox[T, R]) ApproximateCount(ctx context.Context) (int, error) {
	n, err := m.back.count(ctx)
	return n, explain(err)
}

// Purge removes the messages that wait, not those that are received, and returns their number. With
// an error it returns the number that it is sure of.
func (m *Mailbox[T, R]) Purge(ctx context.Context) (int, error) {
	n, err := m.back.purge(ctx)
	return n, explain(err)
}

// Close ends the calls of Receive, which return nothing from now on, and refuses to send. Messages
// in hand can still be settled. It does not close the store or the driver.
func (m *Mailbox[T, R]) Close() { m.close() }

// Closed reports whether Close was called.
func (m *Mailbox[T, R]) Closed() bool { return m.closed.Err() != nil }
