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

// Publisher adds records to topics, and tells of topics. Make one with [Connect].
type Publisher struct {
	client *kgo.Client
	mark   func(*kgo.Record) // adds what a record has to have for whoever receives it

	mu     sync.Mutex
	limits map[string]int32 // largest record by topic
}

var _ broker.Publisher = (*Publisher)(nil)

// Connect makes a publisher for a cluster. It does not wait for a broker to answer.
// Close ends it.
func Connect(at Address) (*Publisher, error) {
	client, err := at.options()
	if err != nil {
		return nil, err
	}
	return newPublisher(at.Seeds, client)
}

func newPublisher(seeds []string, client []kgo.Opt) (*Publisher, error) {
	p := &Publisher{limits: map[string]int32{}, mark: func(*kgo.Record) {}}
	usual := []kgo.Opt{kgo.RecordDeliveryTimeout(deliveryLimit), kgo.UnknownTopicRetries(topicAsked), kgo.ProducerLinger(0)}
	var err error
	if p.client, err = kgo.NewClient(append(append(usual, client...),
		kgo.SeedBrokers(seeds...), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchMaxBytesFn(p.largest))...); err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "kafka client: %w", err)
	}
	return p, nil
}

// Close ends the publisher.
func (p *Publisher) Close() { p.client.Close() }

// Publish gives records to the client, and waits where too many are on their way
// already. What it returns waits until all copies that count have each record, or ctx
// has ended: the client gives up no record that it has sent, as long as nobody says what
// became of it. The partition follows from the key.
func (p *Publisher) Publish(ctx context.Context, list []broker.Publication) func() []error {
	s := outbound(list)
	now, answered := time.Now(), s.answered // once for all
	for i := range s.records {
		r := &s.records[i]
		r.Timestamp = now
		p.mark(r)
		p.client.Produce(ctx, r, answered)
	}
	return func() []error { return s.wait(ctx) }
}

// shipment is records that were published together. What each of them needs is made
// for all at once.
type shipment struct {
	records []kgo.Record
	all     chan struct{} // closed when each has its answer

	mu        sync.Mutex
	confirmed []*kgo.Record
	refused   map[*kgo.Record]error
}

func outbound(list []broker.Publication) *shipment {
	s := &shipment{records: make([]kgo.Record, len(list)), all: make(chan struct{}), confirmed: make([]*kgo.Record, 0, len(list))}
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

// answered is told what became of a record, also when nobody waits any longer.
func (s *shipment) answered(r *kgo.Record, err error) {
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

// wait says what became of the records. Of those that have no answer when ctx ends
// nobody knows.
func (s *shipment) wait(ctx context.Context) []error {
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
	there := make(map[*kgo.Record]bool, len(s.confirmed))
	for _, r := range s.confirmed {
		there[r] = true
	}
	for i := range s.records {
		switch r := &s.records[i]; {
		case there[r]:
		case s.refused[r] != nil:
			errs[i] = refusal(r.Topic, s.refused[r])
		default:
			errs[i] = nixie.Errorf(nixie.CodeOutcomeUnknown, "publish to topic %s: no answer came, and it may be there: %w", r.Topic, context.Cause(ctx))
		}
	}
	return errs
}

// refusal says by our codes what became of a record.
func refusal(topic string, err error) error {
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

// largest is how much a batch for a topic may have.
func (p *Publisher) largest(topic string) int32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if limit, ok := p.limits[topic]; ok {
		return limit
	}
	return usualBytes
}

// Describe asks for topics and their settings.
func (p *Publisher) Describe(ctx context.Context, names []string) ([]broker.Channel, error) {
	out := make([]broker.Channel, len(names))
	admin := kadm.NewClient(p.client)
	topics, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return nil, explain("list topics", err)
	}
	var there []string
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
			there = append(there, name)
		}
	}
	if len(there) == 0 {
		return out, nil
	}
	configs, err := admin.DescribeTopicConfigs(ctx, there...)
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
