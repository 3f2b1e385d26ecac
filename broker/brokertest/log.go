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

// Log is a broker in memory that resembles Kafka. Its channels have partitions, which it divides
// among the consumers, and it commits one offset for each partition. When it moves a partition to
// another consumer it does not wait for the old one.
type Log struct {
	mu        sync.Mutex
	channels  map[string][][]broker.Record
	committed map[logPartition]progress // of the partitions that are divided
	members   []*LogDriver
	epoch     int64
	news      chan struct{} // closed when a consumer may receive something
	done      sync.Map      // records that readers have marked as done
}

// logPartition names a partition of a channel.
type logPartition struct {
	channel   string
	partition int32
}

// progress holds the commit of a partition.
type progress struct {
	offset int64
	starts int // holders since offset moved
}

// LogPartitions is the number of partitions of each channel of a [Log].
const LogPartitions = 3

// Channels of the brokers in memory.
const (
	source        = "in"
	sourceLetters = source + ".dlq"
)

// NewLog makes an empty log with the channels of a [Fixture].
func NewLog() *Log {
	return &Log{
		channels: map[string][][]broker.Record{source: make([][]broker.Record, LogPartitions),
			sourceLetters: make([][]broker.Record, LogPartitions)},
		committed: map[logPartition]progress{}, news: make(chan struct{}),
	}
}

// LogDriver is a consumer of a [Log].
type LogDriver struct {
	log      *Log
	assigned map[logPartition]*assignment
	stages   []broker.Stage
	lost     chan struct{}
	gone     bool
}

// assignment is a partition that a consumer has.
type assignment struct {
	epoch      int64
	next       int64 // offset to hand out next
	base       int64 // all records before it are done
	done       map[int64]bool
	begun      bool
	oneAtATime bool // because earlier holders vanished
}

// Source implements [Fixture].
func (l *Log) Source() string { return source }

// Join implements [Fixture].
func (l *Log) Join(_ testing.TB, stages ...broker.Stage) broker.Driver {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := &LogDriver{log: l, assigned: map[logPartition]*assignment{}, stages: stages, lost: make(chan struct{})}
	for _, s := range stages {
		if name := s.Of(source); l.channels[name] == nil {
			l.channels[name] = make([][]broker.Record, LogPartitions)
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
	d.assigned = map[logPartition]*assignment{}
	l.members = slices.DeleteFunc(l.members, func(m *LogDriver) bool { return m == d })
	l.rebalance()
}

// rebalance divides the partitions anew. A consumer that keeps a partition keeps its records.
func (l *Log) rebalance() {
	l.epoch++
	for n, m := range l.members {
		for at := range l.shared(m) {
			mine := int(at.partition)%len(l.members) == n
			switch _, had := m.assigned[at]; {
			case had && !mine:
				delete(m.assigned, at)
				m.lose()
			case mine && !had:
				from := l.committed[at]
				m.assigned[at] = &assignment{epoch: l.epoch, next: from.offset, base: from.offset, done: map[int64]bool{}}
			}
		}
	}
	l.announce()
}

// shared yields the partitions that a consumer may get.
func (l *Log) shared(m *LogDriver) iter.Seq[logPartition] {
	return func(yield func(logPartition) bool) {
		channels := []string{source}
		for _, s := range m.stages {
			channels = append(channels, s.Of(source))
		}
		for _, name := range channels {
			for partition := range int32(LogPartitions) {
				if !yield(logPartition{name, partition}) {
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
	partitions, ok := l.channels[p.Channel]
	switch {
	case !ok:
		return nixie.Errorf(nixie.CodeNotFound, "channel %s does not exist", p.Channel)
	case len(p.Key)+len(p.Value) >= TooLarge:
		return nixie.Errorf(nixie.CodeLimit, "record has %d bytes: channel %s takes less", len(p.Key)+len(p.Value), p.Channel)
	}
	sum := sha256.Sum256(p.Key)
	partition := int32(sum[0]) % LogPartitions
	if to := p.Partition; to != nil && *to >= 0 && *to < LogPartitions {
		partition = *to
	}
	offset := int64(len(partitions[partition]))
	id := sha256.Sum256(fmt.Append(nil, p.Channel, partition, offset))
	partitions[partition] = append(partitions[partition], broker.Record{
		Channel: p.Channel, Partition: partition, Offset: offset, Key: bytes.Clone(p.Key), Value: bytes.Clone(p.Value),
		Headers: slices.Clone(p.Headers), Timestamp: time.Now(), ID: [16]byte(id[:16]),
	})
	l.announce()
	return nil
}

// Records implements [Fixture].
func (l *Log) Records(_ testing.TB, channel string) []broker.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Concat(l.channels[channel]...)
}

// Features returns what a log can do.
func (d *LogDriver) Features() broker.Features {
	return broker.Features{System: "log", Held: true, Ordered: true, Stages: d.stages}
}

// Recycle overwrites records, so that a test notices a caller that still uses them.
func (d *LogDriver) Recycle(records []broker.Record) { spoil(records) }

// Receive hands out records of its partitions.
func (d *LogDriver) Receive(ctx context.Context, want broker.Want) ([]broker.Record, error) {
	return receiveLoop(ctx, want, d.take)
}

// take returns records that are ready, or when and after what event to look again.
type take func(want broker.Want) (got []broker.Record, later time.Duration, news <-chan struct{}, err error)

// receiveLoop waits until take returns records.
func receiveLoop(ctx context.Context, want broker.Want, take take) ([]broker.Record, error) {
	end := time.NewTimer(want.Wait)
	defer end.Stop()
	for {
		got, later, news, err := take(want)
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

func (d *LogDriver) take(want broker.Want) (got []broker.Record, later time.Duration, news <-chan struct{}, err error) {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	if d.gone {
		return nil, 0, nil, errGone()
	}
	later = broker.MaxStageDelay
	for at, s := range d.assigned {
		log := d.log.channels[at.channel][at.partition]
		for int(s.next) < len(log) && len(got) < want.Max && (!s.oneAtATime || s.next == s.base) {
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

// onStage returns how long a record still waits, if it is on a stage.
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

// begin counts a holder before it gets the first record of a partition.
func (d *LogDriver) begin(at logPartition, s *assignment, first *broker.Record) {
	s.begun = true
	m := d.log.committed[at]
	m.starts++
	d.log.committed[at] = m
	s.oneAtATime = m.starts > 1
	if m.starts > 2 {
		first.Crashes, first.Alone = m.starts-1, true
	}
}

// Ack marks records as done, and commits the offset before which all are done.
func (d *LogDriver) Ack(_ context.Context, records []*broker.Record) []error {
	return d.each(records, func(r *broker.Record, s *assignment) {
		s.done[r.Offset] = true
		for s.done[s.base] {
			delete(s.done, s.base)
			s.base++
		}
		at := logPartition{r.Channel, r.Partition}
		if s.base > d.log.committed[at].offset {
			d.log.committed[at] = progress{offset: s.base}
			s.begun = s.next > s.base
			if s.begun {
				d.log.committed[at] = progress{offset: s.base, starts: 1}
			}
			s.oneAtATime = false
			d.log.announce()
		}
	})
}

// Extend reports which records this consumer still holds.
func (d *LogDriver) Extend(_ context.Context, records []*broker.Record, _ time.Duration) []error {
	return d.each(records, func(*broker.Record, *assignment) {})
}

func (d *LogDriver) each(records []*broker.Record, do func(*broker.Record, *assignment)) []error {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	errs := make([]error, len(records))
	for i, r := range records {
		if s := d.assigned[logPartition{r.Channel, r.Partition}]; s != nil && s.epoch == r.Epoch {
			do(r, s)
		} else {
			errs[i] = nixie.Errorf(nixie.CodeLeaseLost, "another consumer has partition %d", r.Partition)
		}
	}
	return errs
}

// Nack fails: a log cannot take back single records.
func (d *LogDriver) Nack(_ context.Context, list []broker.Return) []error {
	errs := make([]error, len(list))
	for i := range errs {
		errs[i] = nixie.Errorf(nixie.CodeInternal, "a log cannot take back single records")
	}
	return errs
}

// Publish adds records to their channels.
func (d *LogDriver) Publish(_ context.Context, records []broker.Publication) func() []error {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	return publishEach(records, d.gone, d.log.add)
}

// publishEach adds records and returns their outcomes.
func publishEach(records []broker.Publication, gone bool, add func(broker.Publication) error) func() []error {
	errs := make([]error, len(records))
	for i, p := range records {
		if errs[i] = errGone(); !gone {
			errs[i] = add(p)
		}
	}
	return func() []error { return errs }
}

// Describe reports which channels exist.
func (d *LogDriver) Describe(_ context.Context, channels []string) ([]broker.Channel, error) {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	out := make([]broker.Channel, len(channels))
	for i, name := range channels {
		out[i] = broker.Channel{Name: name, Missing: d.log.channels[name] == nil}
	}
	return out, nil
}

// Lost returns a channel that is closed when another consumer gets a partition.
func (d *LogDriver) Lost() <-chan struct{} {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	return d.lost
}

// Close gives the partitions back, and does not count as a holder of records that it did not
// finish.
func (d *LogDriver) Close(context.Context) error {
	d.log.mu.Lock()
	defer d.log.mu.Unlock()
	if d.gone {
		return errGone()
	}
	for at, s := range d.assigned {
		if m := d.log.committed[at]; s.begun && m.offset == s.base {
			m.starts--
			d.log.committed[at] = m
		}
	}
	d.log.remove(d)
	return nil
}

func errGone() error { return nixie.Errorf(nixie.CodeUnavailable, "driver is closed") }
