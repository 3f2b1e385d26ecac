package kafka

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// clientMaker makes a client when it is first called.
type clientMaker func() (*kgo.Client, error)

// aloneClients make the clients that send records alone, each with a codec at its best. All
// consumers can read gzip. What is too large in gzip goes in zstd, as who wrote it must have done.
func aloneClients(options []kgo.Opt) (all []clientMaker) {
	for _, codec := range []kgo.CompressionCodec{kgo.GzipCompression().WithLevel(9), kgo.ZstdCompression().WithLevel(4)} {
		all = append(all, sync.OnceValues(func() (*kgo.Client, error) {
			return kgo.NewClient(slices.Concat(options, []kgo.Opt{
				kgo.ProducerBatchMaxBytes(mostAlone), kgo.BrokerMaxWriteBytes(mostAlone), kgo.ProducerBatchCompression(codec),
			})...)
		}))
	}
	return all
}

// mostAlone is the size of a record, before it is compressed, that the client takes at most.
const mostAlone = 1 << 30

// isLarge reports whether a record may be larger than a batch of its topic. The client would refuse
// it unsent, but the topic takes it if it is small enough compressed.
func (p *Publisher) isLarge(r *kgo.Record) bool {
	size := 128 + len(r.Key) + len(r.Value) // with what a batch adds, and more
	for i := range r.Headers {
		size += 10 + len(r.Headers[i].Key) + len(r.Headers[i].Value)
	}
	return size > int(p.maxBatchBytes(r.Topic))
}

// sendAlone sends a record in a batch of its own, and waits for the answer or the end of ctx. One
// record at a time goes so.
func (p *Publisher) sendAlone(ctx context.Context, r *kgo.Record, answered func(*kgo.Record, error)) {
	select {
	case p.aloneBusy <- struct{}{}:
	case <-ctx.Done():
		answered(r, context.Cause(ctx))
		return
	}
	done := make(chan struct{})
	r.Timestamp = time.Now() // from which the client counts
	go func() {              // it ends with the answer, or with the client
		defer close(done)
		var err error
		for _, client := range p.alone {
			var c *kgo.Client
			if c, err = client(); err == nil {
				err = c.ProduceSync(ctx, r).FirstErr()
			}
			if !tooLarge(err) {
				break
			}
		}
		<-p.aloneBusy
		answered(r, err)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// again sends alone the records whose batch was refused, for which one of them may be to blame.
func (s *publishCall) again(ctx context.Context, p *Publisher) {
	s.mu.Lock()
	var refused []*kgo.Record
	for i := range s.records {
		r := &s.records[i]
		if err := s.refused[r]; (tooLarge(err) || badRecord(err)) && !slices.Contains(s.alone, r) {
			refused = append(refused, r)
			delete(s.refused, r) // nothing is known of it until there is another answer
		}
	}
	s.mu.Unlock()
	for _, r := range refused {
		p.sendAlone(ctx, r, s.answered)
	}
}

func tooLarge(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}

func badRecord(err error) bool {
	return errors.Is(err, kerr.InvalidRecord) || errors.Is(err, kerr.InvalidTimestamp) || errors.Is(err, kerr.CorruptMessage)
}

// byKey marks a record that names no partition.
const byKey = -1

// partitioner sends a record to the partition that it names, while the topic has that. It chooses
// for others as the client does by default.
type partitioner struct{}

func (partitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return topicPartitioner{kgo.UniformBytesPartitioner(64<<10, true, true, nil).ForTopic(topic).(kgo.TopicBackupPartitioner)}
}

type topicPartitioner struct{ kgo.TopicBackupPartitioner }

func (p topicPartitioner) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition != byKey || p.TopicBackupPartitioner.RequiresConsistency(r)
}

func (p topicPartitioner) PartitionByBackup(r *kgo.Record, n int, backup kgo.TopicBackupIter) int {
	if r.Partition >= 0 && int(r.Partition) < n {
		return int(r.Partition)
	}
	return p.TopicBackupPartitioner.PartitionByBackup(r, n, backup)
}
