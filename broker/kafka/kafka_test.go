package kafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie/broker"
	"github.com/nixie-go/nixie/broker/brokertest"
	"github.com/nixie-go/nixie/internal/proof/child"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// fixture is a group and two topics of a cluster.
type fixture struct {
	seeds    []string
	cluster  *kfake.Cluster // nil: a real cluster
	client   *kgo.Client
	ends     map[broker.Driver]context.CancelFunc
	source   string
	letters  string
	stages   []broker.Stage              // of the members that the test starts
	parallel int                         // of their workers; 0: 4
	drain    time.Duration               // of their workers; 0: none
	around   func(*Driver) broker.Driver // wraps the driver for their sources; may be nil
}

// server is the real broker of this package's tests.
var server testservers.Kafka

func TestMain(m *testing.M) {
	if args, is := child.Main(); is {
		os.Exit(child.Code(asChild(args)))
	}
	os.Exit(testservers.WithKafka(m.Run, &server))
}

// fixtures numbers the fixtures, so that their names differ.
var fixtures atomic.Int64

// testTimeout bounds each wait of a test.
const testTimeout = time.Minute

// limited returns a context that ends after testTimeout.
func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// waitUntil waits until a condition holds, or testTimeout is over.
func waitUntil(t testing.TB, holds func() bool) {
	ctx := limited(t)
	for !holds() && ctx.Err() == nil {
		sleep(ctx, time.Millisecond)
	}
}

// fake makes a cluster in this process.
func fake(t testing.TB) *fixture {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(time.Second),
		kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	b := newFixture(t, cluster.ListenAddrs())
	b.cluster = cluster
	return b
}

// actual uses a real broker.
func actual(t testing.TB) *fixture {
	t.Helper()
	server.Need(t)
	return newFixture(t, []string{server.Seed})
}

// onBoth runs a test on a cluster in this process and on a real one.
func onBoth(t *testing.T, test func(t *testing.T, make func(testing.TB) *fixture)) {
	t.Run("fake", func(t *testing.T) { test(t, fake) })
	t.Run("real", func(t *testing.T) {
		server.Need(t)
		test(t, actual)
	})
}

func newFixture(t testing.TB, seeds []string) *fixture {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ProducerLinger(0), kgo.ProducerBatchMaxBytes(16<<20),
		kgo.MetadataMinAge(findInterval/2)) // so that find asks again
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	name := fmt.Sprintf("t%d-%d", os.Getpid(), fixtures.Add(1))
	b := &fixture{seeds: seeds, client: client, ends: map[broker.Driver]context.CancelFunc{}, source: name, letters: name + ".dlq"}
	b.create(t, 3, nil, b.source, b.letters)
	return b
}

func (b *fixture) create(t testing.TB, parts int32, configs map[string]*string, topics ...string) {
	t.Helper()
	ctx := limited(t)
	made, err := kadm.NewClient(b.client).CreateTopics(ctx, parts, 1, configs, topics...)
	for errors.Is(made.Error(), kerr.InvalidReplicationFactor) && ctx.Err() == nil { // the only broker was fenced: the machine is busy
		made, err = kadm.NewClient(b.client).CreateTopics(ctx, parts, 1, configs, topics...)
	}
	if err != nil || made.Error() != nil {
		t.Fatal(err, made.Error())
	}
	for _, name := range topics { // a broker learns of a new topic a moment later
		if _, err := find(ctx, kadm.NewClient(b.client), name); err != nil {
			t.Fatal(err)
		}
	}
}

// Source implements [brokertest.Fixture].
func (b *fixture) Source() string { return b.source }

// open joins the group of a test. The driver works until end is called.
func (b *fixture) open(t testing.TB, change func(*Config)) (d *Driver, end context.CancelFunc) {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	c := Config{
		Seeds: b.seeds, Group: b.source, Topics: []string{b.source}, CommitEvery: 10 * time.Millisecond, Grace: 100 * time.Millisecond,
		ctx: ctx,
		Client: []kgo.Opt{kgo.HeartbeatInterval(50 * time.Millisecond), kgo.SessionTimeout(10 * time.Second),
			kgo.RebalanceTimeout(5 * time.Second), kgo.FetchMaxWait(50 * time.Millisecond), kgo.RecordDeliveryTimeout(5 * time.Second)},
	}
	if change != nil {
		change(&c)
	}
	d, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return d, end
}

// Join implements [brokertest.Fixture].
func (b *fixture) Join(t testing.TB, stages ...broker.Stage) broker.Driver {
	t.Helper()
	for _, s := range stages {
		if _, err := Create(limited(t), Config{Seeds: b.seeds}, b.source, s.Of(b.source)); err != nil {
			t.Fatal(err)
		}
	}
	d, end := b.open(t, func(c *Config) { c.Stages = stages })
	b.ends[d] = end
	return d
}

// Crash implements [brokertest.Fixture]. It closes the connections of a member and makes the group
// notice it at once.
func (b *fixture) Crash(t testing.TB, d broker.Driver) {
	t.Helper()
	k := d.(*Driver)
	b.ends[d]()
	k.stopLoop()
	k.loop.Wait()
	k.mu.Lock()
	group := k.group
	k.mu.Unlock()
	group.Close()
	k.client.Close()
	b.kick(t, k)
}

// Produce implements [brokertest.Fixture].
func (b *fixture) Produce(t testing.TB, records ...broker.Publication) {
	t.Helper()
	for i := range records {
		if err := b.client.ProduceSync(limited(t), &outbound(records[i : i+1]).records[0]).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// Records implements [brokertest.Fixture].
func (b *fixture) Records(t testing.TB, channel string) []broker.Record {
	t.Helper()
	ctx := limited(t)
	ends, err := kadm.NewClient(b.client).ListEndOffsets(ctx, channel)
	if err != nil {
		t.Fatal(err)
	}
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	if left == 0 {
		return nil
	}
	reader, err := kgo.NewClient(kgo.SeedBrokers(b.seeds...), kgo.ConsumeTopics(channel), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var all []broker.Record
	for int64(len(all)) < left {
		fetches := reader.PollFetches(ctx) // errors of connections are temporary
		if ctx.Err() != nil {
			t.Fatal(fetches.Err())
		}
		fetches.EachRecord(func(r *kgo.Record) {
			out := broker.Record{Receipt: &receipt{}}
			newPartition(topicPartition{r.Topic, r.Partition}, 1).record(r, &out, new(headerPool))
			all = append(all, out)
		})
	}
	return all
}

func TestSuite(t *testing.T) {
	onBoth(t, func(t *testing.T, make func(testing.TB) *fixture) {
		brokertest.Run(t, func(t testing.TB) brokertest.Fixture { return make(t) })
	})
}
