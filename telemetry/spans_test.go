package telemetry

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	notraces "go.opentelemetry.io/otel/trace/noop"
	"pgregory.net/rapid"

	"github.com/nixie-go/nixie"
)

// taker keeps what it is given to enqueue.
type taker struct {
	got []nixie.Message
	err error
}

func (k *taker) Enqueue(_ context.Context, messages ...nixie.Message) ([]nixie.Receipt, error) {
	k.got = messages
	return make([]nixie.Receipt, len(messages)), k.err
}

// A traceparent is never changed, a message without one gets that of the send span, and what the
// caller holds stays as it was.
func TestTraceparentIsKept(t *testing.T) {
	r := newRecorder(t, sdktrace.TraceIDRatioBased(0.5))
	header := rapid.Custom(func(t *rapid.T) nixie.Header {
		name := rapid.SampledFrom([]string{"traceparent", "tracestate", "Traceparent", "x", "request-id"}).Draw(t, "name")
		value := rapid.SampledFrom([]string{producer, "", "a=b", "00-bad", strings.Repeat("v", nixie.MaxHeaders-40)}).Draw(t, "value")
		return nixie.Header{Name: name, Value: value}
	})
	rapid.Check(t, func(t *rapid.T) {
		var given, before []nixie.Message
		for range rapid.IntRange(0, 5).Draw(t, "messages") {
			headers := rapid.SliceOfN(header, 0, 3).Draw(t, "headers")
			backing := append(slices.Clone(headers), nixie.Header{Name: "behind", Value: "the caller's"})
			queue := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")
			given = append(given, nixie.Message{Queue: queue, Headers: backing[:len(headers)]})
			before = append(before, nixie.Message{Queue: queue, Headers: slices.Clone(backing)})
		}
		k := &taker{}
		if _, err := r.Enqueuer(k).Enqueue(context.Background(), given...); err != nil {
			t.Fatal(err)
		}
		for i := range given {
			had := given[i].Headers
			if !slices.Equal(had[:len(had)+1], before[i].Headers) {
				t.Fatalf("the caller's headers are %v, and were %v", had[:len(had)+1], before[i].Headers)
			}
			got, added := k.got[i].Headers, k.got[i].Headers[len(had):]
			if !slices.Equal(got[:len(had)], had) {
				t.Fatalf("headers are %v, want %v and more", got, had)
			}
			room := bytesOf(had)+len("traceparent")+len(producer) <= nixie.MaxHeaders
			if want := room && !slices.ContainsFunc(had, isTrace); want != (len(added) > 0) {
				t.Fatalf("%d headers were added to %v", len(added), had)
			}
			if len(added) > 0 && (len(added) > 1 || !creation(&k.got[i]).IsValid()) {
				t.Fatalf("added %v", added)
			}
		}
	})
}

// Without a tracer nothing is added, and nothing breaks.
func TestWithoutProviders(t *testing.T) {
	o, err := OpenTelemetry(notraces.NewTracerProvider(), noop.NewMeterProvider())
	if err != nil {
		t.Fatal(err)
	}
	k := &taker{}
	if _, err := o.Enqueuer(k).Enqueue(t.Context(), nixie.Message{Queue: "a"}); err != nil || len(k.got[0].Headers) != 0 {
		t.Error(k.got, err)
	}
	story(t, o.Observer())
}

// A send that fails, or that has several queues, says so.
func TestSendSpans(t *testing.T) {
	r := newRecorder(t, sdktrace.AlwaysSample())
	refused := nixie.Errorf(nixie.CodeLimit, "body is secret")
	for _, call := range [][]nixie.Message{{}, {{Queue: "a"}, {Queue: "b"}}, {{Queue: "a"}}} {
		if _, err := r.Enqueuer(&taker{err: refused}).Enqueue(t.Context(), call...); !errors.Is(err, refused) {
			t.Error(err)
		}
	}
	var got []string
	for _, span := range r.spans.Ended() {
		status := span.Status()
		got = append(got, fmt.Sprintf("%s, %d attributes, %s%s", span.Name(), len(span.Attributes()), status.Code, status.Description))
	}
	if want := []string{"send, 5 attributes, Error", "send, 5 attributes, Error", "send a, 7 attributes, Error"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

type panics struct{}

func (panics) Error() string { return "x" }
func (panics) Unwrap() error { panic("x") }

type loops struct{}

func (l loops) Error() string { return "x" }
func (l loops) Unwrap() error { return l }

// The kind of an error is a reason or a type, never a text.
func TestKindsOfErrors(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("x"), "*errors.errorString"},
		{fmt.Errorf("a: %w", fmt.Errorf("b: %w", context.DeadlineExceeded)), "context.deadlineExceededError"},
		{nixie.Permanent(fmt.Errorf("a: %w", nixie.ErrClosed)), "*errors.errorString"},
		{nixie.WithReason(errors.New("x"), nixie.ReasonAuth), "auth"},
		{nixie.WithReason(errors.New("x"), "made up"), "other"},
		{nixie.Snooze(errors.New("x"), time.Second), ""},
		{nixie.Verdict(nixie.Discard, errors.New("x")), ""},
		{nixie.Verdict(nixie.Hold, errors.New("x")), "*errors.errorString"},
		{panics{}, "other"},
		{loops{}, "other"},
	} {
		if got := failure(tc.err); got != tc.want {
			t.Errorf("%v is %q, want %q", reflect.TypeOf(tc.err), got, tc.want)
		}
	}
}

// However many messages and queues there are, memory and series are bounded.
func TestOTelIsBounded(t *testing.T) {
	r := newRecorder(t, sdktrace.AlwaysSample())
	r.traces.UnregisterSpanProcessor(r.spans)
	h := r.Handler(nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error { return errors.New("x") }))
	for i := range maxRemembered + 5 {
		d := &nixie.Delivery{Message: nixie.Message{ID: nixie.ID{1, byte(i >> 8), byte(i)}, Queue: hostile(i), Attempts: 1}}
		if h.Handle(t.Context(), d) == nil {
			t.Fatal("the error is lost")
		}
		failed := &nixie.Failure{Reason: nixie.Reason(hostile(i))}
		r.settled("", []nixie.Settlement{{Delivery: d, Verb: nixie.Retry, Took: 1, Failure: failed}}, []error{nil})
	}
	if n := len(r.failed.last); n != maxRemembered {
		t.Errorf("%d attempts are remembered, want %d", n, maxRemembered)
	}
	var got metricdata.ResourceMetrics
	if err := r.numbers.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	for _, m := range got.ScopeMetrics[0].Metrics {
		if data, ok := m.Data.(metricdata.Histogram[float64]); ok && len(data.DataPoints) > maxQueues+1 {
			t.Errorf("%s has %d series", m.Name, len(data.DataPoints))
		}
	}
	if n := len(r.queues.byLabel); n != maxQueues+1 {
		t.Errorf("%d queues have a label", n)
	}
}
