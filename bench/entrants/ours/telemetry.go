package ours

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/nixie-go/nixie/bench/contest"
	"github.com/nixie-go/nixie/telemetry"
)

// sampled is the part of the traces that is recorded and sent.
const sampled = 0.01

// observe makes what the telemetry of a scenario asks for. Spans are gathered and thrown away.
func (l *library) observe(s contest.Scenario) error {
	switch s {
	case contest.Metrics:
		metrics, err := telemetry.Prometheus(prometheus.NewRegistry())
		if err != nil {
			return err
		}
		l.observer = metrics.Observer()
	case contest.Traces:
		traces := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.TraceIDRatioBased(sampled)),
			sdktrace.WithBatcher(tracetest.NewNoopExporter()))
		otel, err := telemetry.OpenTelemetry(traces, noop.NewMeterProvider())
		if err != nil {
			return err
		}
		l.observer, l.spans = otel.Observer(), otel.Handler
		l.ended = func() error { return traces.Shutdown(context.Background()) }
	}
	return nil
}
