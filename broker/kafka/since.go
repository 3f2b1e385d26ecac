package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

var _ broker.Follower = (*Reader)(nil)

// Since implements [broker.Follower]. Its first call opens a client that fetches a little ahead. It
// does not see new partitions.
func (r *Reader) Since(ctx context.Context) (added []broker.Record, err error) {
	if r.addedClient == nil {
		from := map[int32]kgo.Offset{}
		for part, p := range r.partitions {
			from[part] = kgo.NewOffset().At(p.end)
		}
		if r.addedClient, err = r.consumer(partitionFetchBytes, from); err != nil {
			return nil, err
		}
	}
	for ctx.Err() == nil {
		fetches := r.addedClient.PollRecords(nil, fetchAhead) //nolint:staticcheck // without a context it does not wait
		if len(fetches.Errors()) == 0 && fetches.NumRecords() == 0 {
			return added, nil
		}
		if added, err = r.appendFetched(added, fetches); err != nil {
			return added, err
		}
	}
	return added, nixie.Errorf(nixie.CodeUnavailable, "topic %s: %w", r.topic, ctx.Err())
}

// appendFetched adds the records of fetches, also if one of them failed: the client does not return
// them again.
func (r *Reader) appendFetched(added []broker.Record, fetches kgo.Fetches) ([]broker.Record, error) {
	var headers headerPool
	fetches.EachRecord(func(record *kgo.Record) {
		added = append(added, broker.Record{})
		r.partitions[record.Partition].copy(record, &added[len(added)-1], &headers)
	})
	if err := fetches.Err(); err != nil {
		return added, nixie.Errorf(nixie.CodeUnavailable, "fetch new records of topic %s: %w", r.topic, err)
	}
	return added, nil
}
