package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/nixie-go/nixie"
)

// newMetrics returns metrics with a registry of their own and a clock that the test moves.
func newMetrics(t testing.TB) (*Metrics, *prometheus.Registry, *time.Time) {
	t.Helper()
	registry := prometheus.NewRegistry()
	m, err := Prometheus(registry)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	m.clock = func() time.Time { return now }
	return m, registry, &now
}

// series returns what a registry has, one line for each series, and a histogram as its count and
// sum.
func series(t testing.TB, registry prometheus.Gatherer) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		for _, s := range f.GetMetric() {
			var labels []string
			for _, l := range s.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			value := fmt.Sprint(s.GetCounter().GetValue() + s.GetGauge().GetValue())
			if h := s.GetHistogram(); h != nil {
				value = fmt.Sprintf("%d values, sum %g", h.GetSampleCount(), h.GetSampleSum())
			}
			out = append(out, fmt.Sprintf("%s{%s} %s", f.GetName(), strings.Join(labels, ","), value))
		}
	}
	return out
}

// hostile returns a name that differs for each i, and that Prometheus, a shell or a page may not
// understand.
func hostile(i int) string {
	forms := []string{"q%d", "q%d\xff\xfe", "\"} 1\n%d", "%d\x00", "https://%d/ü", "%d" + strings.Repeat("x", 300), "%d${IFS}", "other%d"}
	return fmt.Sprintf(forms[i%8], i)
}

// However many names events bring, labels are of closed lists, and at most 200 queues have their
// own.
func TestLabelsAreBounded(t *testing.T) {
	m, registry, _ := newMetrics(t)
	o := m.Observer().Complete()
	letters := make([]QueueNumbers, 0, 100_000)
	for i := range 100_000 {
		name := hostile(i)
		d := &nixie.Delivery{Message: nixie.Message{Queue: name, Type: name, Redrives: 1}, Abandoned: true}
		f := &nixie.Failure{Class: nixie.Class(name), Reason: nixie.Reason(name), Type: name, Text: name}
		verb := append(verbs[:], nixie.Verb(name))[i%8]
		o.Enqueued(name, 1)
		o.Received(name, []*nixie.Delivery{d})
		burial := &nixie.Burial{Cause: nixie.Cause(name)}
		o.Settled(name, []nixie.Settlement{{Delivery: d, Verb: verb, Failure: f, Took: 1, Burial: burial}}, []error{nil})
		o.Lost(d)
		o.Late(d, 1)
		o.Trouble(name, nil)
		o.Connected(name, true)
		o.Breaker(nixie.BreakerChange{Queue: name, Type: name, Reason: nixie.Reason(name), State: name})
		o.Moved([]nixie.LetterMove{{Letter: &nixie.Letter{Message: d.Message}, Event: "redrive"}, {Letter: &nixie.Letter{}, Event: name}})
		letters = append(letters, QueueNumbers{Name: name, Ready: 1, Letters: map[nixie.Status]int64{nixie.Status(name): 1}})
	}
	if err := m.Gauges(func(context.Context) (Overview, error) { return Overview{Queues: letters}, nil }); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := map[string]float64{}
	for _, f := range families {
		def := named(strings.TrimPrefix(f.GetName(), prefix))
		queues := map[string]bool{}
		for _, s := range f.GetMetric() {
			total[def.name] += s.GetCounter().GetValue() + s.GetGauge().GetValue()
			for _, l := range s.GetLabel() {
				if !slices.Contains(def.labels, l.GetName()) {
					t.Errorf("%s has the label %s", f.GetName(), l.GetName())
				}
				if l.GetName() == "queue" {
					queues[l.GetValue()] = true
				} else if def.name != "build_info" && strings.ContainsAny(l.GetValue(), "0123456789") {
					t.Errorf("%s has %s=%q", f.GetName(), l.GetName(), l.GetValue())
				}
			}
		}
		if len(queues) > maxQueues+1 {
			t.Errorf("%s has %d queues", f.GetName(), len(queues))
		}
	}
	for name, want := range map[string]float64{
		"enqueued_total": 100_000, "received_total": 100_000, "settled_total": 100_000, "failures_total": 100_000, "dead_total": 100_000,
		"crashes_total": 100_000, "lease_lost_total": 100_000, "late_total": 100_000, "trouble_total": 100_000, "queue_messages": 100_000,
		"breaker_transitions_total": 100_000, "connected": maxQueues + 1, "letters": 0,
	} {
		if total[name] != want {
			t.Errorf("%s is %g in total, want %g", name, total[name], want)
		}
	}
}

// The distribution counts like the histogram of the client library.
func TestDistributionIsAHistogram(t *testing.T) {
	m, registry, _ := newMetrics(t)
	plain := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "plain", Buckets: []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10},
	})
	registry.MustRegister(plain)
	var sts []nixie.Settlement
	const ms = time.Millisecond
	for _, took := range []time.Duration{1, ms, 5 * ms, 5*ms + 1, 800 * ms, time.Second, time.Hour} {
		sts = append(sts, nixie.Settlement{Delivery: &nixie.Delivery{}, Verb: nixie.Retry, Took: took})
		plain.Observe(took.Seconds())
	}
	m.Observer().Settled("q", sts, make([]error, len(sts)))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	both := map[string]string{}
	for _, f := range families {
		both[f.GetName()] = fmt.Sprint(f.GetMetric()[0].GetHistogram().GetBucket(), f.GetMetric()[0].GetHistogram().GetSampleCount())
	}
	if got, want := both["nixie_handler_seconds"], both["plain"]; got != want || want == "" {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// However often gauges are scraped, the store is asked once in five seconds, with a deadline.
func TestGaugesLookSeldom(t *testing.T) {
	m, registry, now := newMetrics(t)
	looks := 0
	var fails error
	at := *now
	if err := m.Gauges(func(ctx context.Context) (Overview, error) {
		looks++ // the race detector tells if two looks are under way
		if _, ok := ctx.Deadline(); !ok {
			t.Error("a look has no deadline")
		}
		return Overview{At: at, Workers: 2, Suspects: 3, Queues: []QueueNumbers{{
			Name: "q", Ready: 1, Blocked: 2, Scheduled: 3, Leased: 4, OldestReady: at.Add(-time.Minute),
			Letters: map[nixie.Status]int64{nixie.StatusOpen: 5}, OldestLetter: at.Add(-time.Hour), BlockedStreams: 6,
		}}}, fails
	}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { series(t, registry) })
	}
	all.Wait()
	*now = now.Add(lookEvery - 1)
	got := strings.Join(series(t, registry), "\n")
	if looks != 1 {
		t.Errorf("%d looks", looks)
	}
	for _, want := range []string{
		`nixie_queue_messages{queue="q",state="ready"} 1`, `nixie_queue_messages{queue="q",state="blocked"} 2`,
		`nixie_queue_messages{queue="q",state="scheduled"} 3`, `nixie_queue_messages{queue="q",state="leased"} 4`,
		`nixie_queue_oldest_ready_seconds{queue="q"} 60`, `nixie_letters{queue="q",status="open"} 5`,
		`nixie_letters{queue="q",status="review"} 0`,
		`nixie_letters_oldest_seconds{queue="q"} 3600`, `nixie_streams_blocked{queue="q"} 6`,
		`nixie_poison_suspects{} 3`, `nixie_workers{} 2`, `nixie_store_up{} 1`,
	} {
		if !strings.Contains(got+"\n", want+"\n") {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
	*now, fails = now.Add(1), errors.New("no store")
	got = strings.Join(series(t, registry), "\n")
	if looks != 2 || !strings.Contains(got, "nixie_store_up{} 0") || strings.Contains(got, "nixie_workers") {
		t.Errorf("%d looks, without a store\n%s", looks, got)
	}
}

// A registry that has the metrics already is an error, not a panic.
func TestPrometheusTwice(t *testing.T) {
	_, registry, _ := newMetrics(t)
	if _, err := Prometheus(registry); err == nil {
		t.Error("no error")
	}
}

func BenchmarkSettled(b *testing.B) {
	m, _, _ := newMetrics(b)
	o := m.Observer()
	const n = 1000
	sts, errs := make([]nixie.Settlement, n), make([]error, n)
	for _, kind := range []string{"complete", "retry"} {
		for i := range sts {
			d := &nixie.Delivery{Message: nixie.Message{Queue: "billing", Attempts: 1}}
			sts[i] = nixie.Settlement{Delivery: d, Verb: nixie.Verb(kind), Took: time.Duration(i) * time.Microsecond}
			if kind == "retry" {
				sts[i].Failure = &nixie.Failure{Class: nixie.ClassTransient, Reason: nixie.ReasonTimeout}
			}
		}
		b.Run(kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				o.Settled("billing", sts, errs)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/message")
		})
	}
}

// What the queues beyond the limit have is added up, and the oldest of them is that of all.
func TestQueuesBeyondTheLimitAreOne(t *testing.T) {
	m, registry, now := newMetrics(t)
	list := manyQueues(*now)
	if err := m.Gauges(func(context.Context) (Overview, error) { return Overview{At: *now, Queues: list}, nil }); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(series(t, registry), "\n") + "\n"
	for _, want := range []string{
		`nixie_queue_messages{queue="other",state="ready"} 800`, `nixie_letters{queue="other",status="open"} 1600`,
		`nixie_queue_oldest_ready_seconds{queue="other"} 1000`, `nixie_letters_oldest_seconds{queue="other"} 2000`,
		`nixie_streams_blocked{queue="other"} 2400`, `nixie_queue_messages{queue="q199",state="ready"} 1`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
}

// manyQueues has 1,000 queues; each is a second older than the one before.
func manyQueues(now time.Time) (list []QueueNumbers) {
	for i := range 1000 {
		age := time.Duration(i+1) * time.Second
		list = append(list, QueueNumbers{
			Name: fmt.Sprintf("q%03d", i), Ready: 1, Blocked: 1, Scheduled: 1, Leased: 1, OldestReady: now.Add(-age),
			Letters: map[nixie.Status]int64{nixie.StatusOpen: 2}, OldestLetter: now.Add(-2 * age), BlockedStreams: 3,
		})
	}
	return list
}

// A scrape of 1,000 queues, each of which has counters too.
func BenchmarkScrape(b *testing.B) {
	m, registry, now := newMetrics(b)
	o := m.Observer()
	list := manyQueues(*now)
	for _, q := range list {
		d := &nixie.Delivery{Message: nixie.Message{Queue: q.Name, Attempts: 1}}
		o.Settled(q.Name, []nixie.Settlement{{Delivery: d, Verb: nixie.Complete, Took: 1}}, []error{nil})
	}
	if err := m.Gauges(func(context.Context) (Overview, error) {
		return Overview{At: *now, Queues: slices.Clone(list)}, nil
	}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		*now = now.Add(lookEvery)
		families, err := registry.Gather()
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range families {
			if _, err := expfmt.MetricFamilyToText(io.Discard, f); err != nil {
				b.Fatal(err)
			}
		}
	}
}
