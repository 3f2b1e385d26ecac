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
)

// Log is a broker in memory that is like Kafka: channels are logs in parts, parts
// are shared out among consumers, and what is done is one offset for each. It takes
// what it shares out away at once, without waiting for anybody.
type Log struct {
	mu      sync.Mutex
	topics  map[string][][]broker.Record
	marks   map[int32]mark // of the parts of the source
	members []*LogDriver
	epoch   int64
	news    chan struct{} // closed when there is something to receive
	read    sync.Map      // what readers are done with
}

// mark is how far a part is done with.
type mark struct {
	offset int64
	starts int // holders since offset moved
}

// LogParts is how many parts a channel of a [Log] has.
const LogParts = 3

// The channels of a broker in memory.
const (
	source        = "in"
	sourceLetters = source + ".dlq"
)

// NewLog makes an empty log with the channels of a [Bed].
func NewLog() *Log {
	return &Log{
		topics: map[string][][]broker.Record{source: make([][]broker.Record, LogParts), sourceLetters: make([][]broker.Record, LogParts)},
		marks:  map[int32]mark{}, news: make(chan struct{}),
	}
}

// LogDriver is a consumer of a [Log].
type LogDriver struct {
	log    *Log
	shares map[int32]*share
	lost   chan struct{}
	gone   bool
}

// share is a part that a consumer has.
type share struct {
	epoch int64
	next  int64 // offset to hand out next
	base  int64 // all before is done with
	done  map[int64]bool
	begun bool
	alone bool // one record at a time, because holders before vanished
}

// Source implements [Bed].
func (l *Log) Source() string { return source }

// Join implements [Bed].
func (l *Log) Join(testing.TB) broker.Driver {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := &LogDriver{log: l, shares: map[int32]*share{}, lost: make(chan struct{})}
	l.members = append(l.members, d)
	l.rebalance()
	return d
}

// Crash implements [Bed].
func (l *Log) Crash(_ testing.TB, d broker.Driver) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(d.(*LogDriver))
}

func (l *Log) remove(d *LogDriver) {
	d.gone = true
	d.lose()
	d.shares = map[int32]*share{}
	l.members = slices.DeleteFunc(l.members, func(m *LogDriver) bool { return m == d })
	l.rebalance()
}

// rebalance shares the parts out anew. Who keeps a part keeps all of it.
func (l *Log) rebalance() {
	l.epoch++
	for part := range int32(LogParts) {
		for n, m := range l.members {
			mine := int(part)%len(l.members) == n
			switch _, had := m.shares[part]; {
			case had && !mine:
				delete(m.shares, part)
				m.lose()
			case mine && !had:
				at := l.marks[part]
				m.shares[part] = &share{epoch: l.epoch, next: at.offset, base: at.offset, done: map[int64]bool{}}
			}
		}
	}
	l.announce()
}

func (l *Log) announce() {
	close(l.news)
	l.news = make(chan struct{})
}

func (d *LogDriver) lose() {
	close(d.lost)
	d.lost = make(chan struct{})
}

// Produce implements [Bed].
func (l *Log) Produce(t testing.TB, records ...broker.Publication) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range records {
		if err := l.add(p); err != nil {
			t.Fatal(err)
		}
	}
}

func (l *Log) add(p broker.Publication) error {
	parts, ok := l.topics[p.Channel]
	switch {
	case !ok:
		return nixie.Errorf(nixie.CodeNotFound, "channel %s is not there", p.Channel)
	case len(p.Key)+len(p.Value) >= TooLarge:
		return nixie.Errorf(nixie.CodeLimit, "record has %d bytes: channel %s takes less", len(p.Key)+len(p.Value), p.Channel)
	}
	sum := sha256.Sum256(p.Key)
	part := int32(sum[0]) % LogParts
	offset := int64(len(parts[part]))
	id := sha256.Sum256(fmt.Append(nil, p.Channel, part, offset))
	parts[part] = append(parts[part], broker.Record{
		Channel: p.Channel, Partition: part, Offset: offset, Key: bytes.Clone(p.Key), Value: bytes.Clone(p.Value),
		Headers: slices.Clone(p.Headers), Timestamp: time.Now(), ID: [16]byte(id[:16]),
	})
	l.announce()
	return nil
}

// Records implements [Bed].
func (l *Log) Records(_ testing.TB, channel string) []broker.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Concat(l.topics[channel]...)
}

// Features says what a log can do.
func (d *LogDriver) Features() broker.Features {
	return broker.Features{System: "log", Held: true, Ordered: true}
}

// Receive hands out what its parts have.
func (d *LogDriver) Receive(ctx context.Context, most int, wait time.Duration) ([]broker.Record, error) {
	end := time.NewTimer(wait)
	defer end.Stop()
	for {
		got, news, err := d.take(most)
		if len(got) > 0 || err != nil {
			return got, err
		}
		select {
		case <-news:
		case <-end.C:
			return nil, nil
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func (d *LogDriver) take(most int) ([]broker.Record, <-chan struct{}, error) {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	if d.gone {
		return nil, nil, errGone()
	}
	var got []broker.Record
	for part, s := range d.shares {
		log := d.log.topics[source][part]
		for int(s.next) < len(log) && len(got) < most {
			if s.alone && s.next > s.base {
				break
			}
			r := log[s.next]
			r.Epoch = s.epoch
			if !s.begun {
				d.begin(part, s, &r)
			}
			got = append(got, r)
			s.next++
		}
	}
	return got, d.log.news, nil
}

// begin counts a holder before it has anything of a part.
func (d *LogDriver) begin(part int32, s *share, first *broker.Record) {
	s.begun = true
	m := d.log.marks[part]
	m.starts++
	d.log.marks[part] = m
	s.alone = m.starts > 1
	if m.starts > 2 {
		first.Crashes = m.starts - 1
	}
}

// Ack marks records, and the part as far as nothing is missing.
func (d *LogDriver) Ack(_ context.Context, records []*broker.Record) []error {
	return d.each(records, func(r *broker.Record, s *share) {
		s.done[r.Offset] = true
		for s.done[s.base] {
			delete(s.done, s.base)
			s.base++
		}
		if s.base > d.log.marks[r.Partition].offset {
			d.log.marks[r.Partition] = mark{offset: s.base}
			s.begun = s.next > s.base
			if s.begun {
				d.log.marks[r.Partition] = mark{offset: s.base, starts: 1}
			}
			s.alone = false
			d.log.announce()
		}
	})
}

// Extend says whose records are still held.
func (d *LogDriver) Extend(_ context.Context, records []*broker.Record, _ time.Duration) []error {
	return d.each(records, func(*broker.Record, *share) {})
}

func (d *LogDriver) each(records []*broker.Record, do func(*broker.Record, *share)) []error {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	errs := make([]error, len(records))
	for i, r := range records {
		if s := d.shares[r.Partition]; s != nil && s.epoch == r.Epoch {
			do(r, s)
		} else {
			errs[i] = nixie.Errorf(nixie.CodeLeaseLost, "part %d is another's", r.Partition)
		}
	}
	return errs
}

// Back is not for a log.
func (d *LogDriver) Back(_ context.Context, records []*broker.Record, _ time.Duration) []error {
	errs := make([]error, len(records))
	for i := range errs {
		errs[i] = nixie.Errorf(nixie.CodeInternal, "a log takes nothing back")
	}
	return errs
}

// Publish adds records.
func (d *LogDriver) Publish(_ context.Context, records []broker.Publication) []error {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	errs := make([]error, len(records))
	for i, p := range records {
		if d.gone {
			errs[i] = errGone()
		} else {
			errs[i] = d.log.add(p)
		}
	}
	return errs
}

// Survey tells which channels are there.
func (d *LogDriver) Survey(_ context.Context, channels []string) ([]broker.Channel, error) {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	out := make([]broker.Channel, len(channels))
	for i, name := range channels {
		out[i] = broker.Channel{Name: name, Missing: d.log.topics[name] == nil}
	}
	return out, nil
}

// Lost is closed when a part is taken away.
func (d *LogDriver) Lost() <-chan struct{} {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	return d.lost
}

// Close gives the parts back; that it had them does not count.
func (d *LogDriver) Close(context.Context) error {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	if d.gone {
		return errGone()
	}
	for part, s := range d.shares {
		if m := d.log.marks[part]; s.begun && m.offset == s.base {
			m.starts--
			d.log.marks[part] = m
		}
	}
	d.log.remove(d)
	return nil
}

func errGone() error { return nixie.Errorf(nixie.CodeUnavailable, "driver is closed") }
