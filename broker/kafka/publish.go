package kafka

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// Publisher adds records to topics, and describes topics. [Connect] makes one.
type Publisher struct {
	client     *kgo.Client
	alone      []clientMaker     // send records alone, each one that the one before it could not
	aloneBusy  chan struct{}     // full while a record goes alone
	addHeaders func(*kgo.Record) // adds headers that consumers of the topic need

	mu     sync.Mutex
	limits map[string]int32 // largest batch by topic
}

var _ broker.Publisher = (*Publisher)(nil)

// Connect makes a publisher for a cluster. It does not wait for a broker. Close ends it.
func Connect(at Address) (*Publisher, error) {
	client, err := at.Options()
	if err != nil {
		return nil, err
	}
	return newPublisher(at.Seeds, client)
}

func newPublisher(seeds []string, client []kgo.Opt) (*Publisher, error) {
	options := slices.Concat(
		[]kgo.Opt{kgo.RecordDeliveryTimeout(deliveryLimit), kgo.UnknownTopicRetries(topicAsked), kgo.ProducerLinger(0)}, client,
		[]kgo.Opt{kgo.SeedBrokers(seeds...), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordPartitioner(partitioner{})})
	p := &Publisher{limits: map[string]int32{}, addHeaders: func(*kgo.Record) {}, alone: aloneClients(options),
		aloneBusy: make(chan struct{}, 1)}
	var err error
	if p.client, err = kgo.NewClient(append(options, kgo.ProducerBatchMaxBytesFn(p.maxBatchBytes))...); err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "kafka client: %w", err)
	}
	return p, nil
}

// Close ends the publisher.
func (p *Publisher) Close() {
	p.client.Close()
	for _, client := range p.alone {
		if c, err := client(); err == nil {
			c.Close()
		}
	}
}

// Publish gives records to the client, and waits if too many are under way. Answers waits until all
// required replicas have each record, or ctx ends. The client keeps sending a record without an
// answer even then. A record goes to the partition that it names while the topic has it, else to
// that of its key. One that may fit only compressed goes alone, when all before it are there. The
// records of a batch that the broker refuses go again one by one, after those on their way.
func (p *Publisher) Publish(ctx context.Context, list []broker.Publication) func() []error {
	s := outbound(list)
	now, answered := time.Now(), s.answered // shared by all records
	for i := range s.records {
		r := &s.records[i]
		r.Timestamp = now
		p.addHeaders(r)
		if !p.isLarge(r) {
			p.client.Produce(ctx, r, answered)
			continue
		}
		s.alone = append(s.alone, r)
		if err := p.client.Flush(ctx); err != nil {
			answered(r, err)
			continue
		}
		p.sendAlone(ctx, r, answered)
		now = time.Now() // the time of a record counts from here
	}
	return func() []error { return s.wait(ctx, p) }
}

// publishCall holds the records of one call of Publish. It allocates for all of them at once.
type publishCall struct {
	records []kgo.Record
	alone   []*kgo.Record // records that were sent alone
	all     chan struct{} // closed when each record has its first answer
	end     sync.Once     // closes all

	mu        sync.Mutex
	confirmed []*kgo.Record
	refused   map[*kgo.Record]error
}

func outbound(list []broker.Publication) *publishCall {
	s := &publishCall{records: make([]kgo.Record, len(list)), all: make(chan struct{}), confirmed: make([]*kgo.Record, 0, len(list))}
	if len(list) == 0 {
		s.end.Do(func() { close(s.all) })
	}
	n := 0
	for i := range list {
		n += len(list[i].Headers)
	}
	all := make([]kgo.RecordHeader, 0, n)
	for i := range list {
		p, from := &list[i], len(all)
		for _, h := range p.Headers {
			all = append(all, kgo.RecordHeader{Key: h.Name, Value: h.Value})
		}
		r := &s.records[i]
		r.Topic, r.Key, r.Value, r.Headers, r.Partition = p.Channel, p.Key, p.Value, all[from:len(all):len(all)], byKey
		if p.Partition != nil {
			r.Partition = *p.Partition
		}
	}
	return s
}

// answered stores the answer for a record, even if no caller waits any longer.
func (s *publishCall) answered(r *kgo.Record, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.confirmed = append(s.confirmed, r)
	case s.refused == nil:
		s.refused = map[*kgo.Record]error{r: err}
	default:
		s.refused[r] = err
	}
	if len(s.confirmed)+len(s.refused) == len(s.records) {
		s.end.Do(func() { close(s.all) })
	}
}

// wait returns the outcomes of the records. Those without an answer when ctx ends are unknown.
func (s *publishCall) wait(ctx context.Context, p *Publisher) []error {
	select {
	case <-s.all:
		s.again(ctx, p)
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := make([]error, len(s.records))
	if len(s.confirmed) == len(errs) {
		return errs
	}
	confirmed := make(map[*kgo.Record]bool, len(s.confirmed))
	for _, r := range s.confirmed {
		confirmed[r] = true
	}
	for i := range s.records {
		switch r := &s.records[i]; {
		case confirmed[r]:
		case s.refused[r] != nil:
			errs[i] = publishError(r.Topic, s.refused[r])
		default:
			errs[i] = nixie.Errorf(nixie.CodeOutcomeUnknown, "publish to topic %s: no answer came, and it may be there: %w", r.Topic,
				context.Cause(ctx))
		}
	}
	return errs
}

// publishError translates an error of the client into our codes.
func publishError(topic string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		return nixie.Errorf(nixie.CodeNotFound, "topic %s is not there: create it: %w", topic, err)
	case tooLarge(err):
		return nixie.Errorf(nixie.CodeLimit, "topic %s takes no record so large: raise its max.message.bytes: %w", topic, err)
	case badRecord(err):
		return nixie.Errorf(nixie.CodeInvalid, "topic %s takes no record like this one: %w", topic, err)
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return nixie.Errorf(nixie.CodeDenied, "topic %s may not be written to: %w", topic, err)
	case errors.Is(err, kgo.ErrClientClosed):
		return closedError()
	}
	return nixie.Errorf(nixie.CodeOutcomeUnknown, "publish to topic %s: %w", topic, err)
}

// maxBatchBytes returns the largest batch that a topic takes.
func (p *Publisher) maxBatchBytes(topic string) int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if limit, ok := p.limits[topic]; ok {
		return limit
	}
	return defaultMaxBytes
}

// Describe asks for topics and their settings.
func (p *Publisher) Describe(ctx context.Context, names []string) ([]broker.Channel, error) {
	out := make([]broker.Channel, len(names))
	admin := kadm.NewClient(p.client)
	topics, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return nil, explain("list topics", err)
	}
	var confirmed []string
	for i, name := range names {
		out[i].Name = name
		t := topics[name]
		switch {
		case errors.Is(t.Err, kerr.TopicAuthorizationFailed):
			out[i].Forbidden = true
		case t.Err != nil || len(t.Partitions) == 0:
			out[i].Missing = true
		default:
			out[i].Copies = t.Partitions.NumReplicas()
			confirmed = append(confirmed, name)
		}
	}
	if len(confirmed) == 0 {
		return out, nil
	}
	configs, err := admin.DescribeTopicConfigs(ctx, confirmed...)
	if err != nil {
		return nil, explain("describe topics", err)
	}
	for i := range out {
		if c, err := configs.On(out[i].Name, nil); err == nil && c.Err == nil {
			p.settings(&out[i], c.Configs)
		}
	}
	return out, nil
}

// settings reads the settings of a topic that matter to us. A client that may not read them gets
// none.
func (p *Publisher) settings(c *broker.Channel, list []kadm.Config) {
	for _, s := range list {
		text := s.MaybeValue()
		n, err := strconv.ParseInt(text, 10, 64)
		number := err == nil
		switch {
		case s.Key == "cleanup.policy":
			c.Compacted = strings.Contains(text, "compact")
		case s.Key == "max.message.bytes" && number:
			c.MaxBytes = int(min(n, math.MaxInt32))
			p.mu.Lock()
			p.limits[c.Name] = int32(c.MaxBytes)
			p.mu.Unlock()
		case s.Key == "retention.ms" && number:
			c.Retention = -1
			if n >= 0 {
				c.Retention = time.Duration(min(n, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
			}
		case s.Key == "min.insync.replicas" && number:
			c.Needed = int(n)
		}
	}
}

// Server implements [broker.Located].
func (p *Publisher) Server(ctx context.Context) (string, error) { return clusterOf(ctx, p.client) }
