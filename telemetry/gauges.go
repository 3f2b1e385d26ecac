package telemetry

import (
	"context"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nixie-go/nixie"
)

// A look at the store is fresh for lookEvery, and may take lookTimeout.
const (
	lookEvery   = 5 * time.Second
	lookTimeout = 4 * time.Second
)

// What [Metrics.Gauges] shows. An office makes it, see office.Office.Overview.
type (
	Overview     = nixie.Overview
	QueueNumbers = nixie.QueueNumbers
)

// Gauges registers gauges of what look returns. However often they are scraped, it calls look at
// most once in 5 s, with a deadline. While look fails store_up is 0, and the other gauges are left
// out.
func (m *Metrics) Gauges(look func(context.Context) (Overview, error)) error {
	return m.registry.Register(&gauges{look: look, clock: m.clock, labels: map[string]bool{}, descs: map[string]*prometheus.Desc{
		"queue_messages": desc("queue_messages"), "queue_oldest_ready_seconds": desc("queue_oldest_ready_seconds"),
		"letters": desc("letters"), "letters_oldest_seconds": desc("letters_oldest_seconds"), "streams_blocked": desc("streams_blocked"),
		"poison_suspects": desc("poison_suspects"), "workers": desc("workers"), "store_up": desc("store_up"),
	}})
}

// gauges keeps the last look for scrapes that come soon after it.
type gauges struct {
	look  func(context.Context) (Overview, error)
	clock func() time.Time
	descs map[string]*prometheus.Desc // by name

	mu     sync.Mutex
	lookAt time.Time // when the last look began
	last   Overview
	err    error
	labels map[string]bool // queues that have a label of their own
}

// Describe implements [prometheus.Collector].
func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range g.descs {
		to <- d
	}
}

// Collect implements [prometheus.Collector]. Scrapes at the same time wait for one look.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	g.mu.Lock()
	defer g.mu.Unlock()
	err := g.refresh()
	set := func(name string, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(g.descs[name], prometheus.GaugeValue, v, labels...)
	}
	set("store_up", number(err == nil))
	if err != nil {
		return
	}
	set("workers", float64(g.last.Workers))
	set("poison_suspects", float64(g.last.Suspects))
	for i := range g.last.Queues {
		q := &g.last.Queues[i]
		set("queue_messages", float64(q.Ready), q.Name, "ready")
		set("queue_messages", float64(q.Blocked), q.Name, "blocked")
		set("queue_messages", float64(q.Scheduled), q.Name, "scheduled")
		set("queue_messages", float64(q.Leased), q.Name, "leased")
		set("queue_oldest_ready_seconds", age(g.last.At, q.OldestReady), q.Name)
		for _, status := range nixie.Statuses() {
			set("letters", float64(q.Letters[status]), q.Name, string(status))
		}
		set("letters_oldest_seconds", age(g.last.At, q.OldestLetter), q.Name)
		set("streams_blocked", float64(q.BlockedStreams), q.Name)
	}
}

// refresh looks again, unless the last look is fresh. The caller holds the mutex.
func (g *gauges) refresh() error {
	if now := g.clock(); g.lookAt.IsZero() || now.Sub(g.lookAt) >= lookEvery {
		ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
		defer cancel()
		g.lookAt = now
		g.last, g.err = g.look(ctx)
		g.last.Queues = g.bounded(g.last.Queues)
	}
	return g.err
}

// age returns the seconds since a moment, and 0 for none.
func age(now, since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(now.Sub(since).Seconds(), 0)
}

// bounded returns the queues by label, at most maxQueues and one for all others.
func (g *gauges) bounded(queues []QueueNumbers) []QueueNumbers {
	by := make(map[string]*QueueNumbers, len(queues))
	for i := range queues {
		q := &queues[i]
		name := label(q.Name)
		if !g.labels[name] {
			if len(g.labels) >= maxQueues {
				name = other
			} else {
				g.labels[name] = true
			}
		}
		if first := by[name]; first != nil {
			add(first, q)
			continue
		}
		q.Name, q.Letters = name, maps.Clone(q.Letters)
		by[name] = q
	}
	out := make([]QueueNumbers, 0, len(by))
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, *by[name])
	}
	return out
}

// add adds the numbers of another queue.
func add(q, more *QueueNumbers) {
	q.Ready += more.Ready
	q.Blocked += more.Blocked
	q.Scheduled += more.Scheduled
	q.Leased += more.Leased
	q.BlockedStreams += more.BlockedStreams
	q.OldestReady = earlier(q.OldestReady, more.OldestReady)
	q.OldestLetter = earlier(q.OldestLetter, more.OldestLetter)
	if q.Letters == nil {
		q.Letters = map[nixie.Status]int64{}
	}
	for status, n := range more.Letters {
		q.Letters[status] += n
	}
}

// earlier returns the earlier of two moments that are not zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// buildInfo makes the gauge that tells the version.
func buildInfo() prometheus.Collector {
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	m := named("build_info")
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + m.name, Help: m.help}, m.labels)
	g.WithLabelValues(version, runtime.Version()).Set(1)
	return g
}
