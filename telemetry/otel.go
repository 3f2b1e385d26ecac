package telemetry

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/nixie-go/nixie"
)

// scope names the instrumentation.
const scope = "github.com/nixie-go/nixie/telemetry"

// OTel makes spans and metrics. It is safe for concurrent use.
type OTel struct {
	tracer     trace.Tracer
	meter      metric.Meter
	clock      func() time.Time
	counters   map[string]metric.Int64Counter
	histograms map[string]metric.Float64Histogram
	duration   metric.Float64Histogram // of handlers
	queues     byQueue[traced]
	mixed      operation // sends to several queues in one call
	failed     recent[nixie.ID, attempt]
	replayed   recent[death, struct{}] // deaths whose redrive is counted
}

// OpenTelemetry makes instruments of the providers. A provider that makes nothing is in the
// packages noop of OpenTelemetry.
func OpenTelemetry(traces trace.TracerProvider, meters metric.MeterProvider) (*OTel, error) {
	t := &OTel{
		tracer:   traces.Tracer(scope, trace.WithSchemaURL(schemaURL)),
		meter:    meters.Meter(scope, metric.WithSchemaURL(schemaURL)),
		clock:    time.Now,
		counters: map[string]metric.Int64Counter{}, histograms: map[string]metric.Float64Histogram{},
		mixed: newOperation("send", sending, ""),
	}
	t.queues.make = newTraced
	var errs []error
	for _, d := range instruments {
		var err error
		switch d.kind {
		case counter:
			t.counters[d.name], err = t.meter.Int64Counter(d.name, metric.WithDescription(d.help), metric.WithUnit("{message}"))
		case histogram:
			of := scales[d.name]
			t.histograms[d.name], err = t.meter.Float64Histogram(d.name, metric.WithDescription(d.help), metric.WithUnit(of.unit),
				metric.WithExplicitBucketBoundaries(of.bounds...))
		}
		errs = append(errs, err)
	}
	t.duration = t.histograms[processDuration]
	return t, errors.Join(errs...)
}

// scales has the unit and the bounds of buckets of each histogram.
var scales = map[string]struct {
	unit   string
	bounds []float64
}{
	processDuration:              {"s", []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}},
	"dlq.processing.duration_ms": {"ms", []float64{5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10_000}},
	"dlq.message.age_seconds":    {"s", []float64{60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86_400, 3 * 86_400, 7 * 86_400, 30 * 86_400}},
}

// Observer returns the observer that counts, and that makes a span for each call that received or
// settled messages. Such a span has no length: the observer hears of a call when it is over.
func (t *OTel) Observer() *nixie.Observer {
	return &nixie.Observer{
		Enqueued: func(queue string, n int) {
			t.counters[sentMessages].Add(context.Background(), int64(n), t.queues.of(queue).send.add...)
		},
		Received: t.received,
		Settled:  t.settled,
		Moved:    t.moved,
		Noticed:  t.noticed,
	}
}

// traced has what spans and metrics of a queue have in common, so that it is made once.
type traced struct {
	label                  string
	send, receive, process operation
	settle                 []operation // as verbs
	add                    []metric.AddOption
	record                 []metric.RecordOption
}

func newTraced(label string) *traced {
	of := metric.WithAttributeSet(attribute.NewSet(keyQueue.String(label)))
	q := &traced{
		label: label, send: newOperation("send", sending, label), receive: newOperation("receive", receiving, label),
		process: newOperation("process", processing, label),
		add:     []metric.AddOption{of}, record: []metric.RecordOption{of},
	}
	for _, verb := range verbs {
		q.settle = append(q.settle, newOperation(string(verb), settling, label))
	}
	return q
}

// operation has the name of a span and the attributes of spans and metrics. Each label of a metric
// costs time with each value, so metrics have only those that they need.
type operation struct {
	name   string
	attrs  []attribute.KeyValue // of spans
	labels []attribute.KeyValue // of metrics
	start  []trace.SpanStartOption
	add    []metric.AddOption
	record []metric.RecordOption
}

func newOperation(name string, of operationType, queue string) operation {
	o := operation{name: name, start: []trace.SpanStartOption{trace.WithSpanKind(of.kind)}}
	o.labels = []attribute.KeyValue{keySystem.String(system), keyOperation.String(name)}
	if queue != "" {
		o.name += " " + queue
		o.labels = append(o.labels, keyDestination.String(queue))
	}
	o.attrs = append(slices.Clone(o.labels), keyOperationType.String(of.name))
	set := metric.WithAttributeSet(attribute.NewSet(o.labels...))
	o.add, o.record = []metric.AddOption{set}, []metric.RecordOption{set}
	return o
}

// failedWith returns the options of a value of an operation that failed.
func (o *operation) failedWith(kind string) metric.RecordOption {
	return metric.WithAttributeSet(attribute.NewSet(append(slices.Clone(o.labels), keyError.String(kind))...))
}

// count counts outcomes of one queue.
func (t *OTel) count(q *traced, sts []nixie.Settlement, errs []error) {
	ctx, died := context.Background(), int64(0)
	if !t.duration.Enabled(ctx) {
		return // there is no meter
	}
	for i := range sts {
		st := &sts[i]
		if errs[i] != nil {
			continue
		}
		if st.Burial != nil {
			died++
		}
		switch {
		case st.Took == 0:
		case st.Failure == nil:
			t.duration.Record(ctx, st.Took.Seconds(), q.process.record...)
		default:
			t.duration.Record(ctx, st.Took.Seconds(), q.process.failedWith(listed(nixie.Reasons(), st.Failure.Reason)))
		}
		if st.Took > 0 && st.Delivery.Redrives > 0 {
			t.histograms["dlq.processing.duration_ms"].Record(ctx, float64(st.Took)/float64(time.Millisecond), q.record...)
		}
	}
	if died > 0 {
		t.counters["dlq.messages.sent"].Add(ctx, died, q.add...)
	}
}

// moved counts letters that were redriven, discarded or held.
func (t *OTel) moved(moves []nixie.LetterMove) {
	ctx := context.Background()
	for i := range moves {
		move := &moves[i]
		if move.Err != nil || move.Event != "redrive" && move.Event != "discard" && move.Event != "hold" {
			continue
		}
		m := &move.Letter.Message
		if move.Event == "redrive" && m.Generation > 0 {
			t.replayed.add(death{m.ID, m.Generation}, struct{}{})
		}
		q := t.queues.of(m.Queue)
		t.dealtWith(ctx, q, map[string]string{"redrive": nixie.ActionReplay, "discard": nixie.ActionDiscard}[move.Event])
		if died := move.Letter.DiedAt; !died.IsZero() {
			t.histograms["dlq.message.age_seconds"].Record(ctx, age(t.clock(), died), q.record...)
		}
	}
}

// dealtWith counts a letter, or the notice of one, that was dealt with.
func (t *OTel) dealtWith(ctx context.Context, q *traced, action string) {
	t.counters["dlq.messages.processed"].Add(ctx, 1, q.add...)
	switch action {
	case nixie.ActionReplay:
		t.counters["dlq.messages.replayed"].Add(ctx, 1, q.add...)
	case nixie.ActionDiscard:
		t.counters["dlq.messages.discarded"].Add(ctx, 1, q.add...)
	}
}

// noticed counts a notice that a consumer is done with. If the store told of the redrive that its
// handler made, both are one replay.
func (t *OTel) noticed(n nixie.NoticeHandled) {
	ctx, q := context.Background(), t.queues.of(n.Queue)
	t.histograms["dlq.processing.duration_ms"].Record(ctx, float64(n.Took)/float64(time.Millisecond), q.record...)
	if _, counted := t.replayed.of(death{n.Message, n.Generation}); counted && n.Action == nixie.ActionReplay {
		return
	}
	t.dealtWith(ctx, q, n.Action)
	t.histograms["dlq.message.age_seconds"].Record(ctx, max(n.Age.Seconds(), 0), q.record...)
}

// Gauges observes the depth of the dead letters of each queue. It calls look at most once in 5 s,
// with a deadline.
func (t *OTel) Gauges(look func(context.Context) (Overview, error)) error {
	g := &gauges{look: look, clock: t.clock, labels: map[string]bool{}}
	depth := instruments[slices.IndexFunc(instruments, func(d definition) bool { return d.kind == gauge })]
	_, err := t.meter.Int64ObservableGauge(depth.name, metric.WithDescription(depth.help), metric.WithUnit("{message}"),
		metric.WithInt64Callback(func(_ context.Context, to metric.Int64Observer) error {
			g.mu.Lock()
			defer g.mu.Unlock()
			if err := g.refresh(); err != nil {
				return err
			}
			for i := range g.last.Queues {
				to.Observe(g.last.Queues[i].Waiting(), metric.WithAttributes(keyQueue.String(g.last.Queues[i].Name)))
			}
			return nil
		}))
	return err
}
