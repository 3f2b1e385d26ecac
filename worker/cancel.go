package worker

import (
	"context"
	"errors"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// A cancel ends the lease of a message at once. Its holder would hear of that at the next renewal,
// and not why. So a worker looks for cancels itself, in one call for all its handlers.

// lookEvery is the pause between two looks for cancels. While no handler runs there is none.
const lookEvery = time.Second

// CanceledError is the cause of the end of a handler's context when an operator canceled its
// message. It is an [ErrLeaseLost] as well, because the cancel ended the lease.
type CanceledError struct{ By, Reason string }

func (e *CanceledError) Error() string {
	if e.Reason == "" {
		return "canceled by " + e.By
	}
	return "canceled by " + e.By + ": " + e.Reason
}

// Unwrap returns [ErrLeaseLost].
func (e *CanceledError) Unwrap() error { return ErrLeaseLost }

// isCancel reports whether the context of a handler ended because its message was canceled.
func isCancel(why error) bool {
	_, ok := errors.AsType[*CanceledError](why)
	return ok
}

// wasCanceled reports whether the handler of a delivery ended because the message was canceled.
func wasCanceled(d *nixie.Delivery) bool {
	r, ok := d.Tracking.Watcher.(*run)
	if !ok {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return isCancel(r.cause)
}

// lookSoon makes cancelLoop look, unless it did so within lookEvery. Only the watchdog calls it.
func (w *Worker) lookSoon(now time.Duration) {
	if now < w.nextLook {
		return
	}
	w.nextLook = now + lookEvery
	select {
	case w.look <- struct{}{}:
	default: // the last look still lasts
	}
}

// cancelLoop ends the runs whose messages were canceled.
func (w *Worker) cancelLoop(ctx context.Context, teller lease.CancelTeller) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.look:
		}
		var runs []*run
		for i := range w.slots {
			if r := w.slots[i].current.Load(); r != nil && !r.d.Completed() {
				runs = append(runs, r)
			}
		}
		for i, why := range w.cancels(ctx, teller, runs) {
			w.lose(runs[i], why)
		}
	}
}

// cancels returns why runs were canceled, by their index. It knows of none when the source does not
// answer: renewals report that.
func (w *Worker) cancels(ctx context.Context, teller lease.CancelTeller, runs []*run) map[int]error {
	found := map[int]error{}
	call, stop := context.WithTimeout(ctx, callLimit)
	defer stop()
	for from := 0; from < len(runs); from += nixie.MaxBatch {
		part := runs[from:min(from+nixie.MaxBatch, len(runs))]
		ids := make([]nixie.ID, len(part))
		for i, r := range part {
			ids[i] = r.d.ID
		}
		known, err := teller.Canceled(call, ids)
		if err != nil {
			return found
		}
		for i, id := range ids {
			if c, ok := known[id]; ok {
				found[from+i] = &CanceledError{By: c.By, Reason: c.Reason}
			}
		}
	}
	return found
}

// loseAll ends runs that lost their leases, and says of which the messages were canceled.
func (w *Worker) loseAll(ctx context.Context, runs []*run) {
	var why map[int]error
	if teller, ok := w.c.Source.(lease.CancelTeller); ok && len(runs) > 0 {
		why = w.cancels(ctx, teller, runs)
	}
	for i, r := range runs {
		if err := why[i]; err != nil {
			w.lose(r, err)
		} else {
			w.lose(r, ErrLeaseLost)
		}
	}
}
