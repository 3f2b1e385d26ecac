package kafka

import (
	"context"
	"errors"
	"slices"
	"sync"
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

	mu      sync.Mutex
	parts   map[int32]*reading
	open    []map[int32]int // what calls of Next handed out that are not answered by Done, by partition; the oldest first
	waiting []*kgo.Record   // fetched, and not handed out
	bytes   int             // of those
}

var _ broker.Reader = (*Reader)(nil)

// reading is how far a partition is read.
type reading struct {
	*partition // makes records
	notes
	next, end int64 // offsets of what is fetched next, and where it ends
	handed    int   // records of it in open
	free      int   // offsets that can be noted beside those; −1: none lie scattered, and any can
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
	usual := []kgo.Opt{kgo.FetchMaxBytes(DefaultFetchBytes), kgo.FetchMaxPartitionBytes(partBytes), kgo.MaxConcurrentFetches(fetchers)}
	if r.client, err = kgo.NewClient(append(append(usual, client...), kgo.SeedBrokers(at.Seeds...), kgo.KeepControlRecords(),
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
		return explain("ends of topic "+r.topic, err)
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
		return explain("what group "+r.name+" has done of topic "+r.topic, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kept.Each(func(o kadm.OffsetResponse) {
		if p := r.parts[o.Partition]; p != nil && o.At >= 0 {
			p.join(readNotes(o.At, o.Metadata))
		}
	})
	return nil
}

// Next implements [broker.Reader]. It returns no more bytes at once than a fetch
// brings, unless a single record has more.
func (r *Reader) Next(ctx context.Context, most int) ([]broker.Record, error) {
	for {
		for len(r.waiting) < most && r.bytes < DefaultFetchBytes && r.Left() > int64(len(r.waiting)) {
			if err := r.fetch(ctx); err != nil {
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
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.parts {
		p.free = -1
		if r.name != "" && len(p.runs) > 0 {
			p.free = max(p.room()-p.handed, 0)
		}
	}
	out = make([]broker.Record, 0, min(most, len(r.waiting)))
	var headers slab
	handed := map[int32]int{}
	stay, n, before := 0, 0, r.bytes
	for ; n < len(r.waiting) && len(out) < most && before-r.bytes < DefaultFetchBytes; n++ {
		record := r.waiting[n]
		p := r.parts[record.Partition]
		switch {
		case p.has(record.Offset): // another reader was quicker
			r.bytes -= bytesOf(record)
		case !p.remembers(record.Offset):
			r.waiting[stay] = record
			stay++
		default:
			p.handed++
			handed[record.Partition]++
			r.bytes -= bytesOf(record)
			out = out[:len(out)+1]
			p.copy(record, &out[len(out)-1], &headers)
		}
	}
	// Those that stay go on right before the rest.
	copy(r.waiting[n-stay:n], r.waiting[:stay])
	clear(r.waiting[:n-stay])
	r.waiting = r.waiting[n-stay:]
	if len(out) > 0 {
		r.open = append(r.open, handed)
	}
	return out, stay > 0
}

// bytesOf is how much a record weighs, about.
func bytesOf(r *kgo.Record) int { return len(r.Key) + len(r.Value) }

// remembers reports whether one more record can be handed out, so that whichever of
// them are done with then can be noted. Where nothing lies scattered yet there is
// room for any of a thousand in a row, and for more if few are left out. The first
// of all never needs room.
func (p *reading) remembers(offset int64) bool {
	if p.free > 0 {
		p.free--
		return true
	}
	return p.free < 0 || p.handed == 0 && offset == p.base
}

// fetch waits for records. That nothing comes for long is an error.
func (r *Reader) fetch(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	fetches := r.client.PollRecords(waiting, surplus)
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
	r.mu.Lock()
	defer r.mu.Unlock()
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
		r.bytes += bytesOf(record)
	}
}

// Done implements [broker.Reader].
func (r *Reader) Done(ctx context.Context, calls ...[]*broker.Record) error {
	defer r.answered(len(calls))
	records := slices.Concat(calls...)
	if r.name == "" || len(records) == 0 {
		return nil
	}
	if err := r.recall(ctx); err != nil {
		return err
	}
	changed, full := r.note(records)
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

// note notes records, and says what the group is to be told, and whether some could not
// be noted.
func (r *Reader) note(records []*broker.Record) (changed kadm.Offsets, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	touched := map[int32]*reading{}
	for n := 0; n < len(records); {
		first, row := records[n], span{records[n].Offset, records[n].Offset}
		for ; n < len(records) && records[n].Partition == first.Partition && records[n].Offset == row.to; n++ {
			row.to++
		}
		touched[first.Partition] = r.parts[first.Partition]
		touched[first.Partition].add(row)
	}
	for part, p := range touched {
		full = p.fit() || full
		changed.Add(kadm.Offset{Topic: r.topic, Partition: part, At: p.base, LeaderEpoch: -1, Metadata: p.metadata()})
	}
	return changed, full
}

// answered notes that the oldest calls of Next are.
func (r *Reader) answered(calls int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls = min(calls, len(r.open))
	for _, handed := range r.open[:calls] {
		for part, n := range handed {
			r.parts[part].handed -= n
		}
	}
	r.open = r.open[calls:]
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
	r.mu.Lock()
	defer r.mu.Unlock()
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
