package redis

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/nixie-go/nixie/broker/brokertest"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// A mailbox has its keys in one slot, so it works on a cluster as on a single server. The cluster
// has one node, which refuses keys of several slots as any other does.
func TestSuiteOnACluster(t *testing.T) {
	t.Parallel()
	at := Address{Servers: []string{testservers.OwnRedis(t, "--cluster-enabled", "yes").Addr}, Cluster: true}
	node := redis.NewClient(&redis.Options{Addr: at.Servers[0]})
	defer node.Close() //nolint:errcheck // nothing is written
	const slots = 16384
	if err := node.ClusterAddSlotsRange(t.Context(), 0, slots-1).Err(); err != nil {
		t.Fatal(err)
	}
	for node.Set(t.Context(), "key", "", 0).Err() != nil && t.Context().Err() == nil { // until it is whole
		continue
	}
	t.Run("suite", func(t *testing.T) {
		brokertest.Run(t, func(t testing.TB) brokertest.Fixture { return newFixture(t, at) })
	})
}
