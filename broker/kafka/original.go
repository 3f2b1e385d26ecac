package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/nixie-go/nixie/broker"
)

// originalsAtOnce counts the records that are handed out together when some point to others, whose
// bodies are in memory then.
const originalsAtOnce = 32

// pointsTo reports whether a record may point to another one.
func pointsTo(r *kgo.Record) bool {
	return slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool { return strings.Contains(h.Key, broker.ShareHeaders) })
}

// addOriginals fetches the records that others point to. An error tells that one could not be
// looked for; what is gone has a reason.
func (r *Reader) addOriginals(ctx context.Context, records []broker.Record) error {
	for i := range records {
		to, points := broker.PointsTo(records[i].Headers)
		if !points {
			continue
		}
		at := topicPartition{to.Channel, to.Partition}
		p := r.pages[at]
		if p == nil || to.Offset < p.from || to.Offset >= p.next {
			if len(r.pages) == originalsAtOnce {
				clear(r.pages)
			}
			p = &page{from: to.Offset, next: to.Offset + 1}
			if err := r.turnTo(ctx, at, p); err != nil {
				return explain("the record that a dead letter points to, at "+to.String(), err)
			}
			r.pages[at] = p
		}
		records[i].Original = p.original(to.Offset)
	}
	return nil
}

// page holds consecutive records of a partition. Originals often lie one after the other.
type page struct {
	from, next, stable int64  // offsets: of the first record, after the last, and from which on nothing is committed
	gone               string // why there are none
	records            map[int64]*kgo.Record
}

func (p *page) original(offset int64) *broker.Original {
	o, record := &broker.Original{Gone: p.gone}, p.records[offset]
	switch {
	case o.Gone != "":
	case record == nil && offset >= p.stable:
		o.Gone = "it is not committed yet: a transaction is open"
	case record == nil:
		o.Gone = "it is not in its topic any more, as after a compaction, or its transaction was aborted"
	case record.Attrs.IsControl():
		o.Gone = "a control record of a transaction lies there, which has no body"
	default:
		o.Key, o.Value, o.Timestamp = record.Key, record.Value, record.Timestamp
		for _, h := range record.Headers {
			o.Headers = append(o.Headers, broker.RecordHeader{Name: h.Key, Value: h.Value})
		}
	}
	return o
}

// turnTo fetches a page.
func (r *Reader) turnTo(ctx context.Context, at topicPartition, p *page) error {
	raw, err := r.fetchAt(ctx, at, p.from)
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.InvalidTopicException):
		p.gone = fmt.Sprintf("topic %s with a partition %d is not there any more", at.topic, at.partition)
		return nil
	case errors.Is(err, kerr.OffsetOutOfRange), err == nil && p.from >= raw.HighWatermark:
		p.gone = "it was deleted, or the topic was made anew: the partition has no such offset"
		return nil
	case err != nil:
		return err
	}
	got, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{KeepControlRecords: true, Offset: p.from,
		IsolationLevel: kgo.ReadCommitted(), Topic: at.topic, Partition: at.partition}, raw, kgo.DefaultDecompressor(), nil)
	p.next, p.stable, p.records = max(p.next, next), raw.LastStableOffset, make(map[int64]*kgo.Record, len(got.Records))
	for _, record := range got.Records {
		p.records[record.Offset] = record
	}
	return got.Err
}

// fetchAt asks the leader of a partition for records from an offset on.
func (r *Reader) fetchAt(ctx context.Context, at topicPartition, offset int64) (*kmsg.FetchResponseTopicPartition, error) {
	// Asked so, the client does not answer from its memory, where topics outlive their deletion.
	topics, err := r.admin.ListTopics(kadm.WithAuthorizedOps(ctx), at.topic)
	if err = cmp.Or(err, topics[at.topic].Err); err != nil {
		return nil, err
	}
	where, there := topics[at.topic].Partitions[at.partition]
	if !there {
		return nil, kerr.UnknownTopicOrPartition
	}
	ask, t, part := kmsg.NewPtrFetchRequest(), kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
	part.Partition, part.FetchOffset, part.PartitionMaxBytes = at.partition, offset, partitionFetchBytes
	t.Topic, t.TopicID, t.Partitions = at.topic, topics[at.topic].ID, append(t.Partitions, part)
	ask.MaxBytes, ask.IsolationLevel, ask.SessionEpoch, ask.Topics = partitionFetchBytes, 1, -1, append(ask.Topics, t)
	answer, err := r.asker.Broker(int(where.Leader)).RetriableRequest(ctx, ask)
	if err != nil {
		return nil, err
	}
	got := answer.(*kmsg.FetchResponse)
	if len(got.Topics) != 1 || len(got.Topics[0].Partitions) != 1 {
		return nil, kerr.ErrorForCode(max(got.ErrorCode, kerr.UnknownServerError.Code))
	}
	return &got.Topics[0].Partitions[0], kerr.ErrorForCode(got.Topics[0].Partitions[0].ErrorCode)
}
