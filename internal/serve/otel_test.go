package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/app"
	"github.com/nixie-go/nixie/internal/config"
)

// variables returns the values of pairs of names and values.
func variables(pairs ...string) config.Environment {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// Variables say what is sent, and mistakes in them are named.
func TestVariables(t *testing.T) {
	const endpoint, to = "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"
	for _, tc := range []struct {
		pairs           []string
		traces, metrics bool
		err             string
	}{
		{},
		{pairs: []string{endpoint, to}, traces: true, metrics: true},
		{pairs: []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", to}, traces: true},
		{pairs: []string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", to}, metrics: true},
		{pairs: []string{endpoint, to, "OTEL_SDK_DISABLED", "True"}},
		{pairs: []string{endpoint, to, "OTEL_TRACES_EXPORTER", "none"}, metrics: true},
		{pairs: []string{endpoint, to, "OTEL_METRICS_EXPORTER", "none", "OTEL_TRACES_EXPORTER", "otlp"}, traces: true},
		{pairs: []string{endpoint, to, "OTEL_TRACES_EXPORTER", "console"}, err: `OTEL_TRACES_EXPORTER is "console": give otlp or none`},
		{pairs: []string{endpoint, "localhost:4318"}, err: endpoint + " is no URL of http or https"},
		{pairs: []string{endpoint, "ftp://host"}, err: endpoint + " is no URL"},
		{pairs: []string{endpoint, "http://\x00"}, err: endpoint + " is no URL"},
		{pairs: []string{endpoint, to, "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"},
			err: `OTEL_EXPORTER_OTLP_PROTOCOL is "grpc": give http/protobuf`},
		{pairs: []string{endpoint, to, "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"}, traces: true, metrics: true},
	} {
		t.Run(strings.Join(tc.pairs, " "), func(t *testing.T) {
			o, err := Providers(t.Context(), variables(tc.pairs...), time.Now, func(text string) { t.Error(text) })
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || o != nil {
					t.Fatalf("%v, want %s", err, tc.err)
				}
				return
			}
			if err != nil || (o != nil) != (tc.traces || tc.metrics) {
				t.Fatal(o, err)
			}
			if o == nil {
				return
			}
			_, traces := o.Traces.(*sdktrace.TracerProvider)
			if traces != tc.traces || (len(o.providers) == 2) != (tc.traces && tc.metrics) {
				t.Errorf("traces %t, %d providers", traces, len(o.providers))
			}
			o.within = 50 * time.Millisecond // there is no collector
			_ = o.Shutdown(t.Context())
		})
	}
}

// A collector that hangs does not slow a handler: spans that do not fit are dropped and counted,
// and the end waits for a short time only. Then no goroutine is left.
func TestCollectorThatHangs(t *testing.T) {
	release := make(chan struct{})
	var asked atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
		<-release
	}))
	defer collector.Close()
	defer close(release)
	o, err := Providers(t.Context(), variables("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL), time.Now, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	told, err := app.NewTelemetry(app.Observation{Traces: o.Traces, Meters: o.Meters})
	if err != nil {
		t.Fatal(err)
	}
	const spans = 20_000 // ten times what the queue holds
	handler := told.Handler(nixie.HandlerFunc(func(context.Context, *nixie.Delivery) error { return nil }))
	d := &nixie.Delivery{Message: nixie.Message{Queue: "billing", Attempts: 1}}
	longest := time.Duration(0)
	for range spans {
		began := time.Now()
		if err := handler.Handle(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Since(began))
	}
	if longest > time.Second {
		t.Errorf("a handler waited for %s", longest)
	}
	if o.Unsent() != spans {
		t.Errorf("%d spans are not sent, want %d", o.Unsent(), spans)
	}
	o.within = 50 * time.Millisecond
	began := time.Now()
	err = o.Shutdown(t.Context())
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the end took %s", took)
	}
	want := fmt.Sprintf("%d spans were not sent", spans)
	if nixie.CodeOf(err) != nixie.CodeUnavailable || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if asked.Load() == 0 {
		t.Error("the collector was not asked")
	}
}

// Errors of the SDK are one warning a minute.
func TestWarnings(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var got []string
	o := &OTLP{warnings: warnings{clock: func() time.Time { return now }, warn: func(text string) { got = append(got, text) }}}
	o.made.Store(7)
	o.sent.Store(2)
	for range 100 {
		o.failed(errors.New("no route"))
		now = now.Add(time.Second)
	}
	o.failed(errors.New(strings.Repeat("ü", maxWarning)))
	now = now.Add(time.Minute)
	o.failed(errors.New(strings.Repeat("ü", maxWarning)))
	if len(got) != 3 || got[0] != "OpenTelemetry: no route (5 spans are not sent; work goes on)" || len(got[2]) > maxWarning+80 {
		t.Errorf("%d warnings: %q", len(got), got)
	}
}
