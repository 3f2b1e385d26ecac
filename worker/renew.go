package worker

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

const (
	watchEvery = 10 * time.Millisecond // how late the end of a deadline may be noticed
	renewParts = 3                     // leases are renewed at every third of their length
	margin     = 5                     // a handler's context ends a fifth of a lease before the lease can
)

// since is a moment as the time since the worker was made. Like that it keeps
// the monotonic clock, which does not jump.
func (w *Worker) since(t time.Time) time.Duration { return t.Sub(w.epoch) }

// safe reports whether work under the batch's leases may begin or go on.
func (w *Worker) safe(b *batch, now time.Time) bool {
	return w.since(now) < time.Duration(b.leaseEnd.Load())-w.c.Lease/margin
}

// renewLoop extends the leases of everything in hand.
func (w *Worker) renewLoop(ctx context.Context) {
	tick := time.NewTicker(w.c.Lease / renewParts)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.renew(ctx)
		}
	}
}

// renew extends every open batch by one call and ends what was lost.
func (w *Worker) renew(ctx context.Context) {
	var ds []*nixie.Delivery
	var of []sent
	asked := w.c.Clock()
	for _, b := range w.openBatches() {
		for i := range b.runs {
			r := &b.runs[i]
			if s := r.state.Load(); s == settled || w.ignores(r, asked) {
				continue
			}
			ds, of = append(ds, r.d), append(of, sent{b, r})
		}
	}
	if len(ds) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, w.c.Lease/renewParts)
	defer cancel()
	errs := w.c.Source.Extend(ctx, ds, w.c.Lease)
	renewed := map[*batch]bool{}
	for i, err := range errs {
		switch {
		case err == nil:
			renewed[of[i].b] = true
		case nixie.CodeOf(err) == nixie.CodeLeaseLost:
			w.lose(of[i].b, of[i].r)
		default:
			w.c.Observer.OnTrouble(w.c.Queue, err)
		}
	}
	for b := range renewed {
		b.leaseEnd.Store(int64(w.since(asked) + w.c.Lease))
	}
}

// ignores reports whether a handler has gone on for a whole lease after its
// deadline: its lease is left to end, so that somebody else gets the message.
func (w *Worker) ignores(r *run, now time.Time) bool {
	return r.state.Load() == running && w.c.Timeout > 0 && r.Err() != nil && now.After(r.deadline.Add(w.c.Lease))
}

// lose ends a delivery whose lease is not ours any more. One that is being
// settled just now may well have been settled: the answer to that tells.
func (w *Worker) lose(b *batch, r *run) {
	if r.state.CompareAndSwap(waiting, deciding) {
		w.drop(b, r)
		return
	}
	if r.state.Load() == running {
		r.end(errLeaseLost)
	}
}

// watch ends the contexts of handlers whose deadline or lease is over.
func (w *Worker) watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.watchOnce()
		}
	}
}

func (w *Worker) watchOnce() {
	now := w.c.Clock()
	for i := range w.slots {
		r := w.slots[i].Load()
		if r == nil || r.Err() != nil {
			continue
		}
		if !r.deadline.IsZero() && now.After(r.deadline) {
			r.end(context.DeadlineExceeded)
			w.c.Observer.OnLate(r.d, w.c.Timeout)
		}
	}
	for _, b := range w.openBatches() {
		if w.safe(b, now) {
			continue
		}
		for i := range b.runs {
			if r := &b.runs[i]; r.state.Load() == running {
				r.end(errLeaseLost)
			}
		}
	}
}
