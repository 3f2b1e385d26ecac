package telemetry

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

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
		op := &t.queues.of(d.Queue).process
		ctx, span := op.begin(ctx, t.tracer)
		if span.IsRecording() {
			span.SetAttributes(op.of(d)...)
			return t.process(ctx, span, h, d)
		}
		err := h.Handle(ctx, d)
		span.End()
		return err
	})
}

// begin starts the root of a trace. Attributes are added if it is recorded. The
// context of a worker makes a part of itself when it is asked for a value that it does not have. So
// it is not asked for a span.
func (o *operation) begin(ctx context.Context, tracer trace.Tracer) (context.Context, trace.Span) {
	return tracer.Start(trace.ContextWithSpan(ctx, noop.Span{}), o.name, o.start...)
}

// process runs a handler in a span that is recorded.
func (t *OTel) process(ctx context.Context, span trace.Span, h nixie.Handler, d *nixie.Delivery) (err error) {
	link(span, creation(&d.Message))
	if d.Attempts > 1 || d.Redrives > 0 {
		last, _ := t.failed.of(d.ID)
		link(span, last.span)
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

// of returns what a span says of an operation on one message.
func (o *operation) of(d *nixie.Delivery) []attribute.KeyValue {
	attrs := append(make([]attribute.KeyValue, 0, 12), o.attrs...)
	attrs = append(attrs, keyMessageID.String(d.ID.String()), keyBodySize.Int(len(d.Body)), keyAttempt.Int(d.Attempts))
	if d.Redrives > 0 {
		attrs = append(attrs, keyRedrives.Int(d.Redrives))
	}
	if d.Type != "" {
		attrs = append(attrs, keyType.String(d.Type))
	}
	if id := d.Header(nixie.HeaderRequestID); id != "" {
		attrs = append(attrs, keyConversation.String(cut(id)))
	}
	return attrs
}

func link(span trace.Span, to trace.SpanContext) {
	if to.IsValid() {
		span.AddLink(trace.Link{SpanContext: to})
	}
}

// linkAll links a span to those that sent messages, once to one that sent several in a row.
func linkAll(span trace.Span, n int, message func(int) *nixie.Message) {
	last := trace.SpanContext{}
	for i := range min(n, maxLinks) {
		if sent := creation(message(i)); !sent.Equal(last) {
			link(span, sent)
			last = sent
		}
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
	if most := maxWraps; !bounded(err, &most) {
		return other
	}
	marks := nixie.OutcomeOf(err)
	switch marks.Verb {
	case nixie.Complete, nixie.Release, nixie.Discard:
		return ""
	}
	if marks.Reason != "" {
		return listed(nixie.Reasons(), marks.Reason)
	}
	err = marks.Err
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return reflect.TypeOf(err).String()
}

// bounded reports whether an error wraps at most that number of others. One may wrap itself.
func bounded(err error, most *int) bool {
	if *most--; *most < 0 {
		return false
	}
	var all []error
	switch w := err.(type) {
	case interface{ Unwrap() error }:
		all = []error{w.Unwrap()}
	case interface{ Unwrap() []error }:
		all = w.Unwrap()
	}
	return !slices.ContainsFunc(all, func(inner error) bool { return inner != nil && !bounded(inner, most) })
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
