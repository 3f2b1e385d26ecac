package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
)

// settleLoop settles whatever was decided while the last settling ran: no timer,
// and one call for many.
func (w *Worker) settleLoop(closing <-chan struct{}) {
	pause := firstPause
	for {
		sts, owners := w.decided()
		if len(sts) == 0 {
			select {
			case <-w.wake:
				continue
			case <-closing:
				if sts, owners = w.decided(); len(sts) == 0 {
					return
				}
			}
		}
		failed := w.settleNow(sts, owners)
		if failed == 0 {
			pause = firstPause
			continue
		}
		// Nothing is lost: what cannot be settled before its lease ends is
		// handed out again.
		sleep(w.base, pause)
		pause = min(2*pause, maxPause)
	}
}

// decided takes the outbox.
func (w *Worker) decided() ([]nixie.Settlement, []sent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.outbox), nixie.MaxBatch)
	sts, owners := w.outbox[:n:n], w.owners[:n:n]
	w.outbox, w.owners = w.outbox[n:], w.owners[n:]
	if len(w.outbox) == 0 {
		w.outbox, w.owners = nil, nil
	}
	return sts, owners
}

// settleNow settles and puts back what may succeed later. It returns how many
// that were.
func (w *Worker) settleNow(sts []nixie.Settlement, owners []sent) (again int) {
	ctx, cancel := context.WithTimeout(w.base, w.c.Lease)
	defer cancel()
	errs := w.c.Source.Settle(ctx, sts)
	w.c.Observer.OnSettled(w.c.Queue, sts, errs)
	now := w.c.Clock()
	for i, err := range errs {
		if err != nil && retryable(err) && w.since(now) < time.Duration(owners[i].b.leaseEnd.Load()) {
			again++
			w.mu.Lock()
			w.outbox, w.owners = append(w.outbox, sts[i]), append(w.owners, owners[i])
			w.mu.Unlock()
			continue
		}
		if err != nil && nixie.CodeOf(err) != nixie.CodeLeaseLost {
			w.c.Observer.OnTrouble(w.c.Queue, fmt.Errorf("settle message %s: %w", sts[i].Delivery.ID, err))
		}
		w.forget(owners[i].b, owners[i].r)
	}
	return again
}

// retryable reports whether the same settlement may succeed later. An unknown
// outcome is repeated too: if it did happen the repeat finds its lease gone.
func retryable(err error) bool {
	switch nixie.CodeOf(err) {
	case nixie.CodeUnavailable, nixie.CodeOutcomeUnknown, nixie.CodeLimit, nixie.CodeInternal:
		return true
	}
	return false
}

// timedOut marks the error of a handler whose time was up.
func timedOut(err error, limit time.Duration) error {
	if o := nixie.OutcomeOf(err); o.Reason != "" || o.Class != "" {
		return err
	}
	return nixie.WithReason(fmt.Errorf("no end after %s: %w", limit, err), nixie.ReasonTimeout)
}

// drain gives back what has not started and waits for what has. It reports
// whether handlers are left that ignore the end of their context.
func (w *Worker) drain(handlers interface{ Wait() }) (stuck bool) {
	w.releaseWaiting()
	close(w.work)
	idle := make(chan struct{})
	go func() { handlers.Wait(); close(idle) }()

	if w.c.Drain > 0 {
		patience := time.NewTimer(w.c.Drain)
		defer patience.Stop()
		select {
		case <-idle:
			return false
		case <-patience.C:
		case <-w.stop:
		}
	}
	w.endAll(errStopping)
	last := time.NewTimer(stuckAfter)
	defer last.Stop()
	select {
	case <-idle:
		return false
	case <-last.C:
		return true
	}
}

// releaseWaiting gives back every delivery that no handler has begun.
func (w *Worker) releaseWaiting() {
	for _, b := range w.openBatches() {
		for i := range b.runs {
			if r := &b.runs[i]; r.state.CompareAndSwap(waiting, deciding) {
				w.post(b, r, nixie.Settlement{Delivery: r.d, Verb: nixie.Release})
			}
		}
	}
}

func (w *Worker) openBatches() []*batch {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*batch(nil), w.batches...)
}

// endAll ends the contexts of all running handlers.
func (w *Worker) endAll(why error) {
	w.stopping.Store(true)
	for i := range w.slots {
		if r := w.slots[i].Load(); r != nil {
			r.end(why)
		}
	}
}
