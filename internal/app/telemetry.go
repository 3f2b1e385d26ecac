package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/telemetry"
)

// Limits of a scrape.
const (
	scrapeWithin = 10 * time.Second
	maxScrapes   = 4 // at the same time
)

// Observation says what telemetry is made of.
type Observation struct {
	Metrics bool                 // for Prometheus
	Log     *slog.Logger         // gets deaths and letters that are handled; nil means none
	Traces  trace.TracerProvider // nil means no OpenTelemetry
	Meters  metric.MeterProvider // nil means no OpenTelemetry
}

// Telemetry tells what happens in numbers, logs and traces.
type Telemetry struct {
	metrics  *telemetry.Metrics // nil means none
	registry *prometheus.Registry
	otel     *telemetry.OTel // nil means none
	observer *nixie.Observer // nil means that nothing is told
}

// NewTelemetry makes what an observation asks for.
func NewTelemetry(o Observation) (*Telemetry, error) {
	t := &Telemetry{}
	var err error
	if o.Metrics {
		t.registry = prometheus.NewRegistry()
		t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		if t.metrics, err = telemetry.Prometheus(t.registry); err != nil {
			return nil, err
		}
		t.observer = t.metrics.Observer()
	}
	if o.Log != nil {
		t.observer = nixie.Tee(t.observer, telemetry.Logs(o.Log))
	}
	if o.Traces != nil && o.Meters != nil {
		if t.otel, err = telemetry.OpenTelemetry(o.Traces, o.Meters); err != nil {
			return nil, err
		}
		t.observer = nixie.Tee(t.observer, t.otel.Observer())
	}
	return t, nil
}

// Observer returns the observer that tells; nil if nothing is told.
func (t *Telemetry) Observer() *nixie.Observer { return t.observer }

// Handler wraps a handler in spans, if there are traces.
func (t *Telemetry) Handler(h nixie.Handler) nixie.Handler {
	if t.otel == nil {
		return h
	}
	return t.otel.Handler(h)
}

// Gauges adds the numbers that look returns to the metrics.
func (t *Telemetry) Gauges(look func(context.Context) (nixie.Overview, error)) error {
	var errs []error
	if t.metrics != nil {
		errs = append(errs, t.metrics.Gauges(look))
	}
	if t.otel != nil {
		errs = append(errs, t.otel.Gauges(look))
	}
	return errors.Join(errs...)
}

// Metrics returns the handler of a scrape; nil without metrics.
func (t *Telemetry) Metrics() http.Handler {
	if t.registry == nil {
		return nil
	}
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		Registry: t.registry, Timeout: scrapeWithin, MaxRequestsInFlight: maxScrapes,
	})
}
