package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// tellLimit bounds the call that tells the source of a stop: the rest of the stop waits for it.
const tellLimit = time.Second

// tellStopping tells the source whether this process was told to stop, so that what it leaves
// behind is no crash. A stop goes on if that fails.
func (w *Worker) tellStopping(told bool) {
	source, ok := w.c.Source.(lease.Stopper)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(w.base, tellLimit)
	defer cancel()
	if err := source.Stopping(ctx, told); err != nil {
		w.c.trouble(unexpected, fmt.Errorf("tell the source of a stop: what this process has in hand may count as crashed: %w", err))
	}
}

// drain gives back deliveries that have not started and waits for the handlers. It reports whether
// the receiver and all handlers have ended.
func (w *Worker) drain(receiver, handlers *sync.WaitGroup) (idle bool) {
	w.mu.Lock()
	w.draining = true
	w.changed.Broadcast()
	w.mu.Unlock()
	close(w.quit)
	w.releaseWaiting()
	all := make(chan struct{})
	go func() {
		receiver.Wait()
		w.releaseWaiting() // the receiver may have received more meanwhile
		handlers.Wait()
		close(all)
	}()
	if w.c.Drain > 0 && w.waitForHandlers(all) {
		return true
	}
	w.endAll()
	return within(all, stuckAfter)
}

// waitForHandlers waits for all handlers, as long as they may go on.
func (w *Worker) waitForHandlers(all <-chan struct{}) (idle bool) {
	patience := time.NewTimer(w.c.Drain)
	defer patience.Stop()
	select {
	case <-all:
		return true
	case <-patience.C:
	case <-w.stop:
	}
	return false
}

// releaseWaiting gives back every delivery that no handler has begun.
func (w *Worker) releaseWaiting() {
	now := w.since(w.c.Clock())
	for _, b := range w.openBatches() {
		for r := range b.all() {
			w.giveBack(r, now)
		}
	}
}

// giveBack releases a delivery unless a handler has begun it.
func (w *Worker) giveBack(r *run, now time.Duration) { w.giveBackFor(r, now, 0, nixie.NoWaiver) }

// giveBackFor releases a delivery, with a delay, unless a handler has begun it.
func (w *Worker) giveBackFor(r *run, now, delay time.Duration, waiver nixie.Waiver) {
	if r.state.CompareAndSwap(waiting, deciding) {
		r.end(context.Canceled, now)
		w.post(&w.shards[0], r, &nixie.Settlement{
			Delivery: r.d, Verb: nixie.Release, Delay: min(delay, nixie.MaxDelay), Waiver: waiver,
		})
	}
}

// endAll ends the contexts of all running handlers.
func (w *Worker) endAll() {
	w.stopping.Store(true)
	now := w.since(w.c.Clock())
	for i := range w.slots {
		if r := w.slots[i].current.Load(); r != nil {
			r.end(ErrStopping, now)
		}
	}
}

// closed returns a channel that is closed when all of wg is done.
func closed(wg *sync.WaitGroup) <-chan struct{} {
	c := make(chan struct{})
	go func() { wg.Wait(); close(c) }()
	return c
}

// within waits for at most d and reports whether c was closed by then.
func within(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}
