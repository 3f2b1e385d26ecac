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

// Remaining compares the ends of all partitions with what is committed, and with what is
// finished where this member has them.
func (d *Driver) Remaining(ctx context.Context) (broker.Remaining, error) {
	left := broker.Remaining{Within: 2*d.c.Session + max(d.c.Grace, 0)}
	finished := d.finished(&left) // before the ends: what went to a stage since is not missed
	admin := kadm.NewClient(d.client)
	topics := slices.AppendSeq(slices.Clone(d.c.Topics), maps.Keys(d.stages))
	var kept kadm.OffsetResponses
	err := patiently(ctx, func() (err error) { // a new group may not have its coordinator
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
		done := max(start.Offset, finished[place{end.Topic, end.Partition}])
		if o, ok := kept.Lookup(end.Topic, end.Partition); ok {
			done = max(done, o.At)
		}
		left.All += max(end.Offset-done, 0)
	})
	return left, nil
}

// finished is how far this member is with what it has, and counts what it has in hand.
func (d *Driver) finished(left *broker.Remaining) map[place]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	ends := make(map[place]int64, len(d.parts))
	for at, p := range d.parts {
		left.Ours += int64(p.open + len(p.held))
		if p.known {
			ends[at] = p.next
		}
	}
	return ends
}
