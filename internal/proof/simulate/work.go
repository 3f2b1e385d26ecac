package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/worker"
)

// work lets a worker do something.
func (w *world) work(p *process, e Event) {
	switch e.Do {
	case Receive:
		w.receive(p, e.Queue, e.N)
	case Extend:
		w.extend(p, e.N > 0)
	case Release:
		w.release(p)
	case Finish:
		if r := p.running(e.On); r != nil {
			w.finish(p, r, e.How)
		}
	case Step:
		if r := p.running(e.On); r != nil && !r.decided {
			w.must(r.d.Step(e.How, func() error { return nil }))
		}
	}
	w.begin(p)
}

// running finds the oldest delivery of a message that a handler has.
func (p *process) running(on []string) *run {
	for _, r := range p.hands {
		if len(on) == 1 && r.d.Key == on[0] && !r.begun.IsZero() {
			return r
		}
	}
	return nil
}

// ahead is how many deliveries a worker takes in hand for each handler.
const ahead = 3

func (w *world) receive(p *process, queue string, most int) {
	inHand := p.with(func(r *run) bool { return !w.late(r) })
	desk, room := p.desks[queue], ahead*p.Concurrency-len(inHand)
	if desk == nil || room <= 0 {
		return
	}
	asked := w.clock.Now()
	if slices.ContainsFunc(inHand, func(r *run) bool { return r.d.Crashes > 0 }) {
		return
	}
	ds, err := desk.Receive(w.ctx, nixie.Want{Max: min(room, most), NoSuspects: len(inHand) > 0, Parallel: p.Concurrency})
	w.expected(err, nixie.CodeLeaseLost)
	for _, d := range ds {
		p.hands = append(p.hands, &run{d: d, until: asked.Add(p.Lease)})
	}
}

// late reports whether a delivery is out of a worker's hands, by what it can know.
func (w *world) late(r *run) bool { return r.lost || !w.clock.Now().Before(r.until) }

// expected notes errors that no fault explains.
func (w *world) expected(err error, also ...nixie.Code) {
	code := nixie.CodeOf(err)
	known := slices.Contains(append(also, "", nixie.CodeUnavailable, nixie.CodeOutcomeUnknown), code)
	w.book.want(known, Answers, "%v", err)
}

// begin lets free handlers begin what is in hand, unless the lease ends soon or a
// breaker is open.
func (w *world) begin(p *process) {
	busy := len(p.with(func(r *run) bool { return !r.begun.IsZero() && !r.decided && !w.late(r) }))
	for _, r := range p.hands {
		if busy >= p.Concurrency {
			return
		}
		if !r.begun.IsZero() || !w.clock.Now().Before(r.until.Add(-p.Lease/5)) || !w.allowed(p, r) {
			continue
		}
		r.begun = w.clock.Now().Add(p.Skew)
		busy++
		w.bounded(r.d)
		w.overlapping(p, r)
	}
}

// bounded judges whether a handler may begin.
func (w *world) bounded(d *nixie.Delivery) {
	limits := &w.setup.Policy
	w.book.want(!d.Abandoned, Bounds, "abandoned %s is run", d.Key)
	w.book.want(d.Attempts <= limits.MaxAttempts, Bounds, "%s is run in attempt %d of %d", d.Key, d.Attempts, limits.MaxAttempts)
	w.book.want(d.Deliveries-2*d.Crashes <= limits.MaxDeliveries, Bounds, "%s is run in delivery %d of %d", d.Key, d.Deliveries, limits.MaxDeliveries)
}

// overlapping notes that another process still runs the message: it missed its
// lease, or the witness would have seen two holders.
func (w *world) overlapping(p *process, r *run) {
	for _, other := range w.processes {
		if other != p && slices.ContainsFunc(other.hands, func(o *run) bool { return o.d.ID == r.d.ID && !o.begun.IsZero() && !o.decided }) {
			w.book.seen["overlap"]++
		}
	}
}

// hasMore reports whether a life has attempts and deliveries left.
func (w *world) hasMore(d *nixie.Delivery) bool {
	limits := &w.setup.Policy
	return d.Attempts < limits.MaxAttempts && d.Deliveries-2*d.Crashes < limits.MaxDeliveries
}

// allowed asks the breaker of a type.
func (w *world) allowed(p *process, r *run) bool {
	decision := w.told(p, r, policy.BreakerAsked)
	r.ticket = decision.Ticket
	if !decision.Allow {
		w.book.seen["breaker"]++
	}
	return decision.Allow
}

func (w *world) told(p *process, r *run, on policy.BreakerMoment) policy.BreakerDecision {
	b := p.breakers[r.d.Type]
	if b == nil {
		b = &policy.Breaker{}
		p.breakers[r.d.Type] = b
	}
	next, decision := w.setup.Breaker.Next(*b, policy.BreakerEvent{On: on, Ticket: r.ticket}, w.clock.Now())
	*b = next
	return decision
}

// finish settles what a handler returned, at the first time or again because
// nobody knows what became of it. A handler whose lease is lost is as stubborn as
// any: it says what it has to say, and must not be heard.
func (w *world) finish(p *process, r *run, how string) {
	if !r.decided {
		r.decided = true
		r.err = outcome(r.d, how)
		on := policy.BreakerSucceeded
		if r.err != nil {
			on = policy.BreakerFailed
		}
		w.told(p, r, on)
	}
	st, err := p.desks[r.d.Queue].Done(w.ctx, r.d, r.err, r.begun)
	w.expected(err, nixie.CodeLeaseLost)
	w.book.want(st.Verb != nixie.Retry || w.hasMore(r.d), Bounds, "%s is retried after attempt %d and delivery %d", r.d.Key, r.d.Attempts, r.d.Deliveries)
	if err == nil || nixie.CodeOf(err) == nixie.CodeLeaseLost {
		p.drop(r)
	}
}

func (p *process) drop(r *run) {
	p.hands = slices.DeleteFunc(p.hands, func(other *run) bool { return other == r })
}

// outcomes are how handlers return.
func outcomes() []string {
	return []string{"ok", "transient", "permanent", "panic", "timeout", "later", "discard", "bury", "hold", "halt", "release", "in-step"}
}

// outcome is what a handler returns.
func outcome(d *nixie.Delivery, how string) error {
	failure := errors.New("it fails")
	switch how {
	case "ok":
		return nil
	case "transient":
		return nixie.Transient(failure)
	case "permanent":
		return nixie.Permanent(failure)
	case "panic":
		return nixie.WithReason(&worker.PanicError{Value: "it panics"}, nixie.ReasonPanic)
	case "timeout":
		return fmt.Errorf("it takes too long: %w", context.DeadlineExceeded)
	case "later":
		return nixie.RetryAfter(failure, 7*time.Second)
	case "in-step":
		return d.Step("failing", func() error { return failure })
	}
	return nixie.Verdict(nixie.Verb(how), failure)
}

// extend renews the leases of what is in hand and not decided, or only of what has
// begun.
func (w *world) extend(p *process, begun bool) {
	runs := p.with(func(r *run) bool { return !r.decided && !r.lost && !(begun && r.begun.IsZero()) })
	for queue, desk := range w.desksOf(p) {
		of := slices.DeleteFunc(slices.Clone(runs), func(r *run) bool { return r.d.Queue != queue })
		if len(of) == 0 {
			continue
		}
		asked := w.clock.Now()
		for i, err := range desk.Extend(w.ctx, deliveries(of), 0) {
			w.expected(err, nixie.CodeLeaseLost)
			switch nixie.CodeOf(err) {
			case "":
				of[i].until = asked.Add(p.Lease)
			case nixie.CodeLeaseLost:
				of[i].lost = true
			}
		}
	}
}

// desksOf goes through the desks in the order of the queues.
func (w *world) desksOf(p *process) func(yield func(string, *worker.Desk) bool) {
	return func(yield func(string, *worker.Desk) bool) {
		for _, queue := range w.setup.names() {
			if !yield(queue, p.desks[queue]) {
				return
			}
		}
	}
}

func (p *process) with(which func(*run) bool) []*run {
	return slices.DeleteFunc(slices.Clone(p.hands), func(r *run) bool { return !which(r) })
}

func deliveries(runs []*run) []*nixie.Delivery {
	ds := make([]*nixie.Delivery, len(runs))
	for i, r := range runs {
		ds[i] = r.d
	}
	return ds
}

// release gives back what has not begun.
func (w *world) release(p *process) {
	runs := p.with(func(r *run) bool { return r.begun.IsZero() })
	if len(runs) == 0 {
		return
	}
	for i, err := range p.desks[runs[0].d.Queue].Release(w.ctx, deliveries(runs)) {
		w.expected(err, nixie.CodeLeaseLost)
		if err == nil || nixie.CodeOf(err) == nixie.CodeLeaseLost {
			p.drop(runs[i])
		}
	}
}
