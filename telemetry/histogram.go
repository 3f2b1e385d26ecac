package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Upper bounds of buckets. Those of handlers are the ones that OpenTelemetry advises for
// messaging.
var (
	handlerBounds = []int64{
		int64(5 * time.Millisecond), int64(10 * time.Millisecond), int64(25 * time.Millisecond), int64(50 * time.Millisecond),
		int64(75 * time.Millisecond), int64(100 * time.Millisecond), int64(250 * time.Millisecond), int64(500 * time.Millisecond),
		int64(750 * time.Millisecond), int64(time.Second), int64(2500 * time.Millisecond), int64(5 * time.Second),
		int64(7500 * time.Millisecond), int64(10 * time.Second),
	}
	attemptBounds = []int64{1, 2, 3, 4, 5, 7, 10, 15, 20, 50}
)

// maxBounds is the most bounds that a histogram has.
const maxBounds = 14

// tally counts values of a slice by bucket, before a lock is taken.
type tally struct {
	counts [maxBounds + 1]uint64 // not cumulative; the last bucket in use has no bound
	n      uint64
	sum    int64
}

func (t *tally) add(bounds []int64, v int64) {
	i := 0
	for i < len(bounds) && v > bounds[i] {
		i++
	}
	t.counts[i]++
	t.n++
	t.sum += v
}

func one(bounds []int64, v int64) *tally {
	t := &tally{}
	t.add(bounds, v)
	return t
}

// distribution is one series of a histogram. It takes the values of a slice at once: the histograms
// of the client library take them one by one, for several atomic operations each.
type distribution struct {
	bounds []int64
	labels []string

	mu    sync.Mutex
	total tally
	sum   float64
}

func (d *distribution) take(t *tally) {
	if t.n == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, n := range t.counts {
		d.total.counts[i] += n
	}
	d.total.n += t.n
	d.sum += float64(t.sum)
}

// distributions is a histogram with labels. It implements [prometheus.Collector].
type distributions struct {
	desc   *prometheus.Desc
	bounds []int64
	unit   float64

	mu  sync.Mutex
	all []*distribution
}

func newDistributions(name string, bounds []int64, unit float64) *distributions {
	return &distributions{desc: desc(name), bounds: bounds, unit: unit}
}

// desc describes a metric to the client library.
func desc(name string) *prometheus.Desc {
	m := named(name)
	return prometheus.NewDesc(prefix+m.name, m.help, m.labels, nil)
}

// of adds a series. The caller asks once for the same labels.
func (h *distributions) of(labels ...string) *distribution {
	d := &distribution{bounds: h.bounds, labels: labels}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, d)
	return d
}

// Describe implements [prometheus.Collector].
func (h *distributions) Describe(to chan<- *prometheus.Desc) { to <- h.desc }

// Collect implements [prometheus.Collector]. It leaves out series without a value.
func (h *distributions) Collect(to chan<- prometheus.Metric) {
	h.mu.Lock()
	all := h.all[:len(h.all):len(h.all)]
	h.mu.Unlock()
	for _, d := range all {
		if m := d.metric(h); m != nil {
			to <- m
		}
	}
}

func (d *distribution) metric(h *distributions) prometheus.Metric {
	d.mu.Lock()
	total, sum := d.total, d.sum
	d.mu.Unlock()
	if total.n == 0 {
		return nil
	}
	buckets, below := make(map[float64]uint64, len(d.bounds)), uint64(0)
	for i, bound := range d.bounds {
		below += total.counts[i]
		buckets[float64(bound)/h.unit] = below
	}
	return prometheus.MustNewConstHistogram(h.desc, total.n, sum/h.unit, buckets, d.labels...)
}
