package telemetry_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/telemetry"
	"github.com/nixie-go/nixie/worker"
)

// A program has providers of its own, here one that keeps spans. What the handler does is in the
// trace of its attempt, and the attempt is linked to the span that sent the message.
func ExampleOpenTelemetry() {
	spans := tracetest.NewSpanRecorder()
	traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	otel, err := telemetry.OpenTelemetry(traces, noop.NewMeterProvider())
	if err != nil {
		fmt.Println(err)
		return
	}
	st := memory.New(memory.Options{})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	w, err := worker.New(worker.Config{
		Source: store.NewSource(st, "billing"),
		Handler: otel.Handler(nixie.HandlerFunc(func(ctx context.Context, _ *nixie.Delivery) error {
			_, span := traces.Tracer("shop").Start(ctx, "charge card")
			span.End()
			stop() // the worker ends when the message is settled
			return nil
		})),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := otel.Enqueuer(st).Enqueue(ctx, nixie.Message{Queue: "billing"}); err != nil {
		fmt.Println(err)
		return
	}
	if err := w.Run(ctx); err != nil {
		fmt.Println(err)
		return
	}
	sent := spans.Ended()[0]
	for _, span := range spans.Ended() {
		fmt.Printf("%s, in the trace of the sender: %t", span.Name(), span.SpanContext().TraceID() == sent.SpanContext().TraceID())
		for _, link := range span.Links() {
			fmt.Printf(", linked to it: %t", link.SpanContext.SpanID() == sent.SpanContext().SpanID())
		}
		fmt.Println()
	}
	// Output:
	// send billing, in the trace of the sender: true
	// charge card, in the trace of the sender: false
	// process billing, in the trace of the sender: false, linked to it: true
}
