package worker

import (
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// affordable is the part of a message's deliveries that breakers may use: half.
const affordable = 2

// allowed asks the breakers whether a run may begin. What may not is given back
// until it is tried again.
func (w *Worker) allowed(s *slot, r *run, at time.Duration) bool {
	if w.c.Breaker.Failures == 0 {
		return true
	}
	now := r.batch.moment(at)
	tickets, wait, changes, ok := w.circuits.begin(kindOf(r.d), now)
	w.tell(changes, now)
	if !ok {
		w.postpone(r, now, wait)
		return false
	}
	s.tickets = tickets
	return true
}

// ended tells the breakers how a run ended; without a settlement its outcome is
// not known. A permanent failure says something about its message and nothing
// about what it depends on: it is no outcome either.
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
	w.tell(w.circuits.end(kindOf(r.d), s.tickets, on, reason, now), now)
}

// tell acts on changes of breakers: what waits for one that has opened is given
// back, who waits to receive looks again, the observer is told.
func (w *Worker) tell(changes []nixie.BreakerChange, now time.Time) {
	if len(changes) == 0 {
		return
	}
	for _, change := range changes {
		if change.State == string(policy.BreakerOpen) {
			w.postponeWaiting(change, now)
		}
		if change.Queue == "" {
			change.Queue = w.c.Queue
		}
		w.c.Observer.OnBreaker(change)
	}
	w.announce()
}

func (w *Worker) postponeWaiting(change nixie.BreakerChange, now time.Time) {
	for _, b := range w.openBatches() {
		for r := range b.all() {
			if kindOf(r.d) == (kind{change.Queue, change.Type}) && r.state.Load() == waiting {
				w.postpone(r, now, change.Until.Sub(now))
			}
		}
	}
}

// postpone gives a delivery back until its breaker is tried again: its attempt is
// refunded, and its delivery counts.
func (w *Worker) postpone(r *run, now time.Time, wait time.Duration) {
	most := w.c.rules.of(r.d.Queue).ConfigFor(r.d.Type, "").MaxDeliveries
	if most > 0 && r.d.Deliveries*affordable >= most {
		w.circuits.tight()
	}
	w.giveBackFor(r, w.since(now), wait)
}
