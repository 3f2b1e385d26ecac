package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
)

// settler settles in one call all deliveries that were decided during its last call. Three kinds do
// not hold up the others:
//
//	logged successes   gather for a while, unless a goroutine waits for the settler
//	failed for now     are repeated after a pause; if all failed, the settler waits for that
//	slow ones          settle in calls of their own, concurrently
type settler struct {
	w         *Worker
	box       outbox // settlements of the next call
	done      []*run // runs of box that leave the hand
	retries   outbox // settlements to repeat
	retryAt   <-chan time.Time
	pause     time.Duration
	gathering <-chan time.Time // no call until then
	down      bool             // the last call settled nothing
	ending    bool             // no handler runs any more
	slow      slowSettlements
	giveUpAt  <-chan time.Time // then the settler gives up
}

// settleLoop works until closing is closed and all is settled or given up.
func (w *Worker) settleLoop(closing <-chan struct{}) {
	s := settler{w: w, slow: newSlowSettlements(w)}
	defer s.slow.end()
	for {
		if !s.down && s.gathering == nil {
			s.take()
			s.settle()
			if s.ending && !s.left() && s.slow.idle() {
				return
			}
		}
		wake := w.wake
		if s.down || s.gathering != nil {
			wake = nil
		}
		select {
		case <-wake:
		case <-s.gathering:
			s.gathering = nil
		case <-w.urgent:
			s.gathering = nil
		case <-s.retryAt:
			s.repeat()
		case c := <-s.slow.back:
			s.slowDone(c)
		case <-closing:
			closing, s.ending, s.gathering = nil, true, nil
			s.giveUpAt = time.After(settleGrace)
		case <-s.giveUpAt:
			s.take()
			s.giveUp()
			return
		}
	}
}

// take empties the worker's shards into the outbox.
func (s *settler) take() {
	for i := range s.w.shards {
		s.w.shards[i].take(&s.box)
	}
}

// left reports whether there is a settlement to repeat.
func (s *settler) left() bool { return len(s.retries.runs) > 0 }

// settle settles the content of the outbox, in calls of at most MaxBatch.
func (s *settler) settle() {
	if s.w.c.ProgressLog != nil && len(s.box.runs) > 0 && !s.ending {
		s.gathering = time.After(gatherTime)
	}
	s.slow.takeFrom(&s.box)
	s.slow.start()
	for from := 0; from < len(s.box.runs); {
		to := from + fits(s.box.settlements[from:])
		s.call(s.box.settlements[from:to], s.box.runs[from:to])
		from = to
	}
	s.box.empty()
}

// fits returns how many settlements, from the first on, go into one call.
func fits(sts []nixie.Settlement) int {
	size, most := 0, min(len(sts), nixie.MaxBatch)
	for n := range most {
		for i := range sts[n].Then {
			size += len(sts[n].Then[i].Body)
		}
		if size > nixie.MaxBatchBytes {
			return n // more than 0: MaxThenBytes is less
		}
	}
	return most
}

// repeat settles again the deliveries that failed before, together with new ones: so it learns
// whether the source fails or only some settlements do.
func (s *settler) repeat() {
	s.retryAt, s.down, s.slow.down = nil, false, false
	s.take()
	s.box.join(&s.retries)
	s.retries.empty()
	s.settle()
}

// call settles and keeps the settlements that may succeed later.
func (s *settler) call(sts []nixie.Settlement, runs []*run) {
	failed := s.takeAnswers(sts, runs, s.w.callSource(sts))
	s.down = failed == len(sts)
	s.backOff(failed)
}

// callSource calls the source with a time limit.
func (w *Worker) callSource(sts []nixie.Settlement) []error {
	ctx, ended := w.limited(w.base, &w.settling, min(w.c.Lease, callLimit))
	defer ended()
	return w.c.Source.Settle(ctx, sts)
}

// slowDone takes the answers of a slow call.
func (s *settler) slowDone(c slowCall) {
	s.slow.out--
	failed := s.takeAnswers(c.settlements, c.runs, c.errs)
	s.slow.down = failed == len(c.runs)
	s.backOff(failed)
}

// takeAnswers applies the answers of the source. Deliveries that are settled leave the hand, and
// settlements that may succeed later stay in retries.
func (s *settler) takeAnswers(sts []nixie.Settlement, runs []*run, errs []error) (failed int) {
	w := s.w
	errs = w.c.settled(sts, errs)
	now := w.since(w.c.Clock())
	for i, err := range errs {
		if err != nil && refusesThen(&sts[i], err) {
			again := w.c.refused(&sts[i], err)
			s.retries.add(runs[i], &again)
			failed++
			continue
		}
		if err != nil && retryable(err) {
			failed++
			w.c.events.trouble(settling, err)
			if now < time.Duration(runs[i].leaseEnd.Load()) {
				s.retries.add(runs[i], &sts[i])
				continue
			}
		}
		held := errors.Is(err, nixie.ErrHeldUp)
		if err != nil && nixie.CodeOf(err) != nixie.CodeLeaseLost && !held {
			w.c.trouble(unexpected, fmt.Errorf("settle message %s: %w", sts[i].Delivery.ID, err))
		}
		if errors.Is(err, nixie.ErrClosed) {
			w.sourceClosed(err)
		}
		if held {
			w.endWith(err)
		}
		s.done = append(s.done, runs[i])
	}
	w.forget(s.done...)
	clear(s.done)
	s.done = s.done[:0]
	return failed
}

// settle applies decisions and tells the observer.
func (c *Config) settle(ctx context.Context, sts []nixie.Settlement) []error {
	return c.settled(sts, c.Source.Settle(ctx, sts))
}

// settled reads the answers of the source and tells the observer. If a handler completed its
// message in a transaction of its own, that ended the lease. Then the message has succeeded, even
// if the handler returned an error afterwards.
func (c *Config) settled(sts []nixie.Settlement, errs []error) []error {
	errs = answers(errs, len(sts))
	for i := range sts {
		st := &sts[i]
		if errs[i] == nil || nixie.CodeOf(errs[i]) != nixie.CodeLeaseLost || !st.Delivery.Completed() {
			continue
		}
		if st.Failure != nil {
			c.trouble(unexpected, nixie.Errorf(nixie.CodeConflict,
				"message %s was completed in a transaction of its handler and stays succeeded; "+
					"the error after that does not count: %s", st.Delivery.ID, st.Failure.Text))
		}
		*st, errs[i] = nixie.Settlement{Delivery: st.Delivery, Verb: nixie.Complete, Took: st.Took}, nil
	}
	c.Observer.Settled(c.Queue, sts, errs)
	c.events.settled(sts, errs)
	return errs
}

// backOff chooses the time of the next repeat, well before leases end.
func (s *settler) backOff(failed int) {
	first, most := min(firstPause, s.w.c.Lease/pauseParts), min(maxPause, s.w.c.Lease/pauseParts)
	if failed == 0 {
		s.pause = 0
	}
	if !s.left() {
		if failed == 0 {
			s.w.c.events.over(settling)
		}
		s.retryAt, s.down, s.slow.down = nil, false, false
		return
	}
	if s.retryAt == nil {
		s.pause = min(max(first, 2*s.pause), most)
		s.retryAt = time.After(s.pause)
	}
}

// giveUp leaves to their leases the deliveries that could not be settled.
func (s *settler) giveUp() {
	s.slow.end()
	for s.slow.out > 0 {
		s.slowDone(<-s.slow.back)
	}
	for _, o := range [...]*outbox{&s.box, &s.retries, &s.slow.waiting} {
		if n := len(o.runs); n > 0 {
			s.w.c.trouble(unexpected, nixie.Errorf(nixie.CodeUnavailable,
				"%d outcomes could not be settled before the worker ended: their messages come again when their leases end", n))
		}
		s.w.forget(o.runs...)
	}
}

// retryable reports whether the same settlement may succeed later. An unknown outcome is repeated
// too: if the settlement did happen, the repeat finds that the lease is gone.
func retryable(err error) bool {
	if errors.Is(err, nixie.ErrClosed) || errors.Is(err, nixie.ErrHeldUp) {
		return false
	}
	switch nixie.CodeOf(err) {
	case nixie.CodeUnavailable, nixie.CodeOutcomeUnknown, nixie.CodeLimit, nixie.CodeInternal:
		return true
	}
	return false
}

// answers returns n errors, also if the source gave another number.
func answers(errs []error, n int) []error {
	if len(errs) == n {
		return errs
	}
	err := nixie.Errorf(nixie.CodeInternal,
		"source gave %d answers to a call about %d deliveries: it has to give one for each", len(errs), n)
	errs = make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}
