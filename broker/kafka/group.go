package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// assigned takes partitions in.
func (d *Driver) assigned(_ context.Context, client *kgo.Client, parts map[string][]int32) {
	_, generation := client.GroupMetadata()
	defer d.change()()
	for topic, list := range parts {
		for _, n := range list {
			at := place{topic, n}
			d.parts[at] = newPartition(at, int64(generation))
		}
	}
}

// fetched learns how far the group is with partitions, and how many holders
// finished nothing.
func (d *Driver) fetched(_ context.Context, _ *kgo.Client, answer *kmsg.OffsetFetchResponse) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, group := range answer.Groups {
		for _, t := range group.Topics {
			for _, n := range t.Partitions {
				d.learn(place{t.Topic, n.Partition}, n.Offset, n.LeaderEpoch, n.Metadata)
			}
		}
	}
	for _, t := range answer.Topics { // as older brokers say it
		for _, n := range t.Partitions {
			d.learn(place{t.Topic, n.Partition}, n.Offset, n.LeaderEpoch, n.Metadata)
		}
	}
	return nil
}

func (d *Driver) learn(at place, offset int64, epoch int32, metadata *string) {
	p := d.parts[at]
	if p == nil || p.known || offset < 0 {
		return
	}
	p.next, p.prefix.leader, p.known = offset, epoch, true
	p.before = startsIn(metadata)
	p.kept, p.keptAny = mark{offset, epoch, p.before}, true
}

// revoked lets partitions go to others: nothing more of them is begun, what is in
// hand may end for a while, then what is finished is committed, and then they are
// lost.
func (d *Driver) revoked(ctx context.Context, _ *kgo.Client, parts map[string][]int32) {
	leaving := d.listed(parts)
	for calm, end := d.leave(leaving), time.Now().Add(d.c.Grace); len(calm) > 0; calm = calm[1:] {
		await(calm[0], time.Until(end))
	}
	d.committing.Lock()
	defer d.committing.Unlock()
	d.commitMarks(ctx, leaving, (*partition).farewell)
	d.lose(leaving)
}

// gone forgets partitions that others have already. Nothing is committed.
func (d *Driver) gone(_ context.Context, _ *kgo.Client, parts map[string][]int32) {
	d.lose(d.listed(parts))
	d.committing.Lock() // what is being committed ends before the group is joined again
	defer d.committing.Unlock()
}

func (d *Driver) listed(parts map[string][]int32) []*partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []*partition
	for topic, numbers := range parts {
		for _, n := range numbers {
			if p := d.parts[place{topic, n}]; p != nil {
				list = append(list, p)
			}
		}
	}
	return list
}

// leave says of partitions that they are about to go, and what to wait for. Who
// closes has nothing in hand.
func (d *Driver) leave(leaving []*partition) (calm []<-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range leaving {
		p.leaving = true
		if p.open > 0 && !d.closing && d.c.Grace > 0 {
			p.calm = make(chan struct{})
			calm = append(calm, p.calm)
		}
	}
	if len(calm) > 0 {
		d.sound()
		d.interrupt()
	}
	return calm
}

// await waits for a channel, at most so long.
func await(c <-chan struct{}, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
	}
}

// lose ends partitions and everything that was handed out of them.
func (d *Driver) lose(leaving []*partition) {
	defer d.change()()
	inHand := false
	for _, p := range leaving {
		p.lost = true
		inHand = inHand || p.open > 0
		if len(p.held) > 0 {
			d.holding--
			p.held = nil
		}
		if p.paused {
			d.resume(p) // for whoever has it next, which may be we
		}
		delete(d.parts, p.place)
	}
	if inHand {
		d.sound()
	}
}

// sound tells whoever listens that leases may be lost. The mutex is held.
func (d *Driver) sound() {
	close(d.alarm)
	d.alarm = make(chan struct{})
}

// change begins a change of what is ours, while nothing is polled; what it returns
// ends it. What was polled before belonged to what was ours before.
func (d *Driver) change() (end func()) {
	d.mu.Lock()
	d.claimants++
	d.interrupt()
	d.mu.Unlock()
	d.polling.Lock()
	d.mu.Lock()
	d.claimants--
	return func() {
		d.mu.Unlock()
		d.polling.Unlock()
	}
}
