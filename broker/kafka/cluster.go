package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/nixie-go/nixie"
)

// clusterOf asks a cluster for its ID. It returns "" if the cluster has none that an office can
// keep.
func clusterOf(ctx context.Context, client *kgo.Client) (string, error) {
	m, err := kadm.NewClient(client).BrokerMetadata(ctx)
	if err != nil {
		return "", explain("ID of the cluster", err)
	}
	if nixie.CheckName("cluster", m.Cluster) != nil {
		return "", nil
	}
	return m.Cluster, nil
}

// Server implements [broker.Located].
func (p *Publisher) Server(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, deliveryLimit)
	defer cancel()
	return clusterOf(ctx, p.client)
}

// learnCluster asks for the ID of the cluster until it is known. Records that are handed out before
// do not have it.
func (d *Driver) learnCluster(ctx context.Context, client *kgo.Client) {
	d.mu.Lock()
	known := d.cluster != ""
	d.mu.Unlock()
	if known {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaveLimit)
	defer cancel()
	id, err := clusterOf(ctx, client)
	if err != nil {
		return // the next assignment asks again
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cluster = id
}
