package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// since returns a moment as the time since the worker was made. So it keeps the monotonic clock,
// which does not jump.
func (w *Worker) since(t time.Time) time.Duration { return t.Sub(w.epoch) }

// now returns the present moment as the time since the worker was made.
func (w *Worker) now() time.Duration { return w.since(w.c.Clock()) }

// safe reports whether work under the lease may begin or go on.
func (w *Worker) safe(r *run, now time.Duration) bool {
	return now < time.Duration(r.leaseEnd.Load())-w.c.Renewal.For/margin
}

// renewLoop extends the leases of all deliveries in hand.
func (w *Worker) renewLoop(ctx context.Context) {
	tick := time.NewTicker(w.c.Renewal.Every)
	defer tick.Stop()
	alarm := w.alarm()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-alarm:
			alarm = w.alarm()
		}
		w.renew(ctx)
	}
}

// alarm is closed when the source knows that leases may be lost.
func (w *Worker) alarm() <-chan struct{} {
	if a, ok := w.c.Source.(lease.LossNotifier); ok {
		return a.LeasesLost()
	}
	return nil
}

// renew extends all leases that are worth keeping, and ends the runs that lost theirs.
func (w *Worker) renew(ctx context.Context) {
	now := w.since(w.c.Clock())
	runs := w.renewable(now)
	for from := 0; from < len(runs); from += nixie.MaxBatch {
		w.extend(ctx, runs[from:min(from+nixie.MaxBatch, len(runs))], now)
	}
	w.renewSource(ctx)
}

// renewSource extends what the source has in hand and did not deliver.
func (w *Worker) renewSource(ctx context.Context) {
	s, ok := w.c.Source.(lease.Renewer)
	if !ok {
		return
	}
	call, ended := w.limited(ctx, &w.renewing, min(w.c.Lease/renewParts, callLimit))
	defer ended()
	if err := s.Renew(call, w.c.Lease); err != nil && ctx.Err() == nil {
		w.c.trouble(renewing, fmt.Errorf("renew what waits in hand: %w", err))
	}
}

// renewable lists the runs whose leases to renew. It treats the others like this:
//
//	waited for a whole lease            gives it back: another worker may be faster
//	its context ended a lease ago       leaves it to its lease: the handler does not listen,
//	                                    or its outcome cannot be settled
//	the handler completed it            leaves it: its transaction may be open, and Extend would
//	                                    wait for that, with all leases of the same call
//	it lasts longer than a renewal      leaves it for now
//	its handler does not beat           leaves it to its lease; see [Renewal]
func (w *Worker) renewable(now time.Duration) []*run {
	var runs []*run
	for _, b := range w.openBatches() {
		waits := b.crashes == 0 && now >= b.received+w.c.Lease
		for r := range b.all() {
			if waits {
				w.giveBack(r, now)
			}
			if r.state.Load() == settled {
				continue
			}
			if r.endedFor(w.c.Lease, now) {
				w.abandon(r)
				continue
			}
			if !r.d.Completed() && w.renews(r, now) {
				runs = append(runs, r)
			}
		}
	}
	return runs
}

// renews reports whether the rules for renewals allow one now.
func (w *Worker) renews(r *run, now time.Duration) bool {
	rules := &w.c.Renewal
	if rules.For < w.c.Lease && time.Duration(r.leaseEnd.Load()) > now+rules.For {
		return false
	}
	return rules.While == nil || r.state.Load() != running || rules.While(r.d)
}

// extend renews leases. The new end counts from a moment before the call.
func (w *Worker) extend(ctx context.Context, runs []*run, now time.Duration) {
	call, ended := w.limited(ctx, &w.renewing, min(w.c.Renewal.Every, callLimit))
	defer ended()
	claims := make([]*nixie.Delivery, len(runs))
	for i, r := range runs {
		claims[i] = r.claim()
	}
	var trouble error
	var lost []*run
	failed := 0
	errs := answers(w.c.Source.Extend(call, claims, w.c.Renewal.For), len(runs))
	w.c.Observer.Extended(w.c.Queue, claims, errs)
	for i, err := range errs {
		switch {
		case err == nil:
			runs[i].leaseEnd.Store(int64(now + w.c.Renewal.For))
		case nixie.CodeOf(err) == nixie.CodeLeaseLost:
			lost = append(lost, runs[i])
		default:
			trouble = err
			failed++
		}
	}
	w.loseAll(ctx, lost)
	switch {
	case trouble == nil:
		w.c.events.over(renewing)
	case errors.Is(trouble, nixie.ErrClosed):
		w.sourceClosed(trouble)
	case ctx.Err() == nil:
		w.c.trouble(renewing, fmt.Errorf("renew %d of %d leases: %w", failed, len(runs), trouble))
	}
}

// abandon stops waiting for a handler that ignores the end of its context.
func (w *Worker) abandon(r *run) {
	if r.state.CompareAndSwap(running, settled) {
		w.forget(r)
	}
}

// lose ends a run that lost its lease. It leaves a run alone whose settlement is under way: the
// answer to that tells the outcome. It also leaves a run alone whose handler completed it, as the
// lease ended by that.
func (w *Worker) lose(r *run, why error) {
	if r.state.CompareAndSwap(waiting, settled) {
		w.lost(r, why)
		w.forget(r)
		return
	}
	if r.state.Load() == running && !r.d.Completed() {
		w.interrupt(r, w.since(w.c.Clock()), why)
	}
}

// interrupt ends the context of a handler whose lease is lost or about to end.
func (w *Worker) interrupt(r *run, now time.Duration, why error) {
	if r.end(why, now) {
		w.lost(r, why)
	}
}

func (w *Worker) lost(r *run, why error) {
	w.c.Observer.Lost(r.claim())
	w.c.events.lost(r.d, why)
}

// watch ends the contexts of handlers whose deadline or lease is over. A handler that waits for its
// context to end has a timer of its own, which is exact. While nothing is in hand it rests: many
// workers that wait must cost nothing.
func (w *Worker) watch(ctx context.Context) {
	shortest := w.c.Lease
	if limit := w.c.shortestTimeout(); limit > 0 {
		shortest = min(shortest, limit)
	}
	every := min(max(shortest/watchParts, watchLeast), watchMost)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		w.resting.Store(true)
		if w.idle() {
			tick.Reset(quietTime)
			select {
			case <-ctx.Done():
				return
			case <-w.busy:
			case <-tick.C:
			}
			tick.Reset(every)
		}
		w.resting.Store(false)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.watchOnce(w.c.Clock())
		}
	}
}

// idle reports whether the watchdog has nothing to do: no handler may run, and no condition may
// end.
func (w *Worker) idle() bool { return w.InHand() == 0 && !w.c.events.any() }

// wakeWatchdog ends the rest of the watchdog, because there is something in hand.
func (w *Worker) wakeWatchdog() {
	if !w.resting.Load() {
		return
	}
	select {
	case w.busy <- struct{}{}:
	default:
	}
}

func (w *Worker) watchOnce(now time.Time) {
	for i := range w.slots {
		r := w.slots[i].current.Load()
		if r == nil {
			continue
		}
		if !r.deadline.IsZero() && now.After(r.deadline) && r.end(context.DeadlineExceeded, w.since(now)) {
			limit := w.c.timeoutOf(r.d.Type)
			w.c.Observer.Late(r.claim(), limit)
			w.c.events.late(r.d, limit)
		}
		if !w.safe(r, w.since(now)) && !r.d.Completed() {
			w.interrupt(r, w.since(now), ErrLeaseLost)
		}
	}
	w.c.events.endQuiet(now)
	w.lookSoon(w.since(now))
}
