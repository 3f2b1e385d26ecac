package worker

import (
	"context"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// handle runs handlers in a goroutine: it takes the next chunk of any open batch.
func (w *Worker) handle(s *slot, all *sync.WaitGroup, b *batch) {
	finished := false
	defer func() {
		if finished {
			all.Done()
			return
		}
		go w.handle(s, all, b) // a handler ended this goroutine: another continues
	}()
	for {
		if b != nil {
			w.runThrough(s, b)
		}
		b = nil       // an idle goroutine must not keep the messages of its last batch
		w.settleNow() // nor wait for the settler
		select {
		case b = <-w.work:
		case <-w.quit:
			finished = true
			return
		}
	}
}

func (w *Worker) runThrough(s *slot, b *batch) {
	s.at = w.now()
	for n := b.next.Add(1) - 1; n < int64(len(b.chunks)); n = b.next.Add(1) - 1 {
		if !w.runChunk(s, &b.chunks[n]) {
			return
		}
	}
	for n := range b.chunks { // others may have taken runs and not begun them
		if !w.runChunk(s, &b.chunks[n]) {
			return
		}
	}
}

// runChunk begins the runs of a chunk that no goroutine has begun. It reports whether to go on.
func (w *Worker) runChunk(s *slot, of *chunk) bool {
	for of.next.Load() < int64(len(of.runs)) {
		if w.c.SettleEach && s.last != nil && !s.last.recorded {
			if !w.awaitSettled(s.last, w.changed.Wait) {
				return false
			}
			s.at = w.now()
		}
		i := of.next.Add(1) - 1
		if i >= int64(len(of.runs)) {
			return true
		}
		w.one(s, &of.runs[i])
	}
	return true
}

// awaitSettled waits until a run is settled, from one change to the next. It returns false when the
// worker drains.
func (w *Worker) awaitSettled(r *run, change func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r.state.Load() != settled && !w.draining {
		change()
	}
	return !w.draining
}

// one runs the handler on one delivery.
func (w *Worker) one(s *slot, r *run) {
	started := s.at
	if w.ending.Load() || !w.safe(r, started) {
		w.giveBack(r, started) // too late to start: the worker stops, or the lease may end at any moment
		return
	}
	if !w.allowed(s, r, started) {
		return
	}
	if !r.state.CompareAndSwap(waiting, running) {
		w.ended(s, r, nil, started)
		return // released or lost before it started
	}
	if w.c.ProgressLog != nil && w.c.ProgressLog.LogProgress(lease.Begun, r.d) != nil {
		r.state.Store(deciding)
		w.ended(s, r, nil, started)
		w.post(s.shard, r, &nixie.Settlement{Delivery: r.d, Verb: nixie.Release}) // a crash would look as if it had waited
		return
	}
	if limit := w.c.timeoutOf(r.d.Type); limit > 0 {
		r.deadline = r.batch.moment(started).Add(limit)
	}
	lease.Watch(r.d, r)
	if w.c.SettleEach { // otherwise it would stay in memory for nothing
		s.last = r
	}
	s.current.Store(r)
	if w.stopping.Load() {
		r.end(ErrStopping, started)
	}
	w.call(s, r, started)
}

// call calls the handler. The deferred function also runs when the handler panics, or ends its
// goroutine instead of returning.
func (w *Worker) call(s *slot, r *run, started time.Duration) {
	returned := false
	var err error
	defer func() {
		if v := recover(); v != nil {
			err = panicked(v)
		} else if !returned {
			err = nixie.WithReason(errGoexit, nixie.ReasonPanic)
		}
		s.current.Store(nil)
		s.at = w.now()
		w.prefetch.observe(s.at - started)
		w.finish(s, r, err, started, s.at)
	}()
	if err = damaged(r.d); err == nil {
		err = w.c.Handler.Handle(r, r.d)
	}
	returned = true
}

// finish decides about a delivery whose handler has returned.
func (w *Worker) finish(s *slot, r *run, err error, started, ended time.Duration) {
	why := r.close(ended)
	if !r.state.CompareAndSwap(running, deciding) {
		w.ended(s, r, nil, ended)
		w.c.trouble(unexpected, nixie.Errorf(nixie.CodeLeaseLost,
			"message %s: its handler returned long after its context had ended; the outcome does not count", r.d.ID))
		return
	}
	if err != nil && why == context.DeadlineExceeded {
		err = &lateError{w.c.timeoutOf(r.d.Type), err}
		why = nil
	}
	st := nixie.Settlement{Delivery: r.d, Verb: nixie.Complete} // the decision of every policy about a success
	switch {
	case isCancel(why): // the source will answer that the lease is gone
		st.Verb = nixie.Release
	case err != nil || !w.policyDecides || len(r.d.Tracking.Then) > 0:
		st = w.c.decide(r.d, err, why, r.batch.moment(started), r.batch.moment(ended))
	}
	st.Took = ended - started
	w.ended(s, r, &st, ended)
	r.recorded = w.record(&st)
	w.post(s.shard, r, &st)
}

// record logs a plain success and reports whether it did. The worker waits for every other outcome,
// which may end the job. It also waits for a success in a stream, because the next message waits
// for that.
func (w *Worker) record(st *nixie.Settlement) bool {
	d := st.Delivery
	return w.c.ProgressLog != nil && st.Verb == nixie.Complete && st.Failure == nil && st.Second == nil && len(st.Then) == 0 &&
		d.Stream == "" && len(lease.NewSteps(d)) == 0 && !d.Completed() && w.c.ProgressLog.LogProgress(lease.Succeeded, d) == nil
}

// post hands a settlement to the settler.
func (w *Worker) post(t *shard, r *run, st *nixie.Settlement) {
	first := t.post(r, st)
	if !r.recorded {
		w.settleNow()
	}
	if !first {
		return // the first one has woken the settler
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// settleNow makes the settler stop gathering.
func (w *Worker) settleNow() {
	if w.c.ProgressLog == nil {
		return
	}
	select {
	case w.urgent <- struct{}{}:
	default:
	}
}
