package testservers

import (
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// FakeKafka starts a cluster in this process that speaks Kafka, with topics of
// three partitions, and returns host and port of its broker.
func FakeKafka(t interface {
	Fatal(args ...any)
	Cleanup(f func())
}, topics ...string) string {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(FakeParts, topics...), kfake.GroupMinSessionTimeout(time.Second),
		kfake.BrokerConfigs(map[string]string{"group.initial.rebalance.delay.ms": "0"}))
	if err != nil {
		t.Fatal(err)
		return ""
	}
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs()[0]
}

// FakeParts counts the partitions of a topic of [FakeKafka].
const FakeParts = 3
