package kafka

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Reader reads a topic up to where it ended when the reader was opened. What is done
// with it commits for a group that has no members: the end of the finished prefix of
// each partition, and in its metadata what is done with beyond. Records of
// transactions that were aborted, or are under way, are not read.
type Reader struct {
	topic, name string
	client      *kgo.Client
	admin       *kadm.Client
	parts       map[int32]*reading
	waiting     []*kgo.Record // fetched, and not handed out
}

var _ broker.Reader = (*Reader)(nil)

// reading is how far a partition is read.
type reading struct {
	*partition // makes records
	notes
	next, end int64 // offsets of what is fetched next, and where it ends
	handed    int   // records that Next returned last
}

// Read opens a reader of the topic that an address names. Without a name nothing is
// remembered, and all that lies there is read.
func Read(ctx context.Context, at Address, name string) (*Reader, error) {
	client, err := at.options()
	if err != nil {
		return nil, err
	}
	if at.Topic == "" {
		return nil, nixie.Errorf(nixie.CodeInvalid, "no topic to read from: name it after the host, as in kafka://%s/orders.dlq", at.Seeds[0])
	}
	r := &Reader{topic: at.Topic, name: name, parts: map[int32]*reading{}}
	asker, err := kgo.NewClient(append(slices.Clone(client), kgo.SeedBrokers(at.Seeds...))...)
	if err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "kafka client: %w", err)
	}
	r.admin = kadm.NewClient(asker)
	if err := r.survey(ctx); err != nil {
		asker.Close()
		return nil, err
	}
	from := map[int32]kgo.Offset{}
	for part, p := range r.parts {
		if p.next < p.end {
			from[part] = kgo.NewOffset().At(p.next)
		}
	}
	if r.client, err = kgo.NewClient(append(slices.Clone(client), kgo.SeedBrokers(at.Seeds...), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{at.Topic: from}))...); err != nil {
		asker.Close()
		return nil, nixie.Errorf(nixie.CodeInvalid, "kafka client: %w", err)
	}
	return r, nil
}

// survey asks where partitions begin and end, and what is done with.
func (r *Reader) survey(ctx context.Context) error {
	starts, err := r.admin.ListStartOffsets(ctx, r.topic)
	if err == nil {
		err = starts.Error()
	}
	ends := kadm.ListedOffsets{}
	if err == nil {
		if ends, err = r.admin.ListCommittedOffsets(ctx, r.topic); err == nil {
			err = ends.Error()
		}
	}
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition), err == nil && len(ends[r.topic]) == 0:
		return nixie.Errorf(nixie.CodeNotFound, "topic %s is not there: name one that is", r.topic)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return nixie.Errorf(nixie.CodeDenied, "topic %s may not be read: grant the client's user that right", r.topic)
	case err != nil:
		return nixie.Errorf(nixie.CodeUnavailable, "ends of topic %s: %w", r.topic, err)
	}
	ends.Each(func(o kadm.ListedOffset) {
		p := &reading{partition: newPartition(place{o.Topic, o.Partition}, 0), end: o.Offset}
		r.parts[o.Partition] = p
	})
	if err := r.recall(ctx); err != nil {
		return err
	}
	starts.Each(func(o kadm.ListedOffset) {
		if p := r.parts[o.Partition]; p != nil {
			p.raise(o.Offset)
			p.next = p.base
		}
	})
	return nil
}

// recall adds what the group has noted, also since this reader was opened.
func (r *Reader) recall(ctx context.Context) error {
	if r.name == "" {
		return nil
	}
	var kept kadm.OffsetResponses
	err := patiently(ctx, func() (err error) {
		if kept, err = r.admin.FetchOffsetsForTopics(ctx, r.name, r.topic); err == nil {
			err = kept.Error()
		}
		return err
	})
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		return nixie.Errorf(nixie.CodeUnavailable, "what group %s has done of topic %s: %w", r.name, r.topic, err)
	}
	kept.Each(func(o kadm.OffsetResponse) {
		if p := r.parts[o.Partition]; p != nil && o.At >= 0 {
			p.join(readNotes(o.At, o.Metadata))
		}
	})
	return nil
}

// Next implements [broker.Reader].
func (r *Reader) Next(ctx context.Context, most int) ([]broker.Record, error) {
	for _, p := range r.parts {
		p.handed = 0
	}
	for {
		for len(r.waiting) < most && r.Left() > int64(len(r.waiting)) {
			if err := r.fetch(ctx, most); err != nil {
				return nil, err
			}
		}
		out, full := r.handOut(most)
		switch {
		case len(out) > 0:
			return out, nil
		case full:
			return nil, r.scattered()
		case r.Left() == 0:
			return nil, nil
		}
	}
}

func (r *Reader) scattered() error {
	return nixie.Errorf(nixie.CodeLimit, "what is done with of topic %s lies too scattered to be remembered by group %s: take the letters into an office, and choose there", r.topic, r.name)
}

// handOut takes up to most of what is fetched, and says whether something stays
// because it could not be remembered.
func (r *Reader) handOut(most int) (out []broker.Record, full bool) {
	out = make([]broker.Record, 0, min(most, len(r.waiting)))
	var rest []*kgo.Record
	for n, record := range r.waiting {
		if len(out) == most {
			rest = append(rest, r.waiting[n:]...)
			break
		}
		p := r.parts[record.Partition]
		switch {
		case p.has(record.Offset): // another reader was quicker
		case r.name != "" && !p.remembers(record.Offset):
			rest, full = append(rest, record), true
		default:
			p.handed++
			out = out[:len(out)+1]
			p.copy(record, &out[len(out)-1])
		}
	}
	r.waiting = rest
	return out, full
}

// remembers reports whether one more record can be handed out, so that whichever of
// them are done with then can be noted. Where nothing lies scattered yet there is
// room for any of a thousand in a row, and for more if few are left out. The first
// of all never needs room.
func (p *reading) remembers(offset int64) bool {
	return len(p.runs) == 0 || p.handed < p.room() || p.handed == 0 && offset == p.base
}

// fetch waits for records. That nothing comes for long is an error.
func (r *Reader) fetch(ctx context.Context, most int) error {
	waiting, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	fetches := r.client.PollRecords(waiting, max(most, 1))
	switch {
	case ctx.Err() != nil:
		return nixie.Errorf(nixie.CodeUnavailable, "topic %s: %w", r.topic, ctx.Err())
	case waiting.Err() != nil && fetches.NumRecords() == 0:
		return nixie.Errorf(nixie.CodeUnavailable, "topic %s: nothing came for %s, and %d records are yet to come: is the cluster well?", r.topic, readLimit, r.Left())
	}
	for _, e := range fetches.Errors() {
		if !errors.Is(e.Err, context.DeadlineExceeded) {
			return nixie.Errorf(nixie.CodeUnavailable, "fetch partition %d of %s: %w", e.Partition, e.Topic, e.Err)
		}
	}
	fetches.EachRecord(r.take)
	return nil
}

// readLimit is how long a reader waits for the next record that has to be there.
const readLimit = 30 * time.Second

// take sorts a fetched record in. Offsets between it and the one before do not exist.
func (r *Reader) take(record *kgo.Record) {
	p := r.parts[record.Partition]
	if p == nil || record.Offset < p.next {
		return
	}
	p.add(span{p.next, min(record.Offset, p.end)})
	if record.Offset >= p.end {
		p.next = p.end
		return
	}
	p.next = record.Offset + 1
	switch {
	case record.Attrs.IsControl():
		p.add(span{record.Offset, record.Offset + 1})
	case !p.has(record.Offset):
		r.waiting = append(r.waiting, record)
	}
}

// Done implements [broker.Reader].
func (r *Reader) Done(ctx context.Context, records []*broker.Record) error {
	if r.name == "" || len(records) == 0 {
		return nil
	}
	if err := r.recall(ctx); err != nil {
		return err
	}
	changed := kadm.Offsets{}
	for _, record := range records {
		r.parts[record.Partition].add(span{record.Offset, record.Offset + 1})
	}
	full := false
	for _, record := range records {
		p := r.parts[record.Partition]
		full = p.fit() || full
		changed.Add(kadm.Offset{Topic: r.topic, Partition: record.Partition, At: p.base, LeaderEpoch: -1, Metadata: p.metadata()})
	}
	if err := patiently(ctx, func() error {
		answers, err := r.admin.CommitOffsets(ctx, r.name, changed)
		if err == nil {
			err = answers.Error()
		}
		return err
	}); err != nil {
		return nixie.Errorf(nixie.CodeUnavailable, "group %s was not told what is done with of topic %s: %w", r.name, r.topic, err)
	}
	if full {
		return r.scattered()
	}
	return nil
}

// patiently asks again as long as the answer is that a broker is not ready, as for
// the first group of a cluster.
func patiently(ctx context.Context, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	for {
		err := ask()
		if !kerr.IsRetriable(err) {
			return err
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return err
		}
	}
}

const askAgain = 100 * time.Millisecond

// Left implements [broker.Reader].
func (r *Reader) Left() int64 {
	left := int64(len(r.waiting))
	for _, p := range r.parts {
		left += max(p.end-p.next, 0)
	}
	return left
}

// Close implements [broker.Reader].
func (r *Reader) Close() {
	r.client.Close()
	r.admin.Close()
}
