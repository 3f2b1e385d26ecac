// Package kafka is the driver for Apache Kafka: records of topics, received by a
// consumer group.
//
// What is committed of a partition is the end of its finished prefix and nothing
// else. A partition that is to go to another member waits a moment for what is in
// hand, then commits and goes; of one that was lost nothing is committed. A member
// that takes a partition says in the metadata of its commit, before it hands anything
// out, whom to suspect if it vanishes. Suspects are handed out in windows that halve with
// each holder that vanishes, one partition's at a time, until the culprit is alone.
package kafka

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Driver receives from topics and publishes to others. Make one with [Open].
type Driver struct {
	*Publisher
	c Config

	mu        sync.Mutex
	group     *kgo.Client // the member that receives; a new one when the group has thrown it out
	kill      func()      // ends whatever that one still waits for
	member    string      // its name; empty: not known yet
	out       bool        // it was thrown out
	parts     map[place]*partition
	alarm     chan struct{} // closed when a partition is lost
	interrupt func()        // ends the waiting of Receive
	claimants int           // those who wait for polling
	holding   int           // partitions with records that are held
	trouble   error         // of the last commits, for the next Receive to tell
	closing   bool
	stages    map[string]stage  // by topic
	rooms     [][]broker.Record // memory that nobody uses
	parallel  atomic.Int32      // records that are run at once

	large      bool          // records are; of the one who polls
	polling    chan struct{} // full from asking the client until what it said is sorted in; partitions come and go in between
	committing chan struct{} // full while somebody commits: one at a time, and none while partitions go
	dirty      chan struct{} // something is to be committed
	living     context.Context
	quit       context.CancelFunc // ends living
	committer  sync.WaitGroup
	entry      sync.Mutex // held by who makes or ends the member
}

var (
	_ broker.Driver  = (*Driver)(nil)
	_ broker.Grouper = (*Driver)(nil)
)

// Open joins the group. It does not wait for a broker to answer.
func Open(c Config) (*Driver, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	d := &Driver{
		c: c, parts: map[place]*partition{}, alarm: make(chan struct{}), interrupt: func() {}, stages: c.stages(),
		polling: make(chan struct{}, 1), committing: make(chan struct{}, 1),
		dirty: make(chan struct{}, 1),
	}
	d.living, d.quit = context.WithCancel(context.Background())
	if d.Publisher, err = newPublisher(c.Seeds, append(slices.Clone(c.Client), kgo.WithContext(c.life))); err != nil {
		return nil, err
	}
	d.mark = func(r *kgo.Record) {
		if d.stages[r.Topic].waits() {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: broker.HeaderGroup, Value: []byte(c.Group)})
		}
	}
	if err := d.join(); err != nil {
		d.client.Close()
		return nil, err
	}
	d.committer.Go(d.commitLoop)
	return d, nil
}

// Parallel implements [broker.Grouper]; it is 1 before that.
func (d *Driver) Parallel(n int) { d.parallel.Store(int32(min(max(n, 1), math.MaxInt32))) }

// Features says what Kafka can do.
func (d *Driver) Features() broker.Features {
	return broker.Features{System: "kafka", Held: true, Ordered: true, Stages: d.c.Stages}
}

// Lost is closed when a partition is lost with records in hand.
func (d *Driver) Lost() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.alarm
}

// Ack marks records as finished. The group is told a little later.
func (d *Driver) Ack(_ context.Context, records []*broker.Record) []error {
	errs := make([]error, len(records))
	moved, held := false, false
	d.mu.Lock()
	for i, r := range records {
		at := r.Receipt.(*receipt)
		p := at.part
		if p.lost {
			errs[i] = lost(p)
			continue
		}
		suspected := p.suspected()
		if p.finish(at.position) {
			moved = true
			held = held || len(p.held) > 0 || suspected // others may have waited for their turn
		}
		p.quiet()
		if p.paused && (len(p.held) == 0 && p.len() < d.c.MaxAhead/2) {
			d.resume(p)
		}
	}
	if held {
		d.interrupt()
	}
	d.mu.Unlock()
	if moved {
		d.touch()
	}
	return errs
}

// Extend says which records are still ours. Those that nobody has begun, which a
// lease of 0 says, are not to be begun when their partition is about to go.
func (d *Driver) Extend(_ context.Context, records []*broker.Record, lease time.Duration) []error {
	errs := make([]error, len(records))
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, r := range records {
		at := r.Receipt.(*receipt)
		switch p := at.part; {
		case p.lost:
			errs[i] = lost(p)
		case p.leaving && lease == 0:
			errs[i] = lost(p)
			p.leave(at.position)
			p.quiet()
		}
	}
	return errs
}

func lost(p *partition) error {
	return nixie.Errorf(nixie.CodeLeaseLost, "partition %d of %s is not ours any more", p.part, p.topic)
}

// Nack is not for Kafka: a record goes back with its partition only.
func (d *Driver) Nack(_ context.Context, records []*broker.Record, _ time.Duration) []error {
	errs := make([]error, len(records))
	for i := range errs {
		errs[i] = nixie.Errorf(nixie.CodeInternal, "kafka takes no single record back")
	}
	return errs
}

// Close commits what is finished and leaves the group.
func (d *Driver) Close(ctx context.Context) error {
	d.mu.Lock()
	was := d.closing
	d.closing = true
	d.mu.Unlock()
	if was {
		return closedError()
	}
	d.quit()
	d.committer.Wait()
	d.entry.Lock()
	defer d.entry.Unlock()
	had := d.all()
	err := d.leaveGroup(ctx)
	d.client.Close()
	d.lose(d.all())
	d.mu.Lock()
	defer d.mu.Unlock()
	untold := slices.ContainsFunc(had, func(p *partition) bool { return p.known && !(p.keptAny && p.kept == p.farewell()) })
	switch {
	case d.trouble != nil || err != nil && untold:
		return nixie.Errorf(nixie.CodeOutcomeUnknown, "leave the group: %w", errors.Join(err, d.trouble))
	case err != nil:
		return nixie.Errorf(nixie.CodeUnavailable, "group %s knows what is done, and was not told that this member leaves; it notices after %s: %w", d.c.Group, d.c.Session, err)
	}
	return nil
}

func closedError() error {
	return nixie.Errorf(nixie.CodeUnavailable, "kafka driver is %w", nixie.ErrClosed)
}
