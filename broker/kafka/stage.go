package kafka

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/broker"
)

// stage describes a topic where retries wait.
type stage struct {
	broker.Stage
	source string // topic that they came from; empty: this is no stage
}

// isStage reports whether the topic is a stage.
func (s stage) isStage() bool { return s.source != "" }

// updateDue computes when the first held record may be handed out. On a stage the later ones are
// due later. A retry of another group is skipped at once.
func (d *Driver) updateDue(p *partition) {
	p.dueAt = time.Time{}
	if len(p.held) == 0 || !p.stage.isStage() || d.skips(p, p.held[0]) {
		return
	}
	due, _ := headerValue(p.held[0], broker.HeaderDue)
	p.dueAt = p.stage.Due(due, p.held[0].Timestamp, time.Now())
}

// skips reports whether this member must not hand out a record. It is either the control record of
// a transaction, or a retry of another group that shares the stage.
func (d *Driver) skips(p *partition, r *kgo.Record) bool {
	if r.Attrs.IsControl() || !p.stage.isStage() {
		return r.Attrs.IsControl()
	}
	group, said := headerValue(r, broker.HeaderGroup)
	return said && group != d.c.Group
}

// skip finishes a record that this member must not hand out, and reports whether it did. The caller
// holds mu.
func (d *Driver) skip(p *partition, r *kgo.Record) bool {
	if !d.skips(p, r) {
		return false
	}
	if p.finish(p.add(r.Offset, r.LeaderEpoch)) {
		d.requestCommit()
	}
	return true
}

// headerValue returns the value of the last header of a name.
func headerValue(r *kgo.Record, name string) (string, bool) {
	for i := len(r.Headers) - 1; i >= 0; i-- {
		if strings.EqualFold(r.Headers[i].Key, name) {
			return string(r.Headers[i].Value), true
		}
	}
	return "", false
}

// Create creates those of the topics that do not exist, and returns their names. They get as many
// partitions and replicas as the topic like, and take its largest record with our headers added. A
// group finds topics sooner if they exist before it is joined.
func Create(ctx context.Context, c Config, like string, topics ...string) ([]string, error) {
	client, err := kgo.NewClient(append(slices.Clone(c.Client), kgo.SeedBrokers(c.Seeds...),
		kgo.MetadataMinAge(findInterval/2))...) // so that find asks again
	if err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "kafka client: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	of, err := find(ctx, admin, like)
	if err != nil {
		return nil, err
	}
	answers, err := admin.CreateTopics(ctx, int32(len(of.Partitions)), int16(of.Partitions.NumReplicas()), topicSettings(ctx, admin, like),
		topics...)
	if err != nil {
		return nil, explain("create topics", err)
	}
	var made []string
	for _, name := range topics {
		switch err := answers[name].Err; {
		case err == nil:
			made = append(made, name)
		case !errors.Is(err, kerr.TopicAlreadyExists):
			return made, nixie.Errorf(createCode(err), "create topic %s: %w", name, err)
		}
	}
	for _, name := range made { // so that who checks next finds it
		if _, err := find(ctx, admin, name); err != nil {
			return made, err
		}
	}
	return made, nil
}

// createCode returns our code for the answer of a broker that did not create a topic.
func createCode(err error) nixie.Code {
	switch refused := (*kerr.Error)(nil); {
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return nixie.CodeDenied
	case errors.As(err, &refused) && !refused.Retriable:
		return nixie.CodeInvalid
	}
	return nixie.CodeOutcomeUnknown
}

// find looks a topic up several times, because a broker may learn of a new topic late.
func find(ctx context.Context, admin *kadm.Client, topic string) (kadm.TopicDetail, error) {
	again := time.NewTicker(findInterval)
	defer again.Stop()
	for range findAttempts {
		list, err := admin.ListTopics(ctx, topic)
		if err != nil {
			return kadm.TopicDetail{}, explain("list topics", err)
		}
		if found := list[topic]; found.Err == nil && len(found.Partitions) > 0 {
			return found, nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
	return kadm.TopicDetail{}, nixie.Errorf(nixie.CodeNotFound, "topic %s is not there: create it first", topic)
}

const (
	findAttempts = 30
	findInterval = 100 * time.Millisecond
)

// topicSettings returns settings for a topic that takes all records of another, with our headers
// added. If the client may not read settings, it returns none.
func topicSettings(ctx context.Context, admin *kadm.Client, like string) map[string]*string {
	all, err := admin.DescribeTopicConfigs(ctx, like)
	if err != nil {
		return nil
	}
	of, err := all.On(like, nil)
	if err != nil {
		return nil
	}
	for _, c := range of.Configs {
		if n, err := strconv.Atoi(c.MaybeValue()); err == nil && c.Key == "max.message.bytes" {
			return map[string]*string{c.Key: kadm.StringPtr(strconv.Itoa(min(n+broker.MaxAddedHeaders, math.MaxInt32)))}
		}
	}
	return nil
}
