package kafka

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Receive hands out held records that may go now, and fetched ones. It may return an error with
// records, about an earlier commit or another partition.
func (d *Driver) Receive(ctx context.Context, want broker.Want) ([]broker.Record, error) {
	if want.Wait > 0 {
		limited, cancel := context.WithTimeout(ctx, want.Wait)
		defer cancel()
		ctx = limited
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	if err := d.rejoin(ctx); err != nil {
		return nil, err
	}
	if got := d.handOutHeld(ctx, want.Max); len(got) > 0 {
		return got, nil
	}
	got, err := d.fetch(ctx, want.Max, want.Wait > 0)
	if len(got) == 0 {
		got = d.handOutHeld(ctx, want.Max)
	}
	return got, err
}

// fetch takes what the client has fetched.
func (d *Driver) fetch(ctx context.Context, most int, wait bool) ([]broker.Record, error) {
	d.polling <- struct{}{}
	defer func() { <-d.polling }()
	all := max(most, fetchAhead)
	if d.largeRecords {
		all = most
	}
	polled, err := d.poll(ctx, all, wait)
	return d.distribute(polled, most), err
}

// check returns the error of earlier commits, or tells that the driver is closed.
func (d *Driver) check() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return closedError()
	}
	err := d.commitErr
	d.commitErr = nil
	return err
}

// poll asks the client, and does not block if wait is false.
func (d *Driver) poll(ctx context.Context, most int, wait bool) (kgo.Fetches, error) {
	if ctx.Err() != nil {
		return nil, nil
	}
	var fetches kgo.Fetches
	if wait {
		waiting, cancel := context.WithCancel(ctx)
		defer cancel()
		d.mu.Lock()
		d.interrupt = cancel
		now := time.Now()
		ready, due := d.nextHeld(now, d.suspectPartition(now))
		if d.changesWaiting > 0 || ready {
			cancel()
		}
		d.mu.Unlock()
		if !due.IsZero() {
			timer := time.AfterFunc(time.Until(due), cancel)
			defer timer.Stop()
		}
		fetches = d.group.PollRecords(waiting, most)
	} else {
		fetches = d.group.PollRecords(nil, most) //nolint:staticcheck // nil is its word for not waiting
	}
	var err error
	for _, e := range fetches.Errors() {
		switch {
		case errors.Is(e.Err, context.Canceled), errors.Is(e.Err, context.DeadlineExceeded), groupChanged(e.Err):
		case errors.Is(e.Err, kgo.ErrClientClosed):
			return fetches, closedError()
		default:
			err = nixie.Errorf(nixie.CodeUnavailable, "fetch partition %d of %s: %w", e.Partition, e.Topic, e.Err)
		}
	}
	return fetches, err
}

// distribute sorts polled records into their partitions before these can change. It returns up to
// most records and holds the others. Records of a partition that is not ours go to its holder.
func (d *Driver) distribute(fetches kgo.Fetches, most int) []broker.Record {
	n := min(fetches.NumRecords(), most)
	if n == 0 {
		return nil
	}
	var headers headerPool
	d.mu.Lock()
	defer d.mu.Unlock()
	got := d.newRecords(n)
	fetches.EachPartition(func(f kgo.FetchTopicPartition) {
		p := d.partitions[topicPartition{f.Topic, f.Partition}]
		if p == nil || d.thrownOut || len(f.Records) == 0 {
			return
		}
		if !p.known {
			p.next, p.prefix.leaderEpoch, p.known = f.Records[0].Offset, -1, true
		}
		if p.end == 0 {
			p.end = f.HighWatermark
		}
		if !p.holderCommitted || p.suspected() || len(p.held) > 0 || p.stage.isStage() {
			d.hold(p, f.Records)
			return
		}
		d.largeRecords = len(f.Records[0].Value) > largeValue
		at := min(n-len(got), len(f.Records), d.c.MaxAhead-p.len())
		for _, r := range f.Records[:at] {
			if d.skip(p, r) {
				continue
			}
			got = got[:len(got)+1]
			p.record(r, &got[len(got)-1], &headers)
		}
		if at < len(f.Records) {
			d.hold(p, f.Records[at:])
		}
		if p.len() >= d.c.MaxAhead {
			d.pause(p)
		}
	})
	return got
}

// hold keeps records back.
func (d *Driver) hold(p *partition, records []*kgo.Record) {
	if len(p.held) == 0 {
		d.partitionsHolding++
		p.held = slices.Clip(records)
		d.updateDue(p)
	} else {
		p.held = append(p.held, records...)
	}
	if p.suspected() || p.stage.isStage() {
		d.pause(p)
	}
}

// nextHeld reports whether a held record may be handed out now, and otherwise when the first one is
// due. The caller holds mu.
func (d *Driver) nextHeld(now time.Time, suspect *partition) (ready bool, due time.Time) {
	if d.partitionsHolding == 0 {
		return false, due
	}
	for _, p := range d.partitions {
		switch {
		case !d.mayHandOut(p, suspect):
		case !now.Before(p.dueAt):
			return true, due
		case due.IsZero() || p.dueAt.Before(due):
			due = p.dueAt
		}
	}
	return false, due
}

// mayHandOut reports whether a held record may go once it is due and the holder is committed.
func (d *Driver) mayHandOut(p, suspect *partition) bool {
	most := d.c.MaxAhead
	if p.suspected() {
		most = min(most, p.window(int(d.parallel.Load())))
	}
	return len(p.held) > 0 && !p.leaving && p.len() < most && (suspect == nil || suspect == p || !p.suspected())
}

// suspectPartition returns the one partition that may hand out suspects: the one with suspects in
// hand, or else one that could begin. If two did, a crash would put blame on the wrong records. The
// caller holds mu.
func (d *Driver) suspectPartition(now time.Time) (first *partition) {
	for _, p := range d.partitions {
		switch {
		case !p.suspected():
		case p.len() > 0:
			return p
		case len(p.held) > 0 && !p.leaving && !now.Before(p.dueAt) && (first == nil || p.crashes < first.crashes):
			first = p
		}
	}
	return first
}

func (d *Driver) pause(p *partition) {
	if !p.paused {
		p.paused = true
		d.group.PauseFetchPartitions(map[string][]int32{p.topic: {p.partition}})
	}
}

func (d *Driver) resume(p *partition) {
	p.paused = false
	d.group.ResumeFetchPartitions(map[string][]int32{p.topic: {p.partition}})
}

// handOutHeld hands out held records that are due, after the holder of their partition is
// committed. Of suspects it hands out only a window.
func (d *Driver) handOutHeld(ctx context.Context, most int) []broker.Record {
	now := time.Now()
	d.mu.Lock()
	suspect := d.suspectPartition(now)
	more, _ := d.nextHeld(now, suspect)
	d.mu.Unlock()
	if !more {
		return nil
	}
	d.commitHolder(ctx, now, suspect)
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(d.heldCount(), most)
	got := d.newRecords(n)
	var headers headerPool
	parallel := int(d.parallel.Load())
	for _, p := range d.partitions {
		for p.holderCommitted && d.mayHandOut(p, suspect) && !now.Before(p.dueAt) && len(got) < n {
			k := 1 // on a stage each record is due at its own time
			if !p.stage.isStage() {
				k = min(len(p.held), n-len(got))
			}
			if k = min(k, p.available(d.c.MaxAhead, parallel)); k <= 0 {
				break // a record was finished since the commit
			}
			next := p.held[:k]
			for _, r := range next {
				if d.skip(p, r) {
					continue
				}
				got = got[:len(got)+1]
				p.record(r, &got[len(got)-1], &headers)
			}
			clear(next)
			d.dropHeld(p, k)
		}
		switch {
		case len(p.held) > 0 && (!p.holderCommitted || p.suspected() || p.stage.isStage()), p.len() >= d.c.MaxAhead:
			d.pause(p)
		case p.paused && len(p.held) == 0 && p.len() < d.c.MaxAhead:
			d.resume(p)
		}
	}
	return got
}

// dropHeld removes the first n held records.
func (d *Driver) dropHeld(p *partition, n int) {
	p.held = p.held[n:]
	if len(p.held) == 0 {
		p.held = nil
		d.partitionsHolding--
	}
	d.updateDue(p)
}

// heldCount counts the held records.
func (d *Driver) heldCount() (n int) {
	for _, p := range d.partitions {
		n += len(p.held)
	}
	return n
}
