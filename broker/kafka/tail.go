package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

var _ broker.Follower = (*Reader)(nil)

// Since implements [broker.Follower]. It has a client of its own, that the first call
// opens and that fetches a little ahead; partitions that are added are not seen.
func (r *Reader) Since(ctx context.Context) (added []broker.Record, err error) {
	if r.tail == nil {
		from := map[int32]kgo.Offset{}
		for part, p := range r.parts {
			from[part] = kgo.NewOffset().At(p.end)
		}
		if r.tail, err = r.consumer(partBytes, from); err != nil {
			return nil, err
		}
	}
	var headers slab
	for ctx.Err() == nil {
		fetches := r.tail.PollRecords(nil, surplus) //nolint:staticcheck // without a context it does not wait
		if err := fetches.Err(); err != nil {
			return nil, nixie.Errorf(nixie.CodeUnavailable, "what is added to topic %s: %w", r.topic, err)
		}
		if fetches.NumRecords() == 0 {
			return added, nil
		}
		fetches.EachRecord(func(record *kgo.Record) {
			added = append(added, broker.Record{})
			r.parts[record.Partition].copy(record, &added[len(added)-1], &headers)
		})
	}
	return nil, nixie.Errorf(nixie.CodeUnavailable, "topic %s: %w", r.topic, ctx.Err())
}
