package telemetry

import (
	"context"
	"errors"
	"reflect"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/nixie-go/nixie"
)

// Limits of what a span refers to.
const (
	maxLinks = 128
	maxWraps = 100 // of an error
)

// Handler runs a handler in a span of its own, the process span. It is the root of a trace, also
// for a retry or after a redrive. It is linked to the span that sent the message, and to that of
// the attempt before if this process ran and sampled it. Spans that the handler starts are its
// children. Texts of errors are not in it, because they are not masked yet.
func (t *OTel) Handler(h nixie.Handler) nixie.Handler {
	return nixie.HandlerFunc(func(ctx context.Context, d *nixie.Delivery) error {
		ctx, span := t.queues.of(d.Queue).process.begin(ctx, t.tracer)
		if span.IsRecording() {
			return t.process(ctx, span, h, d)
		}
		err := h.Handle(ctx, d)
		span.End()
		return err
	})
}

// begin starts the root of a trace. The attributes are added by describe, if it is recorded.
func (o *operation) begin(ctx context.Context, tracer trace.Tracer) (context.Context, trace.Span) {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return tracer.Start(ctx, o.name, append(o.start[:len(o.start):len(o.start)], trace.WithNewRoot())...)
	}
	return tracer.Start(ctx, o.name, o.start...)
}

// process runs a handler in a span that is recorded.
func (t *OTel) process(ctx context.Context, span trace.Span, h nixie.Handler, d *nixie.Delivery) (err error) {
	span.SetAttributes(t.queues.of(d.Queue).process.attrs...)
	describe(span, d)
	link(span, creation(&d.Message))
	if again := d.Attempts > 1 || d.Redrives > 0; again {
		link(span, t.failed.of(d.ID).span)
	}
	kind := string(nixie.ReasonPanic) // unless the handler returns
	defer func() {
		if kind != "" {
			fails(span, kind)
			t.failed.add(d.ID, attempt{span.SpanContext(), d.Attempts, d.Redrives})
		}
		span.End()
	}()
	err = h.Handle(ctx, d)
	kind = failure(err)
	return err
}

// describe adds what a span says of one message.
func describe(span trace.Span, d *nixie.Delivery) {
	span.SetAttributes(keyMessageID.String(d.ID.String()), keyBodySize.Int(len(d.Body)), keyAttempt.Int(d.Attempts))
	if d.Redrives > 0 {
		span.SetAttributes(keyRedrives.Int(d.Redrives))
	}
	if d.Type != "" {
		span.SetAttributes(keyType.String(d.Type))
	}
	if id := d.Header(nixie.HeaderRequestID); id != "" {
		span.SetAttributes(keyConversation.String(cut(id)))
	}
}

func link(span trace.Span, to trace.SpanContext) {
	if to.IsValid() {
		span.AddLink(trace.Link{SpanContext: to})
	}
}

func fails(span trace.Span, kind string) {
	span.SetAttributes(keyError.String(kind))
	span.SetStatus(codes.Error, "")
}

// failure returns the kind of an error: its reason, if it has one, or the type of the innermost
// error. A release or a discard is no failure. The methods of the error may panic.
func failure(err error) (kind string) {
	if err == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			kind = other
		}
	}()
	marks := nixie.OutcomeOf(err)
	switch marks.Verb {
	case nixie.Complete, nixie.Release, nixie.Discard:
		return ""
	}
	if marks.Reason != "" {
		return listed(nixie.Reasons(), marks.Reason)
	}
	err = marks.Err
	for range maxWraps {
		inner := errors.Unwrap(err)
		if inner == nil {
			break
		}
		err = inner
	}
	return reflect.TypeOf(err).String()
}

// creation returns the span that sent a message, by its headers.
func creation(m *nixie.Message) trace.SpanContext {
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), headers{m}))
}

// headers reads headers of a message for a propagator.
type headers struct{ of *nixie.Message }

func (h headers) Get(name string) string { return h.of.Header(name) }

// Set does nothing: headers are only read.
func (h headers) Set(string, string) {}

// Keys returns none: the propagator asks by name.
func (h headers) Keys() []string { return nil }
