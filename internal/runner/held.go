package runner

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/worker"
)

// breaker tells a person that the commands of a queue pause, and why.
func (r *Runner) breaker(change nixie.BreakerChange) {
	switch {
	case change.Since.IsZero():
		r.c.Warn("%s goes on: no more failures of reason %s", change.Queue, change.Reason)
	case change.Since.Equal(change.At) && !change.Until.IsZero(): // else the run ends, and says why
		r.c.Warn("%s pauses, %d failed in a row (reason %s): %s; next try at %s", change.Queue,
			change.Failures, change.Reason, change.Text, change.Until.UTC().Format(timeOfDay))
	}
}

// timeOfDay is the form in which a person is told when the next try is.
const timeOfDay = "15:04:05Z"

// heldBack returns the breaker that is tried last of those that are not closed; none is the zero
// value.
func (r *Runner) heldBack() (last nixie.BreakerChange) {
	w := r.worker()
	if w == nil {
		return last
	}
	open := w.OpenBreakers()
	if len(open) == 0 {
		return last
	}
	return slices.MaxFunc(open, func(a, b nixie.BreakerChange) int {
		return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(b.Reason, a.Reason), cmp.Compare(b.Queue, a.Queue))
	})
}

// worker returns the worker of the present work; nil before it begins.
func (r *Runner) worker() *worker.Worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.w
}

// heldText tells in a few words what holds messages back; empty if nothing does.
func (r *Runner) heldText() string {
	held := r.heldBack()
	switch {
	case held.State == "":
		return ""
	case held.Until.IsZero():
		return fmt.Sprintf("pauses (%s), trying", held.Reason)
	}
	return fmt.Sprintf("pauses (%s), next try at %s", held.Reason, held.Until.UTC().Format(timeOfDay))
}

// checkHeld ends work that is to drain its queues, when a breaker holds back what is left of them.
// It reports whether it did.
func (r *Runner) checkHeld(list []store.QueueInfo) bool {
	held := r.heldBack()
	if r.c.Until != Drained || held.State == "" || r.worker().InHand() > 0 {
		return false
	}
	waits := int64(0)
	for i := range list {
		if list[i].Name == held.Queue {
			waits = list[i].Ready + list[i].Scheduled
		}
	}
	if waits == 0 {
		return false
	}
	r.stop(&ending{EndHeld, fmt.Sprintf("%d of %s wait for what is away (reason %s): %s", waits, held.Queue, held.Reason, held.Text)})
	return true
}
