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

// stage is what a topic is on which retries wait.
type stage struct {
	broker.Stage
	source string // the topic that they came from
}

// waits reports whether it is one.
func (s stage) waits() bool { return s.source != "" }

// front finds out when the first record that is held is due. On a stage the ones
// behind it are due later; what is another group's is passed over at once.
func (d *Driver) front(p *partition) {
	p.due = time.Time{}
	if len(p.held) == 0 || !p.stage.waits() || d.nobodys(p, p.held[0]) {
		return
	}
	due, _ := last(p.held[0], broker.HeaderDue)
	p.due = p.stage.Due(due, p.held[0].Timestamp, time.Now())
}

// nobodys reports whether no one is to be handed a record: the mark of a transaction, or the
// retry of another group that reads the same stage; here it has succeeded, or waits by itself.
func (d *Driver) nobodys(p *partition, r *kgo.Record) bool {
	if r.Attrs.IsControl() || !p.stage.waits() {
		return r.Attrs.IsControl()
	}
	group, said := last(r, broker.HeaderGroup)
	return said && group != d.c.Group
}

// pass finishes a record that no one is to be handed. The mutex is held.
func (d *Driver) pass(p *partition, r *kgo.Record) bool {
	if !d.nobodys(p, r) {
		return false
	}
	if p.finish(p.add(r.Offset, r.LeaderEpoch)) {
		d.touch()
	}
	return true
}

// last is the value of the last header of a name.
func last(r *kgo.Record, name string) (string, bool) {
	for i := len(r.Headers) - 1; i >= 0; i-- {
		if strings.EqualFold(r.Headers[i].Key, name) {
			return string(r.Headers[i].Value), true
		}
	}
	return "", false
}

// Create makes those of topics that are not there, with as many partitions and
// copies as the topic like has and room for our headers beside its largest record,
// and returns their names. A group finds topics soon that are there before it is
// joined.
func Create(ctx context.Context, c Config, like string, topics ...string) ([]string, error) {
	client, err := kgo.NewClient(append(slices.Clone(c.Client), kgo.SeedBrokers(c.Seeds...), kgo.MetadataMinAge(lookAgain/2))...) // what find looks for it has to ask for
	if err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "kafka client: %w", err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	of, err := find(ctx, admin, like)
	if err != nil {
		return nil, err
	}
	answers, err := admin.CreateTopics(ctx, int32(len(of.Partitions)), int16(of.Partitions.NumReplicas()), roomier(ctx, admin, like), topics...)
	if err != nil {
		return nil, explain("create topics", err)
	}
	var made []string
	for _, name := range topics {
		switch err := answers[name].Err; {
		case err == nil:
			made = append(made, name)
		case !errors.Is(err, kerr.TopicAlreadyExists):
			return made, nixie.Errorf(nixie.CodeOf(refusal(name, err)), "create topic %s: %w", name, err)
		}
	}
	return made, nil
}

// find looks a topic up, a few times: brokers hear a little later of a new one.
func find(ctx context.Context, admin *kadm.Client, topic string) (kadm.TopicDetail, error) {
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for range looks {
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
	looks     = 30
	lookAgain = 100 * time.Millisecond
)

// roomier are settings of a topic that takes what another does, and our headers. Who
// may not read them gets the usual ones.
func roomier(ctx context.Context, admin *kadm.Client, like string) map[string]*string {
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
