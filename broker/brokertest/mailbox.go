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

// Mailbox is a broker in memory. Any consumer may get any record of a channel, and acknowledges it
// or gives it back by itself. When a consumer goes, its records come again. A mailbox has no
// offsets, and counts deliveries.
type Mailbox struct {
	kind   kind
	mu     sync.Mutex
	queues map[string][]*letter
	all    map[string][]broker.Record
	number int64
	news   chan struct{}
}

// kind tells how a mailbox differs from others.
type kind struct {
	broker.Features
	stages bool // a consumer may have stages
}

// letter is a record and the consumer that has it.
type letter struct {
	record broker.Record
	holder *MailboxDriver
	until  time.Time // the end of the lease
	due    time.Time
}

// Limits of mailboxes.
const (
	mailboxDelay = time.Minute
	mailboxLease = time.Hour
)

// NewMailbox makes a mailbox that resembles RabbitMQ: a consumer that is there keeps its records.
func NewMailbox() *Mailbox {
	return newMailbox(kind{broker.Features{System: "mailbox", Held: true, Nack: true, MaxDelay: mailboxDelay}, true})
}

// NewTimed makes a mailbox that resembles Redis with a visibility timeout: records come again when
// a lease ends. It takes delayed records, and knows deliveries that ended without a word.
func NewTimed() *Mailbox {
	return newMailbox(kind{Features: broker.Features{System: "timed", MaxLease: mailboxLease, Nack: true, MaxDelay: mailboxDelay,
		MaxPublishDelay: mailboxDelay}})
}

// NewCounting makes a mailbox that resembles SQS: records come again when a lease ends, and it only
// counts deliveries, however they end.
func NewCounting() *Mailbox {
	return newMailbox(kind{Features: broker.Features{System: "counting", MaxLease: mailboxLease, Nack: true, MaxDelay: mailboxDelay,
		CountsAll: true}})
}

func newMailbox(k kind) *Mailbox {
	return &Mailbox{kind: k, queues: map[string][]*letter{source: nil, sourceLetters: nil}, all: map[string][]broker.Record{},
		news: make(chan struct{})}
}

// MailboxDriver is a consumer of a [Mailbox].
type MailboxDriver struct {
	box    *Mailbox
	stages []broker.Stage
	gone   bool
	told   bool // to stop
}

// Source implements [Fixture].
func (b *Mailbox) Source() string { return source }

// Join implements [Fixture].
func (b *Mailbox) Join(_ testing.TB, stages ...broker.Stage) broker.Driver {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.kind.stages {
		stages = nil
	}
	for _, s := range stages {
		if name := s.Of(source); b.queues[name] == nil {
			b.queues[name] = []*letter{}
		}
	}
	return &MailboxDriver{box: b, stages: stages}
}

// Crash implements [Fixture]. The leases of the consumer end at once.
func (b *Mailbox) Crash(_ testing.TB, d broker.Driver) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave(d.(*MailboxDriver), b.abandon)
}

// Stopping implements [lease.Stopper].
func (d *MailboxDriver) Stopping(_ context.Context, told bool) error {
	d.box.mu.Lock()
	defer d.box.mu.Unlock()
	d.told = told
	return nil
}

// leave ends a consumer, and its hold on records.
func (b *Mailbox) leave(d *MailboxDriver, end func(l *letter)) {
	d.gone = true
	for _, list := range b.queues {
		for _, l := range list {
			if l.holder == d {
				end(l)
			}
		}
	}
	b.announce()
}

// abandon takes a record from a holder that vanished.
func (b *Mailbox) abandon(l *letter) {
	told, crash := l.holder.told, false
	l.holder = nil
	if b.kind.CountsAll {
		return
	}
	free := l.record.Patience.Free
	if l.record.Patience, crash = lease.Vanished(l.record.Patience, "", told); !crash {
		l.record.Patience.Free = free // the delivery does not count at all
		l.record.PriorDeliveries--
		return
	}
	l.record.Crashes++
	l.record.Alone = lease.AloneTwice(1, l.record.Crashes-1)
}

// giveBack takes a record from a holder that returns it.
func (b *Mailbox) giveBack(l *letter, back broker.Return) {
	l.holder, l.due = nil, time.Now().Add(back.Delay)
	if back.As != broker.Unused {
		l.record.Patience = back.Patience
	}
	if back.As == broker.Failed || b.kind.CountsAll {
		return
	}
	l.record.PriorDeliveries--
	if back.As == broker.Released {
		l.record.Releases++
	}
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
	if p.Delay > b.kind.MaxPublishDelay {
		return nixie.Errorf(nixie.CodeInvalid, "record is delayed by %s: channel %s allows %s", p.Delay, p.Channel, b.kind.MaxPublishDelay)
	}
	b.number++
	id := sha256.Sum256(fmt.Append(nil, b.number))
	r := broker.Record{
		Channel: p.Channel, Offset: -1, MessageID: fmt.Sprint(b.number), Key: bytes.Clone(p.Key), Value: bytes.Clone(p.Value),
		Headers: slices.Clone(p.Headers), Timestamp: time.Now(), ID: [16]byte(id[:16]),
	}
	b.queues[p.Channel] = append(b.queues[p.Channel], &letter{record: r, due: r.Timestamp.Add(p.Delay)})
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

// Features returns what the mailbox can do.
func (d *MailboxDriver) Features() broker.Features {
	f := d.box.kind.Features
	f.Stages = d.stages
	return f
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
func (d *MailboxDriver) Receive(ctx context.Context, want broker.Want) ([]broker.Record, error) {
	return receiveLoop(ctx, want, d.take)
}

func (d *MailboxDriver) take(want broker.Want) (got []broker.Record, later time.Duration, news <-chan struct{}, err error) {
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
		if l.holder != nil && !d.box.kind.Held {
			if wait = l.until.Sub(now); wait <= 0 {
				d.box.abandon(l)
			} else {
				later = min(later, wait)
			}
		}
		switch {
		case l.holder != nil || len(got) == want.Max: // another consumer has it, or there are enough
		case wait > 0:
			later = min(later, wait)
		default:
			r := l.record
			r.Receipt = l
			got = append(got, r)
			l.holder, l.until = d, now.Add(want.Lease)
			l.record.PriorDeliveries++
			l.record.Epoch++
		}
	}
	return got, later, d.box.news, nil
}

// Ack removes records.
func (d *MailboxDriver) Ack(_ context.Context, records []*broker.Record) []error {
	return d.each(records, func(_ int, l *letter) {
		name := l.record.Channel
		d.box.queues[name] = slices.DeleteFunc(d.box.queues[name], func(o *letter) bool { return o == l })
	})
}

// Nack gives records back.
func (d *MailboxDriver) Nack(_ context.Context, list []broker.Return) []error {
	records := make([]*broker.Record, len(list))
	for n := range list {
		records[n] = list[n].Record
	}
	return d.each(records, func(n int, l *letter) {
		d.box.giveBack(l, list[n])
		d.box.announce()
	})
}

// Extend renews leases, if the mailbox has any, and reports which records this consumer still
// holds.
func (d *MailboxDriver) Extend(_ context.Context, records []*broker.Record, lease time.Duration) []error {
	return d.each(records, func(_ int, l *letter) {
		if lease > 0 {
			l.until = time.Now().Add(lease)
		}
	})
}

func (d *MailboxDriver) each(records []*broker.Record, do func(n int, l *letter)) []error {
	d.box.mu.Lock()
	defer d.box.mu.Unlock()
	errs := make([]error, len(records))
	for i, r := range records {
		l := r.Receipt.(*letter)
		late := !d.box.kind.Held && !time.Now().Before(l.until)
		if l.holder == d && !late && l.record.Epoch == r.Epoch+1 && slices.Contains(d.box.queues[l.record.Channel], l) {
			do(i, l)
		} else {
			errs[i] = nixie.Errorf(nixie.CodeLeaseLost, "message %s is not in this hand any more", r.MessageID)
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

// Lost returns nil: a mailbox does not tell that a lease has ended.
func (d *MailboxDriver) Lost() <-chan struct{} { return nil }

// Close gives all records back.
func (d *MailboxDriver) Close(context.Context) error {
	d.box.mu.Lock()
	defer d.box.mu.Unlock()
	if d.gone {
		return errGone()
	}
	d.box.leave(d, func(l *letter) { d.box.giveBack(l, broker.Return{}) })
	return nil
}
