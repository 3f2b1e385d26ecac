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

// Receive hands out what was held and may go now, and what the client has fetched.
// An error may come with records: it is about earlier commits, or another partition.
func (d *Driver) Receive(ctx context.Context, most int, wait time.Duration) ([]broker.Record, error) {
	if wait > 0 {
		limited, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		ctx = limited
	}
	if err := d.ready(); err != nil {
		return nil, err
	}
	if err := d.rejoin(ctx); err != nil {
		return nil, err
	}
	if got := d.heldRecords(ctx, most); len(got) > 0 {
		return got, nil
	}
	got, err := d.fetch(ctx, most, wait > 0)
	if len(got) == 0 {
		got = d.heldRecords(ctx, most)
	}
	return got, err
}

// fetch takes in what the client has fetched.
func (d *Driver) fetch(ctx context.Context, most int, wait bool) ([]broker.Record, error) {
	d.polling <- struct{}{}
	defer func() { <-d.polling }()
	all := max(most, surplus)
	if d.large {
		all = most
	}
	polled, err := d.poll(ctx, all, wait)
	return d.sort(polled, most), err
}

// ready tells what is wrong.
func (d *Driver) ready() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return closedError()
	}
	err := d.trouble
	d.trouble = nil
	return err
}

// poll asks the client, without blocking if there is to be no waiting.
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
		goes, due := d.more(now, d.turn(now))
		if d.claimants > 0 || goes {
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
		case errors.Is(e.Err, context.Canceled), errors.Is(e.Err, context.DeadlineExceeded), regroups(e.Err):
		case errors.Is(e.Err, kgo.ErrClientClosed):
			return fetches, closedError()
		default:
			err = nixie.Errorf(nixie.CodeUnavailable, "fetch partition %d of %s: %w", e.Partition, e.Topic, e.Err)
		}
	}
	return fetches, err
}

// sort takes polled records in, before partitions can go: up to most of those that
// may be handed out at once are returned, others are held. What is of a partition
// that is not ours comes to whoever has it.
func (d *Driver) sort(fetches kgo.Fetches, most int) []broker.Record {
	n := min(fetches.NumRecords(), most)
	if n == 0 {
		return nil
	}
	var headers slab
	d.mu.Lock()
	defer d.mu.Unlock()
	got := d.room(n)
	fetches.EachPartition(func(f kgo.FetchTopicPartition) {
		p := d.parts[place{f.Topic, f.Partition}]
		if p == nil || d.out || len(f.Records) == 0 {
			return
		}
		if !p.known {
			p.next, p.prefix.leader, p.known = f.Records[0].Offset, -1, true
		}
		if p.end == 0 {
			p.end = f.HighWatermark
		}
		if !p.counted || p.suspected() || len(p.held) > 0 || p.stage.waits() {
			d.hold(p, f.Records)
			return
		}
		d.large = len(f.Records[0].Value) > largeRecord
		at := min(n-len(got), len(f.Records), d.c.MaxAhead-p.len())
		for _, r := range f.Records[:at] {
			if d.pass(p, r) {
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
		d.holding++
		p.held = slices.Clip(records)
		d.front(p)
	} else {
		p.held = append(p.held, records...)
	}
	if p.suspected() || p.stage.waits() {
		d.pause(p)
	}
}

// more reports whether something that is held may be handed out, and otherwise when
// the first of it is due, if it only waits for that. The mutex is held.
func (d *Driver) more(now time.Time, turn *partition) (goes bool, due time.Time) {
	if d.holding == 0 {
		return false, due
	}
	for _, p := range d.parts {
		switch {
		case !d.goes(p, turn):
		case !now.Before(p.due):
			return true, due
		case due.IsZero() || p.due.Before(due):
			due = p.due
		}
	}
	return false, due
}

// goes reports whether a record that is held may be handed out once it is due, and what
// is done with is committed.
func (d *Driver) goes(p, turn *partition) bool {
	most := d.c.MaxAhead
	if p.suspected() {
		most = min(most, p.window(int(d.parallel.Load())))
	}
	return len(p.held) > 0 && !p.leaving && p.len() < most && (turn == nil || turn == p || !p.suspected())
}

// turn is the partition of which suspects are in hand, else one of which some may be:
// those of another beside them would be blamed as well, or instead. The mutex is held.
func (d *Driver) turn(now time.Time) (first *partition) {
	for _, p := range d.parts {
		switch {
		case !p.suspected():
		case p.len() > 0:
			return p
		case len(p.held) > 0 && !p.leaving && !now.Before(p.due) && (first == nil || p.crashes < first.crashes):
			first = p
		}
	}
	return first
}

func (d *Driver) pause(p *partition) {
	if !p.paused {
		p.paused = true
		d.group.PauseFetchPartitions(map[string][]int32{p.topic: {p.part}})
	}
}

func (d *Driver) resume(p *partition) {
	p.paused = false
	d.group.ResumeFetchPartitions(map[string][]int32{p.topic: {p.part}})
}

// heldRecords hands out what is held and due of partitions whose holder is counted by
// now: few where some are suspected.
func (d *Driver) heldRecords(ctx context.Context, most int) []broker.Record {
	now := time.Now()
	d.mu.Lock()
	turn := d.turn(now)
	more, _ := d.more(now, turn)
	d.mu.Unlock()
	if !more {
		return nil
	}
	d.countIn(ctx, now, turn)
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(d.heldNow(), most)
	got := d.room(n)
	var headers slab
	parallel := int(d.parallel.Load())
	for _, p := range d.parts {
		for p.counted && d.goes(p, turn) && !now.Before(p.due) && len(got) < n {
			k := 1 // on a stage each is due at its own time
			if !p.stage.waits() {
				k = min(len(p.held), n-len(got))
			}
			if k = min(k, p.spare(d.c.MaxAhead, parallel)); k <= 0 {
				break // something was done with since the commit
			}
			next := p.held[:k]
			for _, r := range next {
				if d.pass(p, r) {
					continue
				}
				got = got[:len(got)+1]
				p.record(r, &got[len(got)-1], &headers)
			}
			clear(next)
			d.release(p, k)
		}
		switch {
		case len(p.held) > 0 && (!p.counted || p.suspected() || p.stage.waits()), p.len() >= d.c.MaxAhead:
			d.pause(p)
		case p.paused && len(p.held) == 0 && p.len() < d.c.MaxAhead:
			d.resume(p)
		}
	}
	return got
}

// release lets go of the first records that are held.
func (d *Driver) release(p *partition, n int) {
	p.held = p.held[n:]
	if len(p.held) == 0 {
		p.held = nil
		d.holding--
	}
	d.front(p)
}

// heldNow is how many records are held.
func (d *Driver) heldNow() (n int) {
	for _, p := range d.parts {
		n += len(p.held)
	}
	return n
}
