// Package serve listens: metrics, health and, later, the API and the console.
package serve

import (
	"context"

	// The SDK sends what package telemetry makes.
	"github.com/goccy/go-yaml"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

func providers(ctx context.Context) error {
	spans, err := otlptracehttp.New(ctx)
	if err != nil {
		return err
	}
	numbers, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return err
	}
	_ = sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans))
	_ = sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(numbers)))
	_, err = yaml.Marshal(nil)
	return err
}

var _ = providers
