package kafka

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/nixie-go/nixie"
)

// join makes a member of the group.
func (d *Driver) join() error {
	d.polling <- struct{}{} // until the member is known nothing is assigned to it
	defer func() { <-d.polling }()
	usual := []kgo.Opt{
		kgo.FetchMaxBytes(d.c.FetchBytes), kgo.FetchMaxPartitionBytes(partBytes), kgo.MaxConcurrentFetches(fetchers), kgo.FetchMaxWait(fetchWait),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords(), // a commit has to pass them
		kgo.SessionTimeout(d.c.Session), kgo.HeartbeatInterval(d.c.heartbeat()),
	}
	life, kill := context.WithCancel(d.c.life)
	group, err := kgo.NewClient(append(append(usual, d.c.Client...),
		kgo.WithContext(life), kgo.SeedBrokers(d.c.Seeds...), kgo.ConsumerGroup(d.c.Group), kgo.ConsumeTopics(slices.AppendSeq(slices.Clone(d.c.Topics), maps.Keys(d.stages))...),
		kgo.DisableAutoCommit(), kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.OnPartitionsAssigned(d.assigned), kgo.OnOffsetsFetched(d.fetched),
		kgo.OnPartitionsRevoked(d.revoked), kgo.OnPartitionsLost(d.gone))...)
	if err != nil {
		kill()
		return nixie.Errorf(nixie.CodeInvalid, "kafka client: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.group, d.kill, d.member, d.out = group, kill, "", false
	return nil
}

// throwOut forgets everything: the group does not know this member any more.
func (d *Driver) throwOut() {
	d.mu.Lock()
	d.out = true
	d.mu.Unlock()
	d.lose(d.all())
}

// assigned takes partitions in. A member that has another name than before was out
// in between, and what it still believes to have may have been with others.
func (d *Driver) assigned(_ context.Context, client *kgo.Client, parts map[string][]int32) {
	member, generation := client.GroupMetadata()
	defer d.change()()
	if client != d.group || d.out {
		return
	}
	if d.member != "" && d.member != member && len(d.parts) > 0 {
		d.out = true
		d.end(slices.Collect(maps.Values(d.parts)))
		return
	}
	d.member = member
	for topic, list := range parts {
		for _, n := range list {
			at := place{topic, n}
			d.parts[at] = newPartition(at, int64(generation))
			d.parts[at].stage = d.stages[topic]
		}
	}
}

// fetched learns how far the group is with partitions, and whom it suspects.
func (d *Driver) fetched(_ context.Context, client *kgo.Client, answer *kmsg.OffsetFetchResponse) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if client != d.group {
		return nil
	}
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
	p.suspects = readSuspects(metadata)
	p.kept, p.keptAny = p.farewell(), true
}

// revoked lets partitions go to others: nothing more of them is begun, what is in
// hand may end for a while, then what is finished is committed, and then they are
// lost.
func (d *Driver) revoked(ctx context.Context, client *kgo.Client, parts map[string][]int32) {
	leaving := d.listed(client, parts)
	for calm, end := d.leave(leaving), time.Now().Add(d.c.Grace); len(calm) > 0; calm = calm[1:] {
		await(calm[0], time.Until(end))
	}
	d.committing <- struct{}{}
	defer func() { <-d.committing }()
	if failed := d.commitMarks(ctx, leaving, (*partition).farewell, d.throughMember); !failed {
		d.settled(leaving)
	}
	d.lose(leaving)
}

// settled forgets what went wrong with earlier commits, if these are all partitions: the
// group has everything now.
func (d *Driver) settled(leaving []*partition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(leaving) == len(d.parts) {
		d.trouble = nil
	}
}

// gone forgets partitions that others have already. Nothing is committed.
func (d *Driver) gone(_ context.Context, client *kgo.Client, parts map[string][]int32) {
	d.lose(d.listed(client, parts))
	d.committing <- struct{}{} // what is being committed ends before the group is joined again
	defer func() { <-d.committing }()
}

// listed are the partitions that a client means, if it is still the member.
func (d *Driver) listed(client *kgo.Client, parts map[string][]int32) []*partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []*partition
	if client != d.group {
		return nil
	}
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
	d.end(leaving)
}

// end is lose within a change.
func (d *Driver) end(leaving []*partition) {
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
	d.polling <- struct{}{}
	d.mu.Lock()
	d.claimants--
	return func() {
		d.mu.Unlock()
		<-d.polling
	}
}
