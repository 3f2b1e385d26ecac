package simulate

import (
	"context"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// line is what lies between a process and its store. One call of an event may go
// wrong on it.
type line struct {
	store.Store // the witness
	wait        func(time.Duration)
	fault       Fault
	calls       int // of this event
	seen        map[string]int
	hanging     []func() // calls that are still to arrive, in their order
	repeated    []func() // calls that are still to arrive again
}

// expect makes ready for an event.
func (l *line) expect(f Fault) { l.fault, l.calls = f, 0 }

// arrive lets the calls that hang happen.
func (l *line) arrive() {
	for _, call := range l.hanging {
		call()
	}
	l.hanging = nil
}

// again lets the calls that happen twice happen again.
func (l *line) again() {
	for _, call := range l.repeated {
		call()
	}
	l.repeated = nil
}

// carry makes one call, and says what the caller hears instead of its answer.
func (l *line) carry(call func()) error {
	kind := FaultKind("")
	if l.calls == l.fault.Call {
		kind = l.fault.Kind
	}
	l.calls++
	l.seen[string(kind)]++
	switch kind {
	case Fails:
		return nixie.Errorf(nixie.CodeUnavailable, "the simulator lets the call fail")
	case Hangs:
		l.hanging = append(l.hanging, call)
		return nixie.Errorf(nixie.CodeOutcomeUnknown, "the simulator lets the call hang")
	case Slow:
		l.wait(l.fault.For)
	}
	l.arrive()
	call()
	if kind == Twice {
		l.repeated = append(l.repeated, call)
	}
	if kind == Lost {
		return nixie.Errorf(nixie.CodeOutcomeUnknown, "the simulator loses the answer")
	}
	return nil
}

// whole carries a call with one answer. A call may outlive its context.
func whole[T any](ctx context.Context, l *line, call func(context.Context) (T, error)) (T, error) {
	ctx = context.WithoutCancel(ctx)
	var answer, none T
	var err error
	if lost := l.carry(func() { answer, err = call(ctx) }); lost != nil {
		return none, lost
	}
	return answer, err
}

// parts carries a call with n answers.
func parts(ctx context.Context, l *line, n int, call func(context.Context) []error) []error {
	ctx = context.WithoutCancel(ctx)
	var errs []error
	if lost := l.carry(func() { errs = call(ctx) }); lost != nil {
		return slices.Repeat([]error{lost}, n)
	}
	return errs
}

// Enqueue implements store.Store, as the others do.
func (l *line) Enqueue(ctx context.Context, messages ...nixie.Message) ([]nixie.Receipt, error) {
	return whole(ctx, l, func(ctx context.Context) ([]nixie.Receipt, error) { return l.Store.Enqueue(ctx, messages...) })
}

func (l *line) Claim(ctx context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error) {
	return whole(ctx, l, func(ctx context.Context) ([]*nixie.Delivery, error) { return l.Store.Claim(ctx, queue, want) })
}

func (l *line) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	return parts(ctx, l, len(ds), func(ctx context.Context) []error { return l.Store.Extend(ctx, ds, lease) })
}

func (l *line) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	settlements = slices.Clone(settlements)
	return parts(ctx, l, len(settlements), func(ctx context.Context) []error { return l.Store.Settle(ctx, settlements) })
}

func (l *line) Amend(ctx context.Context, ids []nixie.ID, change store.Change) []error {
	return parts(ctx, l, len(ids), func(ctx context.Context) []error { return l.Store.Amend(ctx, ids, change) })
}

func (l *line) Resolve(ctx context.Context, resolutions []store.Resolution) []error {
	return parts(ctx, l, len(resolutions), func(ctx context.Context) []error { return l.Store.Resolve(ctx, resolutions) })
}

func (l *line) Plan(ctx context.Context, op store.Operation, filter nixie.Filter, most int) (store.Operation, error) {
	return whole(ctx, l, func(ctx context.Context) (store.Operation, error) { return l.Store.Plan(ctx, op, filter, most) })
}

// Features are streams alone: who waits asks now and then, on the clock of the simulation.
func (l *line) Features() store.Features { return store.Features{Streams: l} }

// Streams passes the question on.
func (l *line) Streams(ctx context.Context, look store.StreamQuery, page store.Page) ([]store.Stream, string, error) {
	return l.Store.Features().Streams.Streams(ctx, look, page)
}

func (l *line) Unblock(ctx context.Context, u store.Unblocking) (int64, error) {
	return whole(ctx, l, func(ctx context.Context) (int64, error) { return l.Store.Features().Streams.Unblock(ctx, u) })
}

func (l *line) Adjust(ctx context.Context, queue, actor, reason string, edit func(*nixie.QueueSettings) error) (nixie.QueueSettings, error) {
	return whole(ctx, l, func(ctx context.Context) (nixie.QueueSettings, error) {
		return l.Store.Adjust(ctx, queue, actor, reason, edit)
	})
}

func (l *line) Purge(ctx context.Context, queue string, filter nixie.Filter, most int, actor, reason string) (int, error) {
	return whole(ctx, l, func(ctx context.Context) (int, error) { return l.Store.Purge(ctx, queue, filter, most, actor, reason) })
}

func (l *line) Prune(ctx context.Context, p store.Pruning) (store.Pruned, error) {
	return whole(ctx, l, func(ctx context.Context) (store.Pruned, error) { return l.Store.Prune(ctx, p) })
}
