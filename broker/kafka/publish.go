package kafka

import (
	"context"
	"errors"
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
	addHeaders func(*kgo.Record) // adds headers that consumers of the topic need

	mu     sync.Mutex
	limits map[string]int32 // largest record by topic
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
	p := &Publisher{limits: map[string]int32{}, addHeaders: func(*kgo.Record) {}}
	defaults := []kgo.Opt{kgo.RecordDeliveryTimeout(deliveryLimit), kgo.UnknownTopicRetries(topicAsked), kgo.ProducerLinger(0)}
	var err error
	if p.client, err = kgo.NewClient(append(append(defaults, client...),
		kgo.SeedBrokers(seeds...), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchMaxBytesFn(p.maxBatchBytes))...); err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "kafka client: %w", err)
	}
	return p, nil
}

// Close ends the publisher.
func (p *Publisher) Close() { p.client.Close() }

// Publish gives records to the client, and waits if too many are under way. Answers waits until all
// required replicas have each record, or ctx ends. The client keeps sending a record without an
// answer even then. The key determines the partition.
func (p *Publisher) Publish(ctx context.Context, list []broker.Publication) func() []error {
	s := outbound(list)
	now, answered := time.Now(), s.answered // shared by all records
	for i := range s.records {
		r := &s.records[i]
		r.Timestamp = now
		p.addHeaders(r)
		p.client.Produce(ctx, r, answered)
	}
	return func() []error { return s.wait(ctx) }
}

// publishCall holds the records of one call of Publish. It allocates for all of them at once.
type publishCall struct {
	records []kgo.Record
	all     chan struct{} // closed when each record has its answer

	mu        sync.Mutex
	confirmed []*kgo.Record
	refused   map[*kgo.Record]error
}

func outbound(list []broker.Publication) *publishCall {
	s := &publishCall{records: make([]kgo.Record, len(list)), all: make(chan struct{}), confirmed: make([]*kgo.Record, 0, len(list))}
	if len(list) == 0 {
		close(s.all)
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
		r.Topic, r.Key, r.Value, r.Headers = p.Channel, p.Key, p.Value, all[from:len(all):len(all)]
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
		close(s.all)
	}
}

// wait returns the outcomes of the records. Those without an answer when ctx ends are unknown.
func (s *publishCall) wait(ctx context.Context) []error {
	select {
	case <-s.all:
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
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return nixie.Errorf(nixie.CodeLimit, "topic %s takes no record so large: raise its max.message.bytes: %w", topic, err)
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
