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
)

// gatherLimit is how long a member that leaves waits for its client. A group gathers its
// members until all have come, one that died is waited for until its session is over, and
// meanwhile the client neither commits nor leaves.
const gatherLimit = time.Second

// leaveGroup ends the member, with or without the consent of the group.
func (d *Driver) leaveGroup(ctx context.Context) error {
	d.mu.Lock()
	group, kill := d.group, d.kill
	d.mu.Unlock()
	left := make(chan error, 1)
	go func() { left <- group.LeaveGroupContext(ctx) }()
	var err error
	select {
	case err = <-left:
	case <-time.After(gatherLimit):
		err = d.leaveGathering(ctx, group)
	}
	kill()
	group.Close()
	if regroups(err) {
		return nil // it was out before
	}
	return err
}

// leaveGathering commits what is finished and leaves, past the client of the member. The
// generation before is good until all have come.
func (d *Driver) leaveGathering(ctx context.Context, group *kgo.Client) error {
	member, generation := group.GroupMetadata()
	if member == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	d.committing <- struct{}{}
	defer func() { <-d.committing }()
	all := d.all()
	if failed := d.commitMarks(ctx, all, (*partition).farewell, func(ctx context.Context, marks map[place]mark) (*kmsg.OffsetCommitResponse, error) {
		return d.pastMember(ctx, member, generation, marks)
	}); !failed {
		d.settled(all)
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

// pastMember is the sender for a member whose client waits for the group.
func (d *Driver) pastMember(ctx context.Context, member string, generation int32, marks map[place]mark) (*kmsg.OffsetCommitResponse, error) {
	names := map[string]bool{}
	for at := range marks {
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
		for at, m := range marks {
			if at.topic != topic {
				continue
			}
			part := kmsg.NewOffsetCommitRequestTopicPartition()
			part.Partition, part.Offset, part.LeaderEpoch = at.part, m.offset, m.epoch
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

// rejoin makes a new member where the group has thrown the old one out. The client
// would keep the partitions that it had and go on where it was, although somebody
// else may have had them since.
func (d *Driver) rejoin(ctx context.Context) error {
	d.entry.Lock()
	defer d.entry.Unlock()
	d.mu.Lock()
	out, closing := d.out, d.closing
	d.mu.Unlock()
	switch {
	case closing:
		return closedError()
	case !out:
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	defer cancel()
	_ = d.leaveGroup(ctx) // it is out, whatever it hears
	return d.join()
}
