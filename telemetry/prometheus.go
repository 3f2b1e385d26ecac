package telemetry

import (
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nixie-go/nixie"
)

// Metrics counts events for Prometheus. It is safe for concurrent use.
type Metrics struct {
	registry prometheus.Registerer
	clock    func() time.Time

	counters           map[string]*prometheus.CounterVec // by name
	connected          *prometheus.GaugeVec
	handlers, attempts *distributions

	classes []nixie.Class
	reasons []nixie.Reason
	causes  []nixie.Cause

	queues byQueue[queue]
}

// Prometheus registers all counters and histograms.
func Prometheus(registry prometheus.Registerer) (*Metrics, error) {
	connected := named("connected")
	m := &Metrics{
		registry: registry, clock: time.Now,
		counters:  map[string]*prometheus.CounterVec{},
		connected: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + connected.name, Help: connected.help}, connected.labels),
		handlers:  newDistributions("handler_seconds", handlerBounds, float64(time.Second)),
		attempts:  newDistributions("attempts_to_end", attemptBounds, 1),
		classes:   nixie.Classes(), reasons: nixie.Reasons(), causes: nixie.Causes(),
	}
	m.queues.make = m.newQueue
	errs := []error{registry.Register(m.connected), registry.Register(m.handlers), registry.Register(m.attempts),
		registry.Register(buildInfo())}
	for _, d := range metrics {
		if d.kind == counter {
			c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + d.name, Help: d.help}, d.labels)
			m.counters[d.name] = c
			errs = append(errs, registry.Register(c))
		}
	}
	m.counters["purged_total"].WithLabelValues()
	return m, errors.Join(errs...)
}

// Observer returns the observer that counts.
func (m *Metrics) Observer() *nixie.Observer {
	return &nixie.Observer{
		Enqueued: func(queue string, n int) { m.of(queue).enqueued.Add(float64(n)) },
		Received: m.received,
		Extended: m.extended,
		Settled:  m.settled,
		Lost:     func(d *nixie.Delivery) { m.of(d.Queue).leaseLost.Inc() },
		Late:     func(d *nixie.Delivery, _ time.Duration) { m.of(d.Queue).late.Inc() },
		Moved:    m.moved,
		Pruned:   func(rows int64) { m.counters["purged_total"].WithLabelValues().Add(float64(rows)) },
		Trouble:  func(queue string, _ error) { m.of(queue).trouble.Inc() },
		Connected: func(queue string, up bool) {
			m.connected.WithLabelValues(m.of(queue).label).Set(number(up))
		},
		Breaker: func(c nixie.BreakerChange) {
			m.counters["breaker_transitions_total"].WithLabelValues(m.of(c.Queue).label, listed(breakerStates, c.State)).Inc()
		},
	}
}

// of returns the counters of a queue.
func (m *Metrics) of(name string) *queue { return m.queues.of(name) }

// listed returns v if it is in a closed list, and else other.
func listed[T ~string](list []T, v T) string {
	if slices.Contains(list, v) {
		return string(v)
	}
	return other
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (m *Metrics) received(source string, ds []*nixie.Delivery) {
	eachQueue(source, len(ds), func(i int) *nixie.Delivery { return ds[i] }, func(name string, from, to int) {
		crashes := 0
		for _, d := range ds[from:to] {
			if d.Abandoned {
				crashes++
			}
		}
		q := m.of(name)
		q.received.Add(float64(to - from))
		q.crashes.Add(float64(crashes))
	})
}

func (m *Metrics) extended(source string, ds []*nixie.Delivery, errs []error) {
	eachQueue(source, len(ds), func(i int) *nixie.Delivery { return ds[i] }, func(name string, from, to int) {
		renewed := 0
		for _, err := range errs[from:to] {
			if err == nil {
				renewed++
			}
		}
		m.of(name).extended.Add(float64(renewed))
	})
}

func (m *Metrics) settled(source string, sts []nixie.Settlement, errs []error) {
	eachQueue(source, len(sts), func(i int) *nixie.Delivery { return sts[i].Delivery }, func(name string, from, to int) {
		m.settle(m.of(name), sts[from:to], errs[from:to])
	})
}

// moved counts redrives. Of a letter that was not found the queue is not known.
func (m *Metrics) moved(moves []nixie.LetterMove) {
	for i := range moves {
		outcome := ""
		switch move := &moves[i]; {
		case move.Event != "redrive" && move.Event != "confirm":
			continue
		case move.Err != nil:
			outcome = "refused"
		case move.Event == "confirm":
			outcome = "sent"
		default:
			outcome = "queued"
		}
		m.of(moves[i].Letter.Message.Queue).redriven[outcome].Inc()
	}
}
