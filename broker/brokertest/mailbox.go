package brokertest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/lease"
)

// Mailbox is a broker in memory that resembles RabbitMQ. Any consumer may get any record of a
// channel, and acknowledges it or gives it back by itself. When a consumer goes, its records come
// again. A mailbox has no offsets, and counts deliveries.
type Mailbox struct {
	mu     sync.Mutex
	queues map[string][]*letter
	all    map[string][]broker.Record
	number int64
	news   chan struct{}
}

// letter is a record and the consumer that has it.
type letter struct {
	record broker.Record
	holder *MailboxDriver
	due    time.Time
}

// mailboxDelay is the longest delay of Nack.
const mailboxDelay = time.Minute

// NewMailbox makes an empty mailbox with the channels of a [Fixture].
func NewMailbox() *Mailbox {
	return &Mailbox{queues: map[string][]*letter{source: nil, sourceLetters: nil}, all: map[string][]broker.Record{},
		news: make(chan struct{})}
}

// MailboxDriver is a consumer of a [Mailbox].
type MailboxDriver struct {
	box    *Mailbox
	stages []broker.Stage
	gone   bool
}

// Source implements [Fixture].
func (b *Mailbox) Source() string { return source }

// Join implements [Fixture].
func (b *Mailbox) Join(_ testing.TB, stages ...broker.Stage) broker.Driver {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range stages {
		if name := s.Of(source); b.queues[name] == nil {
			b.queues[name] = []*letter{}
		}
	}
	return &MailboxDriver{box: b, stages: stages}
}

// Crash implements [Fixture].
func (b *Mailbox) Crash(_ testing.TB, d broker.Driver) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave(d.(*MailboxDriver))
}

func (b *Mailbox) leave(d *MailboxDriver) {
	d.gone = true
	for _, list := range b.queues {
		for _, l := range list {
			if l.holder == d {
				l.holder = nil
				l.record.Crashes++
				l.record.Alone = lease.AloneTwice(1, l.record.Crashes-1)
			}
		}
	}
	b.announce()
}

func (b *Mailbox) announce() {
	close(b.news)
	b.news = make(chan struct{})
}

// Produce implements [Fixture].
func (b *Mailbox) Produce(t testing.TB, records ...broker.Publication) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range records {
		if err := b.add(p); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *Mailbox) add(p broker.Publication) error {
	if _, ok := b.queues[p.Channel]; !ok {
		return nixie.Errorf(nixie.CodeNotFound, "channel %s does not exist", p.Channel)
	}
	if len(p.Key)+len(p.Value) >= TooLarge {
		return nixie.Errorf(nixie.CodeLimit, "record has %d bytes: channel %s takes less", len(p.Key)+len(p.Value), p.Channel)
	}
	b.number++
	id := sha256.Sum256(fmt.Append(nil, b.number))
	r := broker.Record{
		Channel: p.Channel, Offset: -1, MessageID: fmt.Sprint(b.number), Key: bytes.Clone(p.Key), Value: bytes.Clone(p.Value),
		Headers: slices.Clone(p.Headers), Timestamp: time.Now(), ID: [16]byte(id[:16]),
	}
	b.queues[p.Channel] = append(b.queues[p.Channel], &letter{record: r})
	b.all[p.Channel] = append(b.all[p.Channel], r)
	b.announce()
	return nil
}

// Records implements [Fixture].
func (b *Mailbox) Records(_ testing.TB, channel string) []broker.Record {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.all[channel])
}

// Features returns what a mailbox can do.
func (d *MailboxDriver) Features() broker.Features {
	return broker.Features{System: "mailbox", Held: true, Nack: true, MaxDelay: mailboxDelay, Stages: d.stages}
}

// Recycle overwrites records, so that a test notices a caller that still uses them.
func (d *MailboxDriver) Recycle(records []broker.Record) { spoil(records) }

// spoil overwrites records. Their keys, values and headers stay.
func spoil(records []broker.Record) {
	for n := range records {
		records[n] = broker.Record{Channel: "recycled", Offset: -1, Receipt: "recycled"}
	}
}

// Receive hands out records that no consumer has.
func (d *MailboxDriver) Receive(ctx context.Context, most int, wait time.Duration) ([]broker.Record, error) {
	return receiveLoop(ctx, most, wait, d.take)
}

func (d *MailboxDriver) take(most int) (got []broker.Record, later time.Duration, news <-chan struct{}, err error) {
	d.box.mu.Lock()
	defer d.box.mu.Unlock()
	if d.gone {
		return nil, 0, nil, errGone()
	}
	later = mailboxDelay
	now := time.Now()
	all := d.box.queues[source]
	for _, s := range d.stages {
		all = slices.Concat(all, d.box.queues[s.Of(source)])
	}
	for _, l := range all {
		wait := max(l.due.Sub(now), onStage(d.stages, &l.record))
		switch {
		case l.holder != nil || len(got) == most: // another consumer has it, or there are enough
		case wait > 0:
			later = min(later, wait)
		default:
			r := l.record
			r.Receipt = l
			got = append(got, r)
			l.holder = d
			l.record.PriorDeliveries++
			l.record.Epoch++
		}
	}
	return got, later, d.box.news, nil
}

// Ack removes records.
func (d *MailboxDriver) Ack(_ context.Context, records []*broker.Record) []error {
	return d.each(records, func(l *letter) {
		name := l.record.Channel
		d.box.queues[name] = slices.DeleteFunc(d.box.queues[name], func(o *letter) bool { return o == l })
	})
}

// Nack gives records back.
func (d *MailboxDriver) Nack(_ context.Context, records []*broker.Record, delay time.Duration) []error {
	return d.each(records, func(l *letter) {
		l.holder, l.due = nil, time.Now().Add(delay)
		if delay == 0 {
			l.record.PriorDeliveries--
		}
		d.box.announce()
	})
}

// Extend reports which records this consumer still holds.
func (d *MailboxDriver) Extend(_ context.Context, records []*broker.Record, _ time.Duration) []error {
	return d.each(records, func(*letter) {})
}

func (d *MailboxDriver) each(records []*broker.Record, do func(*letter)) []error {
	d.box.mu.Lock()
	defer d.box.mu.Unlock()
	errs := make([]error, len(records))
	for i, r := range records {
		l := r.Receipt.(*letter)
		if l.holder == d && l.record.Epoch == r.Epoch+1 && slices.Contains(d.box.queues[l.record.Channel], l) {
			do(l)
		} else {
			errs[i] = nixie.Errorf(nixie.CodeLeaseLost, "another consumer has message %s", r.MessageID)
		}
	}
	return errs
}

// Publish adds records to their channels.
func (d *MailboxDriver) Publish(_ context.Context, records []broker.Publication) func() []error {
	d.box.mu.Lock()
	defer d.box.mu.Unlock()
	return publishEach(records, d.gone, d.box.add)
}

// Describe reports which channels exist.
func (d *MailboxDriver) Describe(_ context.Context, channels []string) ([]broker.Channel, error) {
	d.box.mu.Lock()
	defer d.box.mu.Unlock()
	out := make([]broker.Channel, len(channels))
	for i, name := range channels {
		_, there := d.box.queues[name]
		out[i] = broker.Channel{Name: name, Missing: !there}
	}
	return out, nil
}

// Lost returns nil: a mailbox takes no record from a consumer that is there.
func (d *MailboxDriver) Lost() <-chan struct{} { return nil }

// Close gives all records back.
func (d *MailboxDriver) Close(context.Context) error {
	d.box.mu.Lock()
	defer d.box.mu.Unlock()
	if d.gone {
		return errGone()
	}
	d.box.leave(d)
	return nil
}
