package telemetry

import (
	"context"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/nixie-go/nixie"
)

func nothing(context.Context, *nixie.Delivery) error { return nil }

// BenchmarkHandler tells what a process span costs when one of a hundred is recorded.
func BenchmarkHandler(b *testing.B) {
	d := &nixie.Delivery{Message: nixie.Message{Queue: "billing", Attempts: 1}}
	r := newRecorder(b, sdktrace.TraceIDRatioBased(0.01))
	r.traces.UnregisterSpanProcessor(r.spans)
	for name, h := range map[string]nixie.Handler{"without": nixie.HandlerFunc(nothing), "spans": r.Handler(nixie.HandlerFunc(nothing))} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if err := h.Handle(b.Context(), d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkObserver tells what a call with a thousand deliveries costs, received and settled.
func BenchmarkOTelObserver(b *testing.B) {
	r := newRecorder(b, sdktrace.TraceIDRatioBased(0.01))
	r.traces.UnregisterSpanProcessor(r.spans)
	ds, sts := make([]*nixie.Delivery, 1000), make([]nixie.Settlement, 1000)
	for i := range ds {
		ds[i] = &nixie.Delivery{Message: nixie.Message{Queue: "billing", Attempts: 1}}
		sts[i] = nixie.Settlement{Delivery: ds[i], Verb: nixie.Complete, Took: time.Millisecond}
	}
	o, errs := r.Observer(), make([]error, len(sts))
	b.ReportAllocs()
	for range b.N {
		o.Received("billing", ds)
		o.Settled("billing", sts, errs)
	}
}
