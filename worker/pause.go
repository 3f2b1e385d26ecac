package worker

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/policy"
)

// affordable tells which part of a message's deliveries breakers may use: half.
const affordable = 2

// allowed asks the breakers whether a run may begin. If not, it gives the delivery back until they
// allow a run again.
func (w *Worker) allowed(s *slot, r *run, at time.Duration) bool {
	if w.c.Breaker.Failures == 0 {
		return true
	}
	now := r.batch.moment(at)
	tickets, wait, changes, ok := w.breakers.begin(typeKeyOf(r.d), now)
	w.tell(changes, now)
	if !ok {
		w.postpone(r, now, wait)
		return false
	}
	s.tickets = tickets
	return true
}

// ended tells the breakers the outcome of a run; without a settlement the outcome is not known. A
// permanent failure is no outcome either: the message is to blame, and not a service that it needs.
func (w *Worker) ended(s *slot, r *run, st *nixie.Settlement, at time.Duration) {
	if w.c.Breaker.Failures == 0 {
		return
	}
	now := r.batch.moment(at)
	on, reason := policy.BreakerReturned, nixie.ReasonUnknown
	switch {
	case st == nil:
	case st.Verb == nixie.Complete:
		on = policy.BreakerSucceeded
	case st.Failure != nil && st.Verb != nixie.Release && st.Failure.Class != nixie.ClassPermanent:
		on, reason = policy.BreakerFailed, st.Failure.Reason
	}
	w.tell(w.breakers.end(typeKeyOf(r.d), s.tickets, on, reason, now), now)
}

// tell acts on changes of breakers. It gives back the deliveries that wait for a breaker which has
// opened, tells the observer, and makes the receiver compute its limit again.
func (w *Worker) tell(changes []nixie.BreakerChange, now time.Time) {
	if len(changes) == 0 {
		return
	}
	for _, change := range changes {
		if change.State == string(policy.BreakerOpen) {
			w.postponeWaiting(change, now)
		}
		w.c.Observer.Breaker(w.named(change, now))
		w.breakers.tell(change)
	}
	w.notifyChange()
}

// named adds the moment to a change, and the queue of the worker where the source names none.
func (w *Worker) named(change nixie.BreakerChange, now time.Time) nixie.BreakerChange {
	change.Queue, change.At = cmp.Or(change.Queue, w.c.Queue), now
	return change
}

// tellSource tells the source of changes, one after the other, and when the worker ends that its
// breakers have gone. What it cannot tell is told with the next change.
func (w *Worker) tellSource(ctx context.Context, keeper lease.BreakerKeeper) {
	open := map[breakerKey]nixie.BreakerChange{}
	tell := func(change nixie.BreakerChange) {
		asked, stop := context.WithTimeout(w.base, callLimit)
		defer stop()
		if err := keeper.KeepBreaker(asked, change); err != nil {
			w.c.trouble(unexpected, fmt.Errorf("tell of a circuit breaker of queue %s: %w", change.Queue, err))
		}
	}
	for {
		select {
		case <-w.breakers.told:
			for _, change := range w.breakers.news() {
				change = w.named(change, w.c.Clock())
				tell(change)
				key := breakerKey{typeKey{change.Queue, change.Type}, change.Reason}
				open[key] = change
				if change.State == policy.BreakerClosed.String() {
					delete(open, key)
				}
			}
		case <-ctx.Done():
			for _, change := range open {
				change.State, change.Until = policy.BreakerClosed.String(), time.Time{}
				tell(change)
			}
			return
		}
	}
}

func (w *Worker) postponeWaiting(change nixie.BreakerChange, now time.Time) {
	for _, b := range w.openBatches() {
		for r := range b.all() {
			if typeKeyOf(r.d) == (typeKey{change.Queue, change.Type}) && r.state.Load() == waiting {
				w.postpone(r, now, change.Until.Sub(now))
			}
		}
	}
}

// postpone gives a delivery back until its breaker allows a run again. The attempt is refunded, and
// the delivery counts.
func (w *Worker) postpone(r *run, now time.Time, wait time.Duration) {
	most := w.c.policies.of(r.d.Queue).ConfigFor(r.d.Type, "").MaxDeliveries
	if most > 0 && r.d.Deliveries*affordable >= most {
		w.breakers.saveDeliveries()
	}
	w.giveBackFor(r, w.since(now), wait)
}
