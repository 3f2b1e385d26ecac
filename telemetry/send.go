package telemetry

import (
	"context"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/nixie-go/nixie"
)

// Enqueuer makes a span for each call, the send span. Messages that have no traceparent get that of
// the span: a traceparent is never changed, also not by a retry or a redrive.
func (t *OTel) Enqueuer(to nixie.Enqueuer) nixie.Enqueuer { return enqueuer{to, t} }

type enqueuer struct {
	to nixie.Enqueuer
	t  *OTel
}

// Enqueue implements [nixie.Enqueuer].
func (e enqueuer) Enqueue(ctx context.Context, messages ...nixie.Message) (receipts []nixie.Receipt, err error) {
	op := e.operation(messages)
	ctx, span := e.t.tracer.Start(ctx, op.name, op.start...)
	defer span.End()
	receipts, err = e.to.Enqueue(ctx, withTrace(span.SpanContext(), messages)...)
	if !span.IsRecording() {
		return receipts, err
	}
	span.SetAttributes(append(slices.Clip(op.attrs), keyCount.Int(len(messages)))...)
	linkAll(span, len(messages), func(i int) *nixie.Message { return &messages[i] }) // those that were created elsewhere
	if len(messages) == 1 && len(receipts) == 1 {
		span.SetAttributes(keyMessageID.String(receipts[0].ID.String()))
	}
	if err != nil {
		fails(span, string(nixie.CodeOf(err)))
	}
	return receipts, err
}

// operation returns that of the queue of all messages. With several queues it names none.
func (e enqueuer) operation(messages []nixie.Message) *operation {
	for i := range messages {
		if messages[i].Queue != messages[0].Queue {
			return &e.t.mixed
		}
	}
	if len(messages) == 0 {
		return &e.t.mixed
	}
	return &e.t.queues.of(messages[0].Queue).send
}

// withTrace returns messages with the headers of a span, where they have none and there is room. It
// changes nothing that the caller holds.
func withTrace(of trace.SpanContext, messages []nixie.Message) []nixie.Message {
	if !of.IsValid() {
		return messages
	}
	made := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), of), made)
	var more []nixie.Header
	for _, name := range slices.Sorted(maps.Keys(made)) {
		more = append(more, nixie.Header{Name: name, Value: made[name]})
	}
	out := slices.Clone(messages)
	for i := range out {
		m := &out[i]
		if !slices.ContainsFunc(m.Headers, isTrace) && bytesOf(m.Headers)+bytesOf(more) <= nixie.MaxHeaders {
			m.Headers = slices.Concat(m.Headers, more)
		}
	}
	return out
}

// isTrace reports whether a header is part of a trace context. A tracestate alone is one that a
// user set, too.
func isTrace(h nixie.Header) bool {
	return strings.EqualFold(h.Name, nixie.HeaderTraceParent) || strings.EqualFold(h.Name, "tracestate")
}

func bytesOf(headers []nixie.Header) (n int) {
	for _, h := range headers {
		n += len(h.Name) + len(h.Value)
	}
	return n
}
