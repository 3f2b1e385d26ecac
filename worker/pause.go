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

// OpenBreakers lists the circuit breakers of the worker that are not closed, as they are now. They
// may be asked for at any time.
func (w *Worker) OpenBreakers() []nixie.BreakerChange {
	list := w.breakers.open()
	now := w.c.Clock()
	for i := range list {
		list[i] = w.named(list[i], now)
	}
	return list
}

// Succeeded reports whether the worker has completed a message.
func (w *Worker) Succeeded() bool { return w.breakers.succeeded.Load() }

// allowed asks the breakers whether a run may begin. If not, it gives the delivery back until they
// allow a run again.
func (w *Worker) allowed(s *slot, r *run, at time.Duration) bool {
	if !w.breakers.troubled.Load() {
		if s.pass.tickets != nil {
			s.pass = pass{}
		}
		return true
	}
	now := r.batch.moment(at)
	passed, wait, changes, ok := w.breakers.begin(typeKeyOf(r.d), now)
	w.tell(changes, now)
	if !ok {
		w.breakers.looked()
		w.postpone(r, now, wait)
		return false
	}
	s.pass, r.d.Tracking.Trial = passed, passed.trial
	return true
}

// ended tells the breakers the outcome of a run; without a settlement the outcome is not known. A
// message that has tried an open breaker goes back until after the next try, so that this takes
// another one.
func (w *Worker) ended(s *slot, r *run, st *nixie.Settlement, at time.Duration) {
	c := &w.breakers
	if st != nil && !c.succeeded.Load() {
		w.halting.note(st)
	}
	on, failure := policy.BreakerReturned, (*nixie.Failure)(nil)
	switch {
	case st == nil:
	case st.Verb == nixie.Complete:
		on = policy.BreakerSucceeded
	case st.Failure != nil && st.Verb != nixie.Release && c.counts(c.rulesOf(r.d.Queue), st.Failure):
		on, failure = policy.BreakerFailed, st.Failure
	}
	first := on == policy.BreakerSucceeded && !c.succeeded.Load()
	if !first && failure == nil && !c.troubled.Load() {
		return
	}
	now := r.batch.moment(at)
	if first {
		w.tell(c.firstSuccess(), now)
	}
	changes := c.end(r.d, &s.pass, on, failure, now)
	w.tell(changes, now)
	if !s.pass.try || st == nil || st.Verb != nixie.Retry {
		return
	}
	for _, change := range changes {
		st.Delay = min(max(st.Delay, change.Until.Sub(now)+2*policy.MinSpacing), nixie.MaxDelay)
	}
	st.Failure.NextAt = now.Add(st.Delay)
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
		change = w.named(change, now)
		if change.State == string(policy.BreakerOpen) && w.halt(change) {
			change.Until = time.Time{} // there is no further try
		}
		w.c.Observer.Breaker(change)
		w.c.events.breaker(change)
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

// postpone gives a delivery back until its breaker is tried again. It costs nothing. Where one
// message is tried at a time it waits until that has begun.
func (w *Worker) postpone(r *run, now time.Time, wait time.Duration) {
	if w.breakers.rulesOf(r.d.Queue).Healing {
		wait += policy.MinSpacing
	}
	w.giveBackFor(r, w.since(now), wait, nixie.WaiveUntried)
}
