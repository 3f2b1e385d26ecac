package kafka

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/nixie-go/nixie"
)

// rebalanceWait limits how long a leaving member waits for its client. During a rebalance the group
// waits for all its members, for a dead one until its session ends, and the client neither commits
// nor leaves.
const rebalanceWait = time.Second

// Stopping implements [lease.Stopper]: it commits for each partition in hand what the next holder
// has to suspect.
func (d *Driver) Stopping(ctx context.Context, told bool) error {
	d.mu.Lock()
	news := d.told != told
	d.told = told
	d.mu.Unlock()
	if !news {
		return nil
	}
	select {
	case d.committing <- struct{}{}:
	case <-ctx.Done(): // another commit waits for the group
		return notTold(context.Cause(ctx))
	}
	defer func() { <-d.committing }()
	if d.commitPoints(ctx, d.allPartitions(), d.commitPointOf, d.commitByClient) {
		return notTold(errNotSent)
	}
	return nil
}

func notTold(why error) error {
	return nixie.Errorf(nixie.CodeUnavailable, "the group does not know that this member stops: %w", why)
}

// leaveGroup ends the member, even if the group does not agree.
func (d *Driver) leaveGroup(ctx context.Context) error {
	d.mu.Lock()
	group, stop := d.group, d.stopClient
	d.mu.Unlock()
	left := make(chan error, 1)
	go func() { left <- group.LeaveGroupContext(ctx) }()
	var err error
	select {
	case err = <-left:
	case <-time.After(rebalanceWait):
		err = d.leaveDuringRebalance(ctx, group)
	}
	stop()
	group.Close()
	if groupChanged(err) {
		return nil // the group had thrown it out
	}
	return err
}

// leaveDuringRebalance commits and leaves without the client of the member. The group accepts the
// old generation until all members have joined.
func (d *Driver) leaveDuringRebalance(ctx context.Context, group *kgo.Client) error {
	member, generation := group.GroupMetadata()
	if member == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	d.committing <- struct{}{}
	defer func() { <-d.committing }()
	all := d.allPartitions()
	if failed := d.commitPoints(ctx, all, (*partition).cleanCommitPoint,
		func(ctx context.Context, points map[topicPartition]commitPoint) (*kmsg.OffsetCommitResponse, error) {
			return d.commitAsMember(ctx, member, generation, points)
		}); !failed {
		d.clearCommitErr(all)
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.MemberID = d.c.Group, member
	leave.Members = []kmsg.LeaveGroupRequestMember{{MemberID: member}}
	answer, err := leave.RequestWith(ctx, d.client)
	if err != nil {
		return err
	}
	for _, m := range answer.Members {
		if err := kerr.ErrorForCode(m.ErrorCode); err != nil {
			return err
		}
	}
	return kerr.ErrorForCode(answer.ErrorCode)
}

// commitAsMember is the commitFunc for a member whose client waits for the group.
func (d *Driver) commitAsMember(ctx context.Context, member string, generation int32,
	points map[topicPartition]commitPoint) (*kmsg.OffsetCommitResponse, error) {
	names := map[string]bool{}
	for at := range points {
		names[at.topic] = true
	}
	topics, err := kadm.NewClient(d.client).ListTopics(ctx, slices.Collect(maps.Keys(names))...)
	if err != nil {
		return nil, err
	}
	ask := kmsg.NewPtrOffsetCommitRequest()
	ask.Group, ask.MemberID, ask.Generation = d.c.Group, member, generation
	named := map[[16]byte]string{}
	for topic := range names {
		id := [16]byte(topics[topic].ID)
		named[id] = topic
		to := kmsg.NewOffsetCommitRequestTopic()
		to.Topic, to.TopicID = topic, id
		for at, m := range points {
			if at.topic != topic {
				continue
			}
			part := kmsg.NewOffsetCommitRequestTopicPartition()
			part.Partition, part.Offset, part.LeaderEpoch = at.partition, m.offset, m.epoch
			part.Metadata = kmsg.StringPtr(m.metadata())
			to.Partitions = append(to.Partitions, part)
		}
		ask.Topics = append(ask.Topics, to)
	}
	answer, err := ask.RequestWith(ctx, d.client)
	if err != nil {
		return nil, err
	}
	for i := range answer.Topics {
		if to := &answer.Topics[i]; to.Topic == "" {
			to.Topic = named[to.TopicID]
		}
	}
	return answer, nil
}

// rejoin makes a new member after the group has thrown the old one out. The old client would keep
// its partitions and go on where it was, although other members may have had them since.
func (d *Driver) rejoin(ctx context.Context) error {
	d.membership.Lock()
	defer d.membership.Unlock()
	d.mu.Lock()
	out, closing := d.thrownOut, d.closing
	d.mu.Unlock()
	switch {
	case closing:
		return closedError()
	case !out:
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancel()
	_ = d.leaveGroup(ctx) // the group no longer knows this member
	return d.join()
}
