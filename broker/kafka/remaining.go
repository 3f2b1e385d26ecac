package kafka

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/nixie-go/nixie/broker"
)

var _ broker.Counter = (*Driver)(nil)

// Remaining compares the end of each partition with the committed offset, and with this member's
// finished prefix if it has the partition.
func (d *Driver) Remaining(ctx context.Context) (broker.Remaining, error) {
	left := broker.Remaining{Within: 2*d.c.Session + max(d.c.Grace, 0)}
	finished := d.finished(&left) // before asking for the ends, so that retries published in between are counted
	admin := kadm.NewClient(d.client)
	topics := slices.AppendSeq(slices.Clone(d.c.Topics), maps.Keys(d.stages))
	var kept kadm.OffsetResponses
	err := retryUntilReady(ctx, func() (err error) { // a new group may not have its coordinator yet
		if kept, err = admin.FetchOffsetsForTopics(ctx, d.c.Group, topics...); err == nil {
			err = kept.Error()
		}
		return err
	})
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return left, explain("what group "+d.c.Group+" has done", err)
	}
	starts, err := admin.ListStartOffsets(ctx, topics...)
	if err != nil {
		return left, explain("where topics begin", err)
	}
	ends, err := admin.ListEndOffsets(ctx, topics...)
	if err != nil {
		return left, explain("where topics end", err)
	}
	if err := errors.Join(starts.Error(), ends.Error()); err != nil {
		return left, explain("what is left for group "+d.c.Group, err)
	}
	ends.Each(func(end kadm.ListedOffset) {
		start, _ := starts.Lookup(end.Topic, end.Partition)
		done := max(start.Offset, finished[topicPartition{end.Topic, end.Partition}])
		if o, ok := kept.Lookup(end.Topic, end.Partition); ok {
			done = max(done, o.At)
		}
		left.All += max(end.Offset-done, 0)
	})
	return left, nil
}

// finished returns how far this member has finished its partitions, and counts its records in hand.
func (d *Driver) finished(left *broker.Remaining) map[topicPartition]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	ends := make(map[topicPartition]int64, len(d.partitions))
	for at, p := range d.partitions {
		left.Ours += int64(p.open + len(p.held))
		if p.known {
			ends[at] = p.next
		}
	}
	return ends
}
