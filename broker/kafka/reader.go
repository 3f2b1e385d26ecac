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

// Reader reads a topic up to the end that it had when the reader was opened. It commits done
// records for a group without members: the offset of the finished prefix, and the done ranges
// behind it as metadata. It does not read records of aborted or open transactions.
type Reader struct {
	topic, name string
	options     []kgo.Opt
	client      *kgo.Client
	addedClient *kgo.Client // reads records that were added since; nil before the first call of Since
	asker       *kgo.Client // reads single records
	admin       *kadm.Client
	pages       map[topicPartition]*page // of originals

	mu         sync.Mutex
	partitions map[int32]*readPartition
	open       []map[int32]int // records by partition of each call of Next that Done has not answered, the oldest first
	waiting    []*kgo.Record   // fetched, and not returned
	bytes      int             // of waiting
	unread     error           // tells of batches that stay where they are; nil: all could be read
}

var _ broker.Follower = (*Reader)(nil)

// readPartition tracks how far a partition is read.
type readPartition struct {
	*partition // for its method copy
	doneSet
	next, end int64 // offset to fetch next, and the end of the partition
	inHand    int   // its records in open
	spare     int   // how many more offsets Done could remember; −1: any, because none are scattered yet
}

// Read opens a reader of the topic of an address. Without a name it remembers nothing, and reads
// all of the topic.
func Read(ctx context.Context, at Address, name string) (*Reader, error) {
	client, err := at.Options()
	if err != nil {
		return nil, err
	}
	if at.Topic == "" {
		return nil, nixie.Errorf(nixie.CodeInvalid, "no topic to read from: name it after the host, as in kafka://%s/orders.dlq",
			at.Seeds[0])
	}
	r := &Reader{topic: at.Topic, name: name, options: append(client, kgo.SeedBrokers(at.Seeds...)), partitions: map[int32]*readPartition{},
		pages: map[topicPartition]*page{}}
	asker, err := kgo.NewClient(r.options...)
	if err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "kafka client: %w", err)
	}
	r.asker, r.admin = asker, kadm.NewClient(asker)
	cluster, err := clusterOf(ctx, asker)
	if err == nil {
		err = r.loadPartitions(ctx)
	}
	if err != nil {
		asker.Close()
		return nil, err
	}
	from := map[int32]kgo.Offset{}
	for part, p := range r.partitions {
		if p.cluster = cluster; p.next < p.end {
			from[part] = kgo.NewOffset().At(p.next)
		}
	}
	if r.client, err = r.consumer(DefaultFetchBytes, from, kgo.KeepControlRecords()); err != nil {
		asker.Close()
		return nil, err
	}
	return r, nil
}

// clusterOf asks for the ID of a cluster: "" if it has none that an office can keep.
func clusterOf(ctx context.Context, client *kgo.Client) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	m, err := kadm.NewClient(client).BrokerMetadata(ctx)
	switch {
	case err != nil:
		return "", explain("ID of the cluster", err)
	case nixie.CheckName("cluster", m.Cluster) != nil:
		return "", nil
	}
	return m.Cluster, nil
}

// consumer opens a client that fetches from the given offsets.
func (r *Reader) consumer(bytes int32, from map[int32]kgo.Offset, more ...kgo.Opt) (*kgo.Client, error) {
	client, err := kgo.NewClient(slices.Concat([]kgo.Opt{
		kgo.FetchMaxBytes(bytes), kgo.FetchMaxPartitionBytes(partitionFetchBytes), kgo.MaxConcurrentFetches(fetchers),
		kgo.MaxDecompressBatchBytes(maxInflated),
	}, r.options, more, []kgo.Opt{
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.topic: from}),
	})...)
	if err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "kafka client: %w", err)
	}
	return client, nil
}

// loadPartitions asks for the first and last offsets, and for what is done.
func (r *Reader) loadPartitions(ctx context.Context) error {
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
	case err != nil:
		return explain("ends of topic "+r.topic, err)
	}
	ends.Each(func(o kadm.ListedOffset) {
		p := &readPartition{partition: newPartition(topicPartition{o.Topic, o.Partition}, 0), end: o.Offset}
		r.partitions[o.Partition] = p
	})
	if err := r.loadDone(ctx); err != nil {
		return err
	}
	starts.Each(func(o kadm.ListedOffset) {
		if p := r.partitions[o.Partition]; p != nil {
			p.raiseBase(o.Offset)
			p.next = p.base
		}
	})
	return nil
}

// loadDone adds the offsets that the group has as done, also those since this reader was opened.
func (r *Reader) loadDone(ctx context.Context) error {
	if r.name == "" {
		return nil
	}
	var kept kadm.OffsetResponses
	err := retryUntilReady(ctx, func() (err error) {
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
		if p := r.partitions[o.Partition]; p != nil && o.At >= 0 {
			p.merge(parseDoneSet(o.At, o.Metadata))
		}
	})
	return nil
}

// Next implements [broker.Reader]. It returns no more bytes at once than one fetch brings, unless a
// single record has more. After the last record it tells of batches that inflate beyond 64 MiB.
func (r *Reader) Next(ctx context.Context, most int) ([]broker.Record, error) {
	for {
		for len(r.waiting) < most && r.bytes < DefaultFetchBytes && r.Left() > int64(len(r.waiting)) {
			if err := r.fetch(ctx); err != nil {
				return nil, err
			}
		}
		if slices.ContainsFunc(r.waiting[:min(most, len(r.waiting))], pointsTo) {
			most = min(most, originalsAtOnce)
		}
		out, full := r.takeWaiting(most)
		if err := r.addOriginals(ctx, out); err != nil {
			return nil, err
		}
		switch {
		case len(out) > 0:
			return out, nil
		case full:
			return nil, r.scatteredError()
		case r.Left() == 0:
			return nil, r.unread
		}
	}
}

func (r *Reader) scatteredError() error {
	return nixie.Errorf(nixie.CodeLimit,
		"what is done with of topic %s lies too scattered to be remembered by group %s: take the letters into an office, and choose there",
		r.topic, r.name)
}

// takeWaiting returns up to most fetched records. Full reports that a record had to stay, because
// Done could not remember it.
func (r *Reader) takeWaiting(most int) (out []broker.Record, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.partitions {
		p.spare = -1
		if r.name != "" && len(p.ranges) > 0 {
			p.spare = max(p.capacity()-p.inHand, 0)
		}
	}
	out = make([]broker.Record, 0, min(most, len(r.waiting)))
	var headers headerPool
	handed := map[int32]int{}
	stay, n, before := 0, 0, r.bytes
	for ; n < len(r.waiting) && len(out) < most && before-r.bytes < DefaultFetchBytes; n++ {
		record := r.waiting[n]
		p := r.partitions[record.Partition]
		switch {
		case p.has(record.Offset): // another reader has done it
			r.bytes -= bytesOf(record)
		case !p.canRemember(record.Offset):
			r.waiting[stay] = record
			stay++
		default:
			p.inHand++
			handed[record.Partition]++
			r.bytes -= bytesOf(record)
			out = out[:len(out)+1]
			p.copy(record, &out[len(out)-1], &headers)
		}
	}
	// Records that stay come right before the rest.
	copy(r.waiting[n-stay:n], r.waiting[:stay])
	clear(r.waiting[:n-stay])
	r.waiting = r.waiting[n-stay:]
	if len(out) > 0 {
		r.open = append(r.open, handed)
	}
	return out, stay > 0
}

// bytesOf estimates the size of a record.
func bytesOf(r *kgo.Record) int { return len(r.Key) + len(r.Value) }

// canRemember reports whether Done could remember one more record of the partition, whichever of
// them are done. While no done offsets are scattered, the metadata has space for any of a thousand
// records in a row. The first record after the prefix needs no space.
func (p *readPartition) canRemember(offset int64) bool {
	if p.spare > 0 {
		p.spare--
		return true
	}
	return p.spare < 0 || p.inHand == 0 && offset == p.base
}

// fetch waits for records. It fails if none come for a long time.
func (r *Reader) fetch(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	fetches := r.client.PollRecords(waiting, fetchAhead)
	switch {
	case ctx.Err() != nil:
		return nixie.Errorf(nixie.CodeUnavailable, "topic %s: %w", r.topic, ctx.Err())
	case waiting.Err() != nil && fetches.NumRecords() == 0:
		return nixie.Errorf(nixie.CodeUnavailable, "topic %s: nothing came for %s, and %d records are yet to come: is the cluster well?",
			r.topic, readLimit, r.Left())
	}
	for _, e := range fetches.Errors() {
		if large := new(kgo.ErrDecompressTooLarge); errors.As(e.Err, &large) {
			r.pass(large)
		} else if !errors.Is(e.Err, context.DeadlineExceeded) {
			return nixie.Errorf(nixie.CodeUnavailable, "fetch partition %d of %s: %w", e.Partition, e.Topic, e.Err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fetches.EachRecord(r.take)
	return nil
}

// pass goes on after a batch that inflates to too much. It is not done, and told at the end.
func (r *Reader) pass(b *kgo.ErrDecompressTooLarge) {
	r.unread = errors.Join(r.unread, nixie.Errorf(nixie.CodeInvalid, "topic %s, partition %d: records %d to %d inflate to more than "+
		"64 MiB together and were left there: send them again in smaller batches", b.Topic, b.Partition, b.Offset, b.NextOffset-1))
	r.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{b.Topic: {b.Partition: {Epoch: b.Epoch, Offset: b.NextOffset}}})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.partitions[b.Partition].next = min(b.NextOffset, r.partitions[b.Partition].end)
}

// readLimit bounds the wait of a reader for a record that must exist.
const readLimit = 30 * time.Second

// take adds a fetched record. Offsets between it and the one before do not exist.
func (r *Reader) take(record *kgo.Record) {
	p := r.partitions[record.Partition]
	if p == nil || record.Offset < p.next {
		return
	}
	p.add(doneRange{p.next, min(record.Offset, p.end)})
	if record.Offset >= p.end {
		p.next = p.end
		return
	}
	p.next = record.Offset + 1
	switch {
	case record.Attrs.IsControl():
		p.add(doneRange{record.Offset, record.Offset + 1})
	case !p.has(record.Offset):
		r.waiting = append(r.waiting, record)
		r.bytes += bytesOf(record)
	}
}

// Done implements [broker.Reader].
func (r *Reader) Done(ctx context.Context, calls ...[]*broker.Record) error {
	defer r.closeCalls(len(calls))
	records := slices.Concat(calls...)
	if r.name == "" || len(records) == 0 {
		return nil
	}
	if err := r.loadDone(ctx); err != nil {
		return err
	}
	changed, full := r.markDone(records)
	if err := retryUntilReady(ctx, func() error {
		answers, err := r.admin.CommitOffsets(ctx, r.name, changed)
		if err == nil {
			err = answers.Error()
		}
		return err
	}); err != nil {
		return nixie.Errorf(nixie.CodeUnavailable, "group %s was not told what is done with of topic %s: %w", r.name, r.topic, err)
	}
	if full {
		return r.scatteredError()
	}
	return nil
}

// markDone adds records to the done sets. It returns what to commit, and whether some did not fit.
func (r *Reader) markDone(records []*broker.Record) (changed kadm.Offsets, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	touched := map[int32]*readPartition{}
	for n := 0; n < len(records); {
		first, row := records[n], doneRange{records[n].Offset, records[n].Offset}
		for ; n < len(records) && records[n].Partition == first.Partition && records[n].Offset == row.to; n++ {
			row.to++
		}
		touched[first.Partition] = r.partitions[first.Partition]
		touched[first.Partition].add(row)
	}
	for part, p := range touched {
		full = p.trim() || full
		changed.Add(kadm.Offset{Topic: r.topic, Partition: part, At: p.base, LeaderEpoch: -1, Metadata: p.metadata()})
	}
	return changed, full
}

// closeCalls removes the oldest calls of Next: Done has answered them.
func (r *Reader) closeCalls(calls int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls = min(calls, len(r.open))
	for _, handed := range r.open[:calls] {
		for part, n := range handed {
			r.partitions[part].inHand -= n
		}
	}
	r.open = r.open[calls:]
}

// retryUntilReady repeats a request while the broker answers that it is not ready, as for the first
// group of a cluster.
func retryUntilReady(ctx context.Context, ask func() error) error {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	for {
		err := ask()
		if !kerr.IsRetriable(err) {
			return err
		}
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
			return err
		}
	}
}

const retryInterval = 100 * time.Millisecond

// Left implements [broker.Reader].
func (r *Reader) Left() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := int64(len(r.waiting))
	for _, p := range r.partitions {
		left += max(p.end-p.next, 0)
	}
	return left
}

// Close implements [broker.Reader].
func (r *Reader) Close() {
	r.client.Close()
	if r.addedClient != nil {
		r.addedClient.Close()
	}
	r.admin.Close()
}

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
			return added, r.addOriginals(ctx, added)
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
