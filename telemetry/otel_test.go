package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/worker"
)

// recorder has what was made by an OTel.
type recorder struct {
	*OTel
	spans   *tracetest.SpanRecorder
	traces  *sdktrace.TracerProvider
	numbers *sdkmetric.ManualReader
}

func newRecorder(t testing.TB, sampler sdktrace.Sampler) *recorder {
	t.Helper()
	r := &recorder{spans: tracetest.NewSpanRecorder(), numbers: sdkmetric.NewManualReader()}
	r.traces = sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithSpanProcessor(r.spans))
	var err error
	if r.OTel, err = OpenTelemetry(r.traces, sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.numbers))); err != nil {
		t.Fatal(err)
	}
	return r
}

// A stage is a store with a desk that is observed, and a handler in spans.
type stage struct {
	t       *testing.T
	r       *recorder
	now     time.Time
	store   store.Store
	desk    *worker.Desk
	handler nixie.Handler
	keys    map[string]string // by message ID
}

func newStage(t *testing.T, h nixie.HandlerFunc) *stage {
	s := &stage{t: t, r: newRecorder(t, sdktrace.AlwaysSample()), keys: map[string]string{}}
	s.now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return s.now }
	s.r.clock, s.handler = clock, s.r.Handler(h)
	s.store = store.Observe(memory.New(memory.Options{Clock: clock}), s.r.Observer())
	s.desk = must[*worker.Desk](t)(worker.NewDesk(worker.Config{
		Source: store.NewSource(s.store, "billing"), Clock: clock, Observer: s.r.Observer(), Logger: slog.New(slog.DiscardHandler),
	}))
	return s
}

// enqueue sends a message for each key, in one call.
func (s *stage) enqueue(headers []nixie.Header, keys ...string) {
	s.t.Helper()
	messages := make([]nixie.Message, len(keys))
	for i, key := range keys {
		messages[i] = nixie.Message{Queue: "billing", Type: "charge", Key: key, Headers: headers}
	}
	for i, receipt := range must[[]nixie.Receipt](s.t)(s.r.Enqueuer(s.store).Enqueue(s.t.Context(), messages...)) {
		s.keys[receipt.ID.String()] = keys[i]
	}
}

// handle handles what is ready, as a worker does.
func (s *stage) handle() {
	s.t.Helper()
	for _, d := range must[[]*nixie.Delivery](s.t)(s.desk.Receive(s.t.Context(), nixie.Want{Max: 10})) {
		started := s.now
		s.now = s.now.Add(20 * time.Millisecond)
		must[nixie.Settlement](s.t)(s.desk.Done(s.t.Context(), d, s.call(d), started))
	}
}

// call calls the handler, which may panic.
func (s *stage) call(d *nixie.Delivery) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = nixie.WithReason(nixie.Permanent(fmt.Errorf("panic: %v", v)), nixie.ReasonPanic)
		}
	}()
	return s.handler.Handle(s.t.Context(), d)
}

// redrive redrives all letters that wait.
func (s *stage) redrive() {
	s.t.Helper()
	letters, _, err := s.store.Letters(s.t.Context(), nixie.Filter{Statuses: nixie.Waiting()}, store.Page{})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range letters {
		r := store.Resolution{Letter: letters[i].ID, Event: store.OnRedrive, Actor: "ann", Reason: "try", Force: true}
		if errs := s.store.Resolve(s.t.Context(), []store.Resolution{r}); errs[0] != nil {
			s.t.Fatal(errs)
		}
	}
}

const producer = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// Every span and every metric of a story is in a file: a success, a retry, a death, a redrive, a
// panic.
func TestStoryInSpans(t *testing.T) {
	outcomes := map[string]error{
		"busy": errors.New("no answer"), "bad": nixie.Permanent(errors.New("no such customer")), "later": nixie.Snooze(nil, time.Minute),
	}
	var s *stage
	s = newStage(t, func(ctx context.Context, d *nixie.Delivery) error {
		_, span := s.r.traces.Tracer("user").Start(ctx, "charge card")
		defer span.End()
		if d.Key == "panics" {
			panic("secret")
		}
		return outcomes[d.Key]
	})
	if err := s.r.Gauges(func(context.Context) (Overview, error) {
		return Overview{Queues: []QueueNumbers{{Name: "billing", Letters: map[nixie.Status]int64{
			nixie.StatusOpen: 1, nixie.StatusReview: 2, nixie.StatusQuarantined: 4, nixie.StatusRedriving: 8, nixie.StatusResolved: 16,
		}}}}, nil
	}); err != nil {
		t.Fatal(err)
	}
	s.enqueue([]nixie.Header{{Name: "request-id", Value: "r-1"}, {Name: "traceparent", Value: producer}}, "foreign")
	s.enqueue(nil, "busy", "bad", "later")
	s.enqueue(nil, "panics")
	s.handle()
	clear(outcomes)
	s.now = s.now.Add(time.Hour)
	s.handle()
	outcomes["bad"] = errors.New("still no such customer")
	s.redrive()
	s.handle()
	golden(t, "story.spans", s.spans())
	golden(t, "story.instruments", s.r.values(t))
}

// spans describes all spans, a line for each.
func (s *stage) spans() []string {
	names, counts := map[trace.SpanID]string{}, map[string]int{}
	id := must[trace.SpanID](s.t)(trace.SpanIDFromHex("00f067aa0ba902b7"))
	names[id] = "the producer"
	for _, span := range s.r.spans.Started() {
		counts[span.Name()]++
		names[span.SpanContext().SpanID()] = fmt.Sprint(span.Name(), "/", counts[span.Name()])
	}
	var out []string
	for _, span := range s.r.spans.Ended() {
		line := fmt.Sprintf("%s, %s", names[span.SpanContext().SpanID()], span.SpanKind())
		if parent := span.Parent(); parent.IsValid() {
			line += ", child of " + names[parent.SpanID()]
		}
		for _, link := range span.Links() {
			line += ", link to " + names[link.SpanContext.SpanID()]
		}
		if span.Status().Code != 0 {
			line += fmt.Sprintf(", %s %q", span.Status().Code, span.Status().Description)
		}
		out = append(out, line+": "+s.text(span.Attributes()))
	}
	if len(s.r.spans.Started()) != len(out) {
		s.t.Errorf("%d spans have begun, %d have ended", len(s.r.spans.Started()), len(out))
	}
	return out
}

func (s *stage) text(attrs []attribute.KeyValue) string {
	var out []string
	for _, a := range attrs {
		value := a.Value.String()
		if a.Key == keyMessageID {
			value = s.keys[value]
		}
		out = append(out, string(a.Key)+"="+value)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// values describes the values of all instruments, a line for each.
func (r *recorder) values(t *testing.T) []string {
	t.Helper()
	var got metricdata.ResourceMetrics
	if err := r.numbers.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range got.ScopeMetrics[0].Metrics {
		add := func(set attribute.Set, value string) {
			out = append(out, fmt.Sprintf("%s (%s) %s: %s", m.Name, m.Unit, set.Encoded(attribute.DefaultEncoder()), value))
		}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, fmt.Sprint(p.Value))
			}
		case metricdata.Gauge[int64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, fmt.Sprint(p.Value))
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				add(p.Attributes, fmt.Sprintf("%d values, sum %.3f", p.Count, p.Sum))
			}
		default:
			t.Errorf("%s is a %T", m.Name, data)
		}
	}
	return out
}

// A replay that the store tells of, too, is one replay. It is known by the death that it is about.
func TestReplaysCountOnce(t *testing.T) {
	r := newRecorder(t, sdktrace.NeverSample())
	o, id := r.Observer(), nixie.ID{15: 1}
	replay := func(generation int) {
		o.Noticed(nixie.NoticeHandled{Queue: "billing", Message: id, Generation: generation, Action: nixie.ActionReplay})
	}
	moved := func(event string, generation int, err error) {
		l := &nixie.Letter{Message: nixie.Message{ID: id, Queue: "billing", Generation: generation}}
		o.Moved([]nixie.LetterMove{{Letter: l, Event: event, Err: err}})
	}
	for _, step := range []struct {
		do                  func()
		processed, replayed int
	}{
		{func() { moved("redrive", 1, nil); replay(1) }, 1, 1},
		{func() { replay(2) }, 2, 2}, // of a store that is not observed
		{func() { moved("redrive", 3, errors.New("refused")); replay(3) }, 3, 3},
		{func() { moved("hold", 4, nil); replay(4) }, 5, 4},
		{func() { moved("redrive", 5, nil); moved("redrive", 6, nil); replay(6) }, 7, 6},
		{func() {
			o.Noticed(nixie.NoticeHandled{Queue: "billing", Message: id, Generation: 6, Action: nixie.ActionAlert})
		}, 8, 6},
	} {
		step.do()
		for name, want := range map[string]int{"processed": step.processed, "replayed": step.replayed} {
			line := fmt.Sprintf("dlq.messages.%s ({message}) queue=billing: %d", name, want)
			if got := r.values(t); !slices.Contains(got, line) {
				t.Errorf("no %s in\n%s", line, strings.Join(got, "\n"))
			}
		}
	}
}
