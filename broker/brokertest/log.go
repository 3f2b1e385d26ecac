package brokertest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
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
	marks   map[spot]mark // of the parts that are shared out
	members []*LogDriver
	epoch   int64
	news    chan struct{} // closed when there is something to receive
	read    sync.Map      // what readers are done with
}

// spot names a part of a channel.
type spot struct {
	channel string
	part    int32
}

// mark is how far a part is done with.
type mark struct {
	offset int64
	starts int // holders since offset moved
}

// LogParts is how many parts a channel of a [Log] has.
const LogPartitions = 3

// The channels of a broker in memory.
const (
	source        = "in"
	sourceLetters = source + ".dlq"
)

// NewLog makes an empty log with the channels of a [Fixture].
func NewLog() *Log {
	return &Log{
		topics: map[string][][]broker.Record{source: make([][]broker.Record, LogPartitions), sourceLetters: make([][]broker.Record, LogPartitions)},
		marks:  map[spot]mark{}, news: make(chan struct{}),
	}
}

// LogDriver is a consumer of a [Log].
type LogDriver struct {
	log    *Log
	shares map[spot]*share
	stages []broker.Stage
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

// Source implements [Fixture].
func (l *Log) Source() string { return source }

// Join implements [Fixture].
func (l *Log) Join(_ testing.TB, stages ...broker.Stage) broker.Driver {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := &LogDriver{log: l, shares: map[spot]*share{}, stages: stages, lost: make(chan struct{})}
	for _, s := range stages {
		if name := s.Of(source); l.topics[name] == nil {
			l.topics[name] = make([][]broker.Record, LogPartitions)
		}
	}
	l.members = append(l.members, d)
	l.rebalance()
	return d
}

// Crash implements [Fixture].
func (l *Log) Crash(_ testing.TB, d broker.Driver) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(d.(*LogDriver))
}

func (l *Log) remove(d *LogDriver) {
	d.gone = true
	d.lose()
	d.shares = map[spot]*share{}
	l.members = slices.DeleteFunc(l.members, func(m *LogDriver) bool { return m == d })
	l.rebalance()
}

// rebalance shares the parts out anew. Who keeps a part keeps all of it.
func (l *Log) rebalance() {
	l.epoch++
	for n, m := range l.members {
		for at := range l.shared(m) {
			mine := int(at.part)%len(l.members) == n
			switch _, had := m.shares[at]; {
			case had && !mine:
				delete(m.shares, at)
				m.lose()
			case mine && !had:
				from := l.marks[at]
				m.shares[at] = &share{epoch: l.epoch, next: from.offset, base: from.offset, done: map[int64]bool{}}
			}
		}
	}
	l.announce()
}

// shared is the parts that a member may have, which all members may.
func (l *Log) shared(m *LogDriver) iter.Seq[spot] {
	return func(yield func(spot) bool) {
		channels := []string{source}
		for _, s := range m.stages {
			channels = append(channels, s.Of(source))
		}
		for _, name := range channels {
			for part := range int32(LogPartitions) {
				if !yield(spot{name, part}) {
					return
				}
			}
		}
	}
}

func (l *Log) announce() {
	close(l.news)
	l.news = make(chan struct{})
}

func (d *LogDriver) lose() {
	close(d.lost)
	d.lost = make(chan struct{})
}

// Produce implements [Fixture].
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
	part := int32(sum[0]) % LogPartitions
	offset := int64(len(parts[part]))
	id := sha256.Sum256(fmt.Append(nil, p.Channel, part, offset))
	parts[part] = append(parts[part], broker.Record{
		Channel: p.Channel, Partition: part, Offset: offset, Key: bytes.Clone(p.Key), Value: bytes.Clone(p.Value),
		Headers: slices.Clone(p.Headers), Timestamp: time.Now(), ID: [16]byte(id[:16]),
	})
	l.announce()
	return nil
}

// Records implements [Fixture].
func (l *Log) Records(_ testing.TB, channel string) []broker.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Concat(l.topics[channel]...)
}

// Features says what a log can do.
func (d *LogDriver) Features() broker.Features {
	return broker.Features{System: "log", Held: true, Ordered: true, Stages: d.stages}
}

// Recycle spoils records, so that whoever still looks at them is found out.
func (d *LogDriver) Recycle(records []broker.Record) { spoil(records) }

// Receive hands out what its parts have.
func (d *LogDriver) Receive(ctx context.Context, most int, wait time.Duration) ([]broker.Record, error) {
	end := time.NewTimer(wait)
	defer end.Stop()
	for {
		got, later, news, err := d.take(most)
		if len(got) > 0 || err != nil {
			return got, err
		}
		due := time.NewTimer(later)
		select {
		case <-news:
			due.Stop()
		case <-due.C:
		case <-end.C:
			return nil, nil
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func (d *LogDriver) take(most int) (got []broker.Record, later time.Duration, news <-chan struct{}, err error) {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	if d.gone {
		return nil, 0, nil, errGone()
	}
	later = broker.MaxStageDelay
	for at, s := range d.shares {
		log := d.log.topics[at.channel][at.part]
		for int(s.next) < len(log) && len(got) < most && (!s.alone || s.next == s.base) {
			r := log[s.next]
			if wait := onStage(d.stages, &r); wait > 0 {
				later = min(later, wait)
				break
			}
			r.Epoch = s.epoch
			if !s.begun {
				d.begin(at, s, &r)
			}
			got = append(got, r)
			s.next++
		}
	}
	return got, later, d.log.news, nil
}

// onStage says for how long a record still waits on its stage, if it is on one.
func onStage(stages []broker.Stage, r *broker.Record) time.Duration {
	n := slices.IndexFunc(stages, func(s broker.Stage) bool { return s.Of(source) == r.Channel })
	if n < 0 {
		return 0
	}
	r.Source = source
	due, now := "", time.Now()
	for _, h := range r.Headers {
		if h.Name == broker.HeaderDue {
			due = string(h.Value)
		}
	}
	return stages[n].Due(due, r.Timestamp, now).Sub(now)
}

// begin counts a holder before it has anything of a part.
func (d *LogDriver) begin(at spot, s *share, first *broker.Record) {
	s.begun = true
	m := d.log.marks[at]
	m.starts++
	d.log.marks[at] = m
	s.alone = m.starts > 1
	if m.starts > 2 {
		first.Crashes, first.Alone = m.starts-1, true
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
		at := spot{r.Channel, r.Partition}
		if s.base > d.log.marks[at].offset {
			d.log.marks[at] = mark{offset: s.base}
			s.begun = s.next > s.base
			if s.begun {
				d.log.marks[at] = mark{offset: s.base, starts: 1}
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
		if s := d.shares[spot{r.Channel, r.Partition}]; s != nil && s.epoch == r.Epoch {
			do(r, s)
		} else {
			errs[i] = nixie.Errorf(nixie.CodeLeaseLost, "part %d is another's", r.Partition)
		}
	}
	return errs
}

// Nack is not for a log.
func (d *LogDriver) Nack(_ context.Context, records []*broker.Record, _ time.Duration) []error {
	errs := make([]error, len(records))
	for i := range errs {
		errs[i] = nixie.Errorf(nixie.CodeInternal, "a log takes nothing back")
	}
	return errs
}

// Publish adds records.
func (d *LogDriver) Publish(_ context.Context, records []broker.Publication) func() []error {
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
	return func() []error { return errs }
}

// Describe tells which channels are there.
func (d *LogDriver) Describe(_ context.Context, channels []string) ([]broker.Channel, error) {
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
	for at, s := range d.shares {
		if m := d.log.marks[at]; s.begun && m.offset == s.base {
			m.starts--
			d.log.marks[at] = m
		}
	}
	d.log.remove(d)
	return nil
}

func errGone() error { return nixie.Errorf(nixie.CodeUnavailable, "driver is closed") }
