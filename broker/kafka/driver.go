// Package kafka is the driver for Apache Kafka. A consumer group receives the records of topics.
//
// The driver commits, for each partition, the offset before which all records are finished. A
// partition that moves to another member waits a short time for its records in hand, then commits
// and goes. The driver commits nothing of a partition that it has lost.
//
// A member commits metadata before it hands out the first records of a partition: which records to
// suspect if this member vanishes. Suspects are handed out in windows that halve with each crash.
// Only one partition hands out suspects at a time, so the last window holds the record that kills
// its holder and nothing else.
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
	"github.com/nixie-go/nixie/lease"
)

// Driver receives from topics and publishes to others. [Open] makes one.
//
// Its locks, in the order in which they are taken:
//
//	membership   while the member is made or ends
//	committing   while a commit runs; no partition goes meanwhile
//	polling      while the client is asked and its records are sorted in; no partition comes
//	             or goes meanwhile
//	mu           for the fields below it
type Driver struct {
	*Publisher
	c Config

	mu                sync.Mutex
	group             *kgo.Client // client of the current member; a new one after the group has thrown it out
	stopClient        func()      // ends all that the client still waits for
	member            string      // name of the member; empty: not known yet
	thrownOut         bool        // the group has thrown the member out
	partitions        map[topicPartition]*partition
	lost              chan struct{} // closed when a partition is lost
	interrupt         func()        // ends the wait of Receive
	changesWaiting    int           // calls of beginChange that wait for polling
	partitionsHolding int           // partitions with held records
	commitErr         error         // of the last commits; the next Receive returns it
	closing           bool
	told              bool              // to stop
	stages            map[string]stage  // by topic
	freeRecords       [][]broker.Record // memory for Receive
	parallel          atomic.Int32      // records that run at once

	largeRecords bool          // records are large; only used while polling
	polling      chan struct{} // a semaphore of one
	committing   chan struct{} // a semaphore of one
	dirty        chan struct{} // wakes the commit loop
	loopCtx      context.Context
	stopLoop     context.CancelFunc // ends loopCtx
	loop         sync.WaitGroup
	membership   sync.Mutex
}

var (
	_ broker.Driver  = (*Driver)(nil)
	_ broker.Grouper = (*Driver)(nil)
	_ lease.Stopper  = (*Driver)(nil)
)

// Open joins the group. It does not wait for a broker.
func Open(c Config) (*Driver, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	d := &Driver{
		c: c, partitions: map[topicPartition]*partition{}, lost: make(chan struct{}), interrupt: func() {}, stages: c.stages(),
		polling: make(chan struct{}, 1), committing: make(chan struct{}, 1),
		dirty: make(chan struct{}, 1),
	}
	d.loopCtx, d.stopLoop = context.WithCancel(context.Background())
	if d.Publisher, err = newPublisher(c.Seeds, append(slices.Clone(c.Client), kgo.WithContext(c.ctx))); err != nil {
		return nil, err
	}
	d.addHeaders = func(r *kgo.Record) {
		if d.stages[r.Topic].isStage() {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: broker.HeaderGroup, Value: []byte(c.Group)})
		}
	}
	if err := d.join(); err != nil {
		d.Publisher.Close()
		return nil, err
	}
	d.loop.Go(d.commitLoop)
	return d, nil
}

// Parallel implements [broker.Grouper]. Before the first call it is 1.
func (d *Driver) Parallel(n int) { d.parallel.Store(int32(min(max(n, 1), math.MaxInt32))) }

// Features returns what Kafka can do.
func (d *Driver) Features() broker.Features {
	return broker.Features{System: "kafka", Held: true, Ordered: true, Stages: d.c.Stages}
}

// Lost returns a channel that is closed when a partition with records in hand is lost.
func (d *Driver) Lost() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost
}

// Ack marks records as finished. The commit loop tells the group a little later.
func (d *Driver) Ack(_ context.Context, records []*broker.Record) []error {
	errs := make([]error, len(records))
	moved, held := false, false
	d.mu.Lock()
	for i, r := range records {
		at := r.Receipt.(*receipt)
		p := at.partition
		if p.lost {
			errs[i] = lostError(p)
			continue
		}
		suspected := p.suspected()
		if p.finish(at.position) {
			moved = true
			held = held || len(p.held) > 0 || suspected // records may have waited for these suspects
		}
		p.signalIdle()
		if p.paused && (len(p.held) == 0 && p.len() < d.c.MaxAhead/2) {
			d.resume(p)
		}
	}
	if held {
		d.interrupt()
	}
	d.mu.Unlock()
	if moved {
		d.requestCommit()
	}
	return errs
}

// Extend reports which records this member still holds. A lease of 0 asks about records that no
// worker has begun: those of a partition that is about to go are given up.
func (d *Driver) Extend(_ context.Context, records []*broker.Record, length time.Duration) []error {
	errs := make([]error, len(records))
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, r := range records {
		at := r.Receipt.(*receipt)
		switch p := at.partition; {
		case p.lost:
			errs[i] = lostError(p)
		case p.leaving && length == 0:
			errs[i] = lostError(p)
			p.abandon(at.position)
			p.signalIdle()
		}
	}
	return errs
}

func lostError(p *partition) error {
	return nixie.Errorf(nixie.CodeLeaseLost, "partition %d of %s is not ours any more", p.partition, p.topic)
}

// Nack fails: Kafka takes back whole partitions only.
func (d *Driver) Nack(_ context.Context, list []broker.Return) []error {
	errs := make([]error, len(list))
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
	d.stopLoop()
	d.loop.Wait()
	d.membership.Lock()
	defer d.membership.Unlock()
	had := d.allPartitions()
	err := d.leaveGroup(ctx)
	d.Publisher.Close()
	d.lose(d.allPartitions())
	d.mu.Lock()
	defer d.mu.Unlock()
	untold := slices.ContainsFunc(had, func(p *partition) bool {
		return p.known &&
			!(p.hasCommitted && p.committed == p.cleanCommitPoint())
	})
	switch {
	case d.commitErr != nil || err != nil && untold:
		return nixie.Errorf(nixie.CodeOutcomeUnknown, "leave the group: %w", errors.Join(err, d.commitErr))
	case err != nil:
		return nixie.Errorf(nixie.CodeUnavailable,
			"group %s knows what is done, and was not told that this member leaves; it notices after %s: %w", d.c.Group, d.c.Session, err)
	}
	return nil
}

func closedError() error {
	return nixie.Errorf(nixie.CodeUnavailable, "kafka driver is %w", nixie.ErrClosed)
}
