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
	d.polling <- struct{}{} // the group assigns nothing until the member is known
	defer func() { <-d.polling }()
	defaults := []kgo.Opt{
		kgo.FetchMaxBytes(d.c.FetchBytes), kgo.FetchMaxPartitionBytes(partitionFetchBytes), kgo.MaxConcurrentFetches(fetchers),
		kgo.FetchMaxWait(fetchWait),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords(), // commits must pass them
		kgo.SessionTimeout(d.c.Session), kgo.HeartbeatInterval(d.c.heartbeat()),
	}
	ctx, stop := context.WithCancel(d.c.ctx)
	group, err := kgo.NewClient(append(append(defaults, d.c.Client...),
		kgo.WithContext(ctx), kgo.SeedBrokers(d.c.Seeds...), kgo.ConsumerGroup(d.c.Group),
		kgo.ConsumeTopics(slices.AppendSeq(slices.Clone(d.c.Topics), maps.Keys(d.stages))...),
		kgo.DisableAutoCommit(), kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.OnPartitionsAssigned(d.assigned), kgo.OnOffsetsFetched(d.fetched),
		kgo.OnPartitionsRevoked(d.revoked), kgo.OnPartitionsLost(d.partitionsLost))...)
	if err != nil {
		stop()
		return nixie.Errorf(nixie.CodeInvalid, "kafka client: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.group, d.stopClient, d.member, d.thrownOut = group, stop, "", false
	return nil
}

// throwOut forgets all partitions, because the group no longer knows this member.
func (d *Driver) throwOut() {
	d.mu.Lock()
	d.thrownOut = true
	d.mu.Unlock()
	d.lose(d.allPartitions())
}

// assigned adds partitions. If the member has a new name, the group had thrown it out in between,
// and other members may have had its partitions: it then forgets them all.
func (d *Driver) assigned(ctx context.Context, client *kgo.Client, topics map[string][]int32) {
	member, generation := client.GroupMetadata()
	cluster, _ := clusterOf(ctx, client) // unknown, if it does not answer
	defer d.beginChange()()
	if client != d.group || d.thrownOut {
		return
	}
	if d.member != "" && d.member != member && len(d.partitions) > 0 {
		d.thrownOut = true
		d.endPartitions(slices.Collect(maps.Values(d.partitions)))
		return
	}
	d.member = member
	for topic, list := range topics {
		for _, n := range list {
			at := topicPartition{topic, n}
			d.partitions[at] = newPartition(at, int64(generation))
			d.partitions[at].stage, d.partitions[at].cluster = d.stages[topic], cluster
		}
	}
}

// fetched stores the committed offsets and the suspects of partitions.
func (d *Driver) fetched(_ context.Context, client *kgo.Client, answer *kmsg.OffsetFetchResponse) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if client != d.group {
		return nil
	}
	for _, group := range answer.Groups {
		for _, t := range group.Topics {
			for _, n := range t.Partitions {
				d.learn(topicPartition{t.Topic, n.Partition}, n.Offset, n.LeaderEpoch, n.Metadata)
			}
		}
	}
	for _, t := range answer.Topics { // for older brokers
		for _, n := range t.Partitions {
			d.learn(topicPartition{t.Topic, n.Partition}, n.Offset, n.LeaderEpoch, n.Metadata)
		}
	}
	return nil
}

func (d *Driver) learn(at topicPartition, offset int64, epoch int32, metadata *string) {
	p := d.partitions[at]
	if p == nil || p.known || offset < 0 {
		return
	}
	p.next, p.prefix.leaderEpoch, p.known = offset, epoch, true
	p.suspects = readSuspects(metadata)
	p.committed, p.hasCommitted = p.cleanCommitPoint(), true
}

// revoked gives partitions to other members. It hands out nothing more of them, waits for their
// records in hand, commits, and then drops them.
func (d *Driver) revoked(ctx context.Context, client *kgo.Client, topics map[string][]int32) {
	leaving := d.ownPartitions(client, topics)
	for idle, end := d.beginLeaving(leaving), time.Now().Add(d.c.Grace); len(idle) > 0; idle = idle[1:] {
		waitFor(idle[0], time.Until(end))
	}
	d.committing <- struct{}{}
	defer func() { <-d.committing }()
	if failed := d.commitPoints(ctx, leaving, (*partition).cleanCommitPoint, d.commitByClient); !failed {
		d.clearCommitErr(leaving)
	}
	d.lose(leaving)
}

// clearCommitErr forgets errors of earlier commits if these are all partitions: the group now has
// everything.
func (d *Driver) clearCommitErr(leaving []*partition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(leaving) == len(d.partitions) {
		d.commitErr = nil
	}
}

// partitionsLost drops partitions that other members have already. It commits nothing.
func (d *Driver) partitionsLost(_ context.Context, client *kgo.Client, topics map[string][]int32) {
	d.lose(d.ownPartitions(client, topics))
	d.committing <- struct{}{} // a running commit ends before the member joins again
	defer func() { <-d.committing }()
}

// ownPartitions returns the named partitions, if the client is still that of the member.
func (d *Driver) ownPartitions(client *kgo.Client, topics map[string][]int32) []*partition {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []*partition
	if client != d.group {
		return nil
	}
	for topic, numbers := range topics {
		for _, n := range numbers {
			if p := d.partitions[topicPartition{topic, n}]; p != nil {
				list = append(list, p)
			}
		}
	}
	return list
}

// beginLeaving marks partitions as leaving. It returns channels that are closed when their last
// record in hand is finished. When the driver closes, nothing is in hand.
func (d *Driver) beginLeaving(leaving []*partition) (idle []<-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range leaving {
		p.leaving = true
		if p.open > 0 && !d.closing && d.c.Grace > 0 {
			p.idle = make(chan struct{})
			idle = append(idle, p.idle)
		}
	}
	if len(idle) > 0 {
		d.signalLost()
		d.interrupt()
	}
	return idle
}

// waitFor waits until a channel is closed, but not longer than the limit.
func waitFor(c <-chan struct{}, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
	}
}

// lose drops partitions and all records that were handed out of them.
func (d *Driver) lose(leaving []*partition) {
	defer d.beginChange()()
	d.endPartitions(leaving)
}

// endPartitions drops partitions. The caller has called beginChange.
func (d *Driver) endPartitions(leaving []*partition) {
	inHand := false
	for _, p := range leaving {
		p.lost = true
		inHand = inHand || p.open > 0
		if len(p.held) > 0 {
			d.partitionsHolding--
			p.held = nil
		}
		if p.paused {
			d.resume(p) // for its next holder, which may be this member
		}
		delete(d.partitions, p.topicPartition)
	}
	if inHand {
		d.signalLost()
	}
}

// signalLost tells the source that leases may be lost. The caller holds mu.
func (d *Driver) signalLost() {
	close(d.lost)
	d.lost = make(chan struct{})
}

// beginChange waits until the client is not polled, and locks mu; the caller changes the set of
// partitions and then calls end. All records polled before belong to the old set.
func (d *Driver) beginChange() (end func()) {
	d.mu.Lock()
	d.changesWaiting++
	d.interrupt()
	d.mu.Unlock()
	d.polling <- struct{}{}
	d.mu.Lock()
	d.changesWaiting--
	return func() {
		d.mu.Unlock()
		<-d.polling
	}
}
