package loop

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/store"
)

// DefaultDLQ names the mailbox of notices; {source} stands for the mailbox where a message died.
const DefaultDLQ = "{source}-dlq"

// Over makes a mailbox of a channel of a broker. Driver and Queue of b are required; Queue names
// the channel. Without Letters and Office, letters go as they are to the channel
// [broker.DefaultLetters], which has to exist: a loop finds out when it starts. No notice may go
// there, see [DLQPolicy]. Where [broker.Features] has Held, visibility does not end by time: a
// message comes again when its receiver has gone.
func Over[T, R any](b broker.Config, c Config) (*Mailbox[T, R], error) {
	if b.Letters == "" && b.Office == nil {
		b.Letters = broker.DefaultLetters
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	src, err := broker.New(b)
	if err != nil {
		return nil, explain(err)
	}
	open := &openSource{Source: src, clock: c.Clock, held: b.Driver.Features().Held, until: map[*nixie.Delivery]time.Time{}}
	m, err := newMailbox[T, R](b.Queue, c, backend{&channels{to: b.Driver, clock: c.Clock}, open,
		func(ctx context.Context) (int, error) {
			if _, can := b.Driver.(broker.Counter); !can {
				return 0, nixie.Errorf(nixie.CodeUnavailable, "%s cannot count messages: ask its own tools", src.Name())
			}
			left, err := src.Remaining(ctx)
			return int(left.All), err
		},
		func(ctx context.Context) (int, error) { return purge(ctx, open, b.Queue) },
		func(d *nixie.Delivery) int { return min(d.Crashes, 1) }, // a broker counts what it hands out, and not that
		nil,
	})
	if err == nil {
		if b.Then == nil { // otherwise notices go to a store
			m.letters = broker.ChannelName(b.Letters, b.Queue)
		}
		m.check = func(ctx context.Context, notices []string) error { return checkChannels(ctx, src, &b, notices) }
	}
	return m, err
}

// checkChannels refuses to start without the channels that take letters and notices. A server that
// is away is left to the worker, which waits for it.
func checkChannels(ctx context.Context, src *broker.Source, b *broker.Config, notices []string) error {
	found, err := src.Check(ctx, []string{b.Queue})
	if err == nil {
		err = broker.FirstRefused(found)
	}
	var channels []broker.Channel
	if err == nil && b.Then == nil {
		channels, err = b.Driver.Describe(ctx, notices)
	}
	for _, c := range channels {
		if c.Missing {
			return invalid("mailbox %s for notices of deaths does not exist: create it, or set Mailbox to loop.NoMailbox (missing-target)",
				c.Name)
		}
	}
	if nixie.CodeOf(err) == nixie.CodeUnavailable {
		return nil
	}
	return explain(err)
}

// channels makes the channels of a broker a [nixie.Enqueuer].
type channels struct {
	to    broker.Publisher
	clock func() time.Time
	ids   store.IDs
}

// Enqueue publishes messages. Each gets its ID as a header.
func (c *channels) Enqueue(ctx context.Context, messages ...nixie.Message) ([]nixie.Receipt, error) {
	receipts := make([]nixie.Receipt, len(messages))
	list := make([]broker.Publication, len(messages))
	for i := range messages {
		m := &messages[i]
		if m.Stream != "" || m.DedupeKey != "" || m.Priority != 0 || m.Type != "" || !m.NotBefore.IsZero() || !m.ExpiresAt.IsZero() {
			return nil, nixie.Errorf(nixie.CodeInvalid,
				"message for channel %s has a type, stream, dedupe key, priority or expiry: a broker keeps key, delay and headers", m.Queue)
		}
		receipts[i].ID = c.ids.New(c.clock())
		p := broker.Publication{Channel: m.Queue, Value: m.Body, Delay: m.Delay}
		if m.Key != "" {
			p.Key = []byte(m.Key)
		}
		for _, h := range m.Headers {
			p.Headers = append(p.Headers, broker.RecordHeader{Name: h.Name, Value: []byte(h.Value)})
		}
		p.Headers = append(p.Headers, broker.RecordHeader{Name: HeaderMessageID, Value: []byte(receipts[i].ID.String())})
		list[i] = p
	}
	return receipts, errors.Join(c.to.Publish(ctx, list)()...)
}

// openSource makes the source forget deliveries whose visibility has ended. A worker would renew
// them, or notice the loss; a mailbox leaves that to its receivers.
type openSource struct {
	*broker.Source
	clock func() time.Time
	held  bool // visibility does not end by time

	mu    sync.Mutex
	until map[*nixie.Delivery]time.Time
}

// Receive looks no longer than until the next visibility ends: that may make space.
func (s *openSource) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	want.Wait = min(want.Wait, s.forget(ctx))
	ds, err := s.Source.Receive(ctx, want)
	s.keep(want.Lease, ds...)
	return ds, err
}

// Extend implements [nixie.Source].
func (s *openSource) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	errs := s.Source.Extend(ctx, ds, lease)
	for i, d := range ds {
		if errs[i] == nil {
			s.keep(lease, d)
		}
	}
	return errs
}

// Settle implements [nixie.Source].
func (s *openSource) Settle(ctx context.Context, sts []nixie.Settlement) []error {
	errs := s.Source.Settle(ctx, sts)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range sts {
		if errs[i] == nil {
			delete(s.until, sts[i].Delivery)
		}
	}
	return errs
}

func (s *openSource) keep(lease time.Duration, ds ...*nixie.Delivery) {
	if s.held {
		return
	}
	end := s.clock().Add(lease)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range ds {
		s.until[d] = end
	}
}

// forget asks for what may be lost, so that the source drops it. It returns the time until the next
// visibility ends.
func (s *openSource) forget(ctx context.Context) time.Duration {
	next, now := MaxVisibility, s.clock()
	var late []*nixie.Delivery
	s.mu.Lock()
	for d, end := range s.until {
		if left := end.Sub(now); left > 0 {
			next = min(next, left)
		} else {
			late = append(late, d)
		}
	}
	s.mu.Unlock()
	if len(late) == 0 {
		return next
	}
	for i, err := range s.Source.Extend(ctx, late, MinVisibility) {
		if nixie.CodeOf(err) == nixie.CodeLeaseLost {
			s.mu.Lock()
			delete(s.until, late[i])
			s.mu.Unlock()
		}
	}
	return min(next, MinVisibility)
}

// purge discards what a source hands out, until it hands out nothing.
func purge(ctx context.Context, src nixie.Source, name string) (all int, err error) {
	for {
		ds, err := src.Receive(ctx, nixie.Want{Max: nixie.MaxBatch, Lease: DefaultVisibility})
		if err != nil || len(ds) == 0 {
			return all, err
		}
		sts := make([]nixie.Settlement, len(ds))
		for i, d := range ds {
			sts[i] = nixie.Settlement{Delivery: d, Verb: nixie.Discard, Note: "purge of mailbox " + name}
		}
		for _, err := range src.Settle(ctx, sts) {
			if err == nil {
				all++
			} else if nixie.CodeOf(err) != nixie.CodeLeaseLost {
				return all, err
			}
		}
	}
}
