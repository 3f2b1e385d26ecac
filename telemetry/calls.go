package telemetry

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"github.com/nixie-go/nixie"
)

// received counts deliveries, and makes a receive span for those of each queue.
func (t *OTel) received(source string, ds []*nixie.Delivery) {
	eachQueue(source, len(ds), func(i int) *nixie.Delivery { return ds[i] }, func(name string, from, to int) {
		op := &t.queues.of(name).receive
		t.counters[consumedMessages].Add(context.Background(), int64(to-from), op.add...)
		if span := t.over(context.Background(), op); span != nil {
			span.SetAttributes(append(slices.Clip(op.attrs), keyCount.Int(to-from))...)
			linkAll(span, to-from, func(i int) *nixie.Message { return &ds[from+i].Message })
			span.End()
		}
	})
}

// settled counts outcomes, and makes a settle span for each verb. A death has a span of its own.
func (t *OTel) settled(source string, sts []nixie.Settlement, errs []error) {
	eachQueue(source, len(sts), func(i int) *nixie.Delivery { return sts[i].Delivery }, func(name string, from, to int) {
		q := t.queues.of(name)
		t.count(q, sts[from:to], errs[from:to])
		var counts [len(verbs)]int
		var refused [len(verbs)]error
		for i := from; i < to; i++ {
			verb := indexOf(sts[i].Verb)
			if verb == len(verbs) {
				continue
			}
			if sts[i].Burial != nil {
				t.death(&q.settle[verb], &sts[i], errs[i])
				continue
			}
			counts[verb]++
			if errs[i] != nil {
				refused[verb] = errs[i]
			}
		}
		for verb, n := range counts {
			if n == 0 {
				continue
			}
			op := &q.settle[verb]
			if span := t.over(context.Background(), op); span != nil {
				span.SetAttributes(append(slices.Clip(op.attrs), keyCount.Int(n))...)
				endSettle(span, refused[verb])
			}
		}
	})
}

// death makes the span of a death. It is a child of the process span if that is recorded.
func (t *OTel) death(op *operation, st *nixie.Settlement, err error) {
	ctx, d := context.Background(), st.Delivery
	if last, _ := t.failed.of(d.ID); last.number == d.Attempts && last.redrives == d.Redrives && last.span.IsValid() {
		ctx = trace.ContextWithSpanContext(ctx, last.span)
	}
	span := t.over(ctx, op)
	if span == nil {
		return
	}
	span.SetAttributes(append(op.of(d), keyCause.String(string(st.Burial.Cause)))...)
	link(span, creation(&d.Message))
	endSettle(span, err)
}

// endSettle ends a span, which fails if the settlement was refused.
func endSettle(span trace.Span, err error) {
	if err != nil {
		fails(span, string(nixie.CodeOf(err)))
	}
	span.End()
}

// over starts the span of a call that is over. It returns nil if the span is not recorded.
func (t *OTel) over(ctx context.Context, op *operation) trace.Span {
	_, span := t.tracer.Start(ctx, op.name, op.start...)
	if !span.IsRecording() {
		span.End()
		return nil
	}
	return span
}
