package kafka

import (
	"context"
	"errors"
	"sync"

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

// Publish waits until all copies that count have each record. The partition follows
// from the key.
func (p *Publisher) Publish(ctx context.Context, list []broker.Publication) []error {
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i := range list {
		all.Add(1)
		r := outbound(&list[i])
		p.mark(r)
		p.client.Produce(ctx, r, func(_ *kgo.Record, err error) {
			errs[i] = refusal(list[i].Channel, err)
			all.Done()
		})
	}
	all.Wait()
	return errs
}

func outbound(p *broker.Publication) *kgo.Record {
	r := &kgo.Record{Topic: p.Channel, Key: p.Key, Value: p.Value, Headers: make([]kgo.RecordHeader, len(p.Headers))}
	for i, h := range p.Headers {
		r.Headers[i] = kgo.RecordHeader{Key: h.Name, Value: h.Value}
	}
	return r
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

// Survey asks for topics and their settings.
func (p *Publisher) Survey(ctx context.Context, names []string) ([]broker.Channel, error) {
	out := make([]broker.Channel, len(names))
	admin := kadm.NewClient(p.client)
	topics, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return nil, nixie.Errorf(nixie.CodeUnavailable, "list topics: %w", err)
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
		return nil, nixie.Errorf(nixie.CodeUnavailable, "describe topics: %w", err)
	}
	for i := range out {
		if c, err := configs.On(out[i].Name, nil); err == nil && c.Err == nil {
			p.settings(&out[i], c.Configs)
		}
	}
	return out, nil
}
