package serve

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/metric"
	nometrics "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	notraces "go.opentelemetry.io/otel/trace/noop"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/config"
)

// Limits of what is sent by OTLP.
const (
	sendLastWithin = 5 * time.Second // when a program ends
	warnEvery      = time.Minute
	maxWarning     = 300 // bytes of the error in a warning
)

// OTLP sends spans and metrics by OTLP over HTTP. Work never waits for it: spans that find the
// queue full are dropped and counted.
type OTLP struct {
	Traces trace.TracerProvider
	Meters metric.MeterProvider

	providers []ending      // send what is left
	exporters []ending      // end the request that runs
	within    time.Duration // for Shutdown
	made      atomic.Int64
	sent      atomic.Int64
	warnings  warnings
}

// ending ends what has goroutines.
type ending func(context.Context) error

// Providers returns the providers that the variables OTEL_* ask for, and nil without an endpoint.
// The SDK reads its variables itself: sampler, limits, headers, resource. Providers takes over the
// handler of errors of the SDK, of which a process has one: warn gets at most one line a minute.
func Providers(ctx context.Context, env config.Environment, clock func() time.Time, warn func(string)) (*OTLP, error) {
	traces, err := wanted(env, "TRACES")
	if err != nil {
		return nil, err
	}
	metrics, err := wanted(env, "METRICS")
	if err != nil || !traces && !metrics {
		return nil, err
	}
	o := &OTLP{Traces: notraces.NewTracerProvider(), Meters: nometrics.NewMeterProvider(), within: sendLastWithin,
		warnings: warnings{clock: clock, warn: warn}}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(o.failed))
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "nixie")), resource.WithTelemetrySDK(),
		resource.WithFromEnv())
	if err != nil {
		o.failed(err) // the rest of it is used
	}
	if traces {
		err = o.sendTraces(ctx, env, about)
	}
	if metrics && err == nil {
		err = o.sendMetrics(env, about)
	}
	if err != nil {
		return nil, errors.Join(nixie.Errorf(nixie.CodeInvalid, "OpenTelemetry by the variables OTEL_*: %w", err), o.Shutdown(ctx))
	}
	return o, nil
}

// wanted reports whether a signal is to be sent.
func wanted(env config.Environment, signal string) (bool, error) {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	exporter := "OTEL_" + signal + "_EXPORTER"
	switch env(exporter) {
	case "", "otlp":
	case "none":
		return false, nil
	default:
		return false, nixie.Errorf(nixie.CodeInvalid, "%s is %q: give otlp or none", exporter, env(exporter))
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		if env(name) == "" {
			continue
		}
		to, err := url.Parse(env(name))
		if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
			return false, nixie.Errorf(nixie.CodeInvalid, "%s is no URL of http or https: give one such as http://127.0.0.1:4318", name)
		}
		return true, protocol(env, signal)
	}
	return false, nil
}

// protocol refuses the protocols that nixie does not speak.
func protocol(env config.Environment, signal string) error {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch env(name) {
		case "":
		case "http/protobuf":
			return nil
		default:
			return nixie.Errorf(nixie.CodeInvalid, "%s is %q: give http/protobuf, and the port for it, often 4318", name, env(name))
		}
	}
	return nil
}

func (o *OTLP) sendTraces(ctx context.Context, env config.Environment, about *resource.Resource) error {
	to, err := newOTLP(env, "traces")
	if err != nil {
		return err
	}
	exporter, err := otlptrace.New(ctx, to)
	if err != nil {
		return err
	}
	batches := sdktrace.NewBatchSpanProcessor(counting{exporter, &o.sent})
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithSpanProcessor(counted{batches, &o.made}))
	o.Traces, o.providers, o.exporters = provider, append(o.providers, provider.Shutdown), append(o.exporters, exporter.Shutdown)
	return nil
}

func (o *OTLP) sendMetrics(env config.Environment, about *resource.Resource) error {
	to, err := newOTLP(env, "metrics")
	if err != nil {
		return err
	}
	exporter := otlpMetrics{to}
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithResource(about), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)))
	o.Meters, o.providers, o.exporters = provider, append(o.providers, provider.Shutdown), append(o.exporters, exporter.Shutdown)
	return nil
}

// Shutdown sends what is left, for 5 s at most. It tells how many spans were not sent.
func (o *OTLP) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.within)
	defer cancel()
	errs := make([]error, len(o.providers))
	var ending sync.WaitGroup
	for i, end := range o.providers {
		ending.Go(func() { errs[i] = end(ctx) })
	}
	ending.Wait()
	for _, end := range o.exporters {
		_ = end(ctx) // what it says was said
	}
	err := errors.Join(errs...)
	if lost := o.Unsent(); err != nil && lost > 0 {
		err = nixie.Errorf(nixie.CodeUnavailable, "%d spans were not sent: %w", lost, err)
	}
	return err
}

// Unsent counts the spans that were not sent: they wait, or they were dropped.
func (o *OTLP) Unsent() int64 { return o.made.Load() - o.sent.Load() }

// failed takes errors of the SDK.
func (o *OTLP) failed(err error) { o.warnings.add(err, o.Unsent()) }

// warnings writes at most one line a minute.
type warnings struct {
	clock func() time.Time
	warn  func(string)

	mu   sync.Mutex
	last time.Time
}

func (w *warnings) add(err error, unsent int64) {
	now := w.clock()
	w.mu.Lock()
	early := !w.last.IsZero() && now.Sub(w.last) < warnEvery
	if !early {
		w.last = now
	}
	w.mu.Unlock()
	if early {
		return
	}
	text := err.Error()
	if len(text) > maxWarning {
		text = strings.ToValidUTF8(text[:maxWarning], "") + "…"
	}
	w.warn(fmt.Sprintf("OpenTelemetry: %s (%d spans are not sent; work goes on)", text, unsent))
}

// counted counts the spans that end.
type counted struct {
	sdktrace.SpanProcessor
	made *atomic.Int64
}

// OnEnd implements [sdktrace.SpanProcessor].
func (c counted) OnEnd(s sdktrace.ReadOnlySpan) {
	if s.SpanContext().IsSampled() {
		c.made.Add(1)
	}
	c.SpanProcessor.OnEnd(s)
}

// counting counts the spans that are sent.
type counting struct {
	sdktrace.SpanExporter
	sent *atomic.Int64
}

// ExportSpans implements [sdktrace.SpanExporter].
func (c counting) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		c.sent.Add(int64(len(spans)))
	}
	return err
}
