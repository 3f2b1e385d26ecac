package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
)

// settler settles whatever was decided while the last settling ran: no timer,
// and one call for many. Only what is recorded gathers for a while, unless
// somebody waits for something. What fails for now is repeated after a pause and does
// not hold up the rest, unless nothing at all can be settled; nor does what the source
// calls slow, which is settled beside it.
type settler struct {
	w       *Worker
	box     outbox // at work on
	done    []*run // of box
	again   outbox // to be repeated
	due     <-chan time.Time
	pause   time.Duration
	resting <-chan time.Time // nothing is settled until then
	down    bool             // the last call settled nothing
	ending  bool             // nothing more will be decided
	slow    beside
	goodbye <-chan time.Time // then what is left is given up
}

// settleLoop works until closing is closed and all is settled or given up.
func (w *Worker) settleLoop(closing <-chan struct{}) {
	s := settler{w: w, slow: newBeside(w)}
	defer s.slow.end()
	for {
		if !s.down && s.resting == nil {
			s.take()
			s.settle()
			if s.ending && !s.left() && s.slow.idle() {
				return
			}
		}
		wake := w.wake
		if s.down || s.resting != nil {
			wake = nil
		}
		select {
		case <-wake:
		case <-s.resting:
			s.resting = nil
		case <-w.haste:
			s.resting = nil
		case <-s.due:
			s.repeat()
		case c := <-s.slow.back:
			s.landed(c)
		case <-closing:
			closing, s.ending, s.resting = nil, true, nil
			s.goodbye = time.After(lastSettling)
		case <-s.goodbye:
			s.take()
			s.giveUp()
			return
		}
	}
}

// take empties the worker's trays.
func (s *settler) take() {
	for i := range s.w.trays {
		s.w.trays[i].take(&s.box)
	}
}

// left reports whether something is to be repeated.
func (s *settler) left() bool { return len(s.again.runs) > 0 }

// settle settles what is in the box in as many calls as it takes.
func (s *settler) settle() {
	if s.w.c.ProgressLog != nil && len(s.box.runs) > 0 && !s.ending {
		s.resting = time.After(settleRest)
	}
	s.slow.pick(&s.box)
	s.slow.launch()
	for from := 0; from < len(s.box.runs); from += nixie.MaxBatch {
		to := min(from+nixie.MaxBatch, len(s.box.runs))
		s.call(s.box.settlements[from:to], s.box.runs[from:to])
	}
	s.box.empty()
}

// repeat settles once more what failed before, together with what is new: that
// tells whether the source fails or only some settlements do.
func (s *settler) repeat() {
	s.due, s.down, s.slow.down = nil, false, false
	s.take()
	s.box.join(&s.again)
	s.again.empty()
	s.settle()
}

// call settles and keeps what may succeed later.
func (s *settler) call(sts []nixie.Settlement, runs []*run) {
	failed := s.book(sts, runs, s.w.ask(sts))
	s.down = failed == len(sts)
	s.backOff(failed)
}

// ask has decisions applied.
func (w *Worker) ask(sts []nixie.Settlement) []error {
	ctx, cancel := context.WithTimeout(w.base, min(w.c.Lease, callLimit))
	defer cancel()
	return w.c.Source.Settle(ctx, sts)
}

// landed books what a slow call did.
func (s *settler) landed(c slowCall) {
	s.slow.out--
	failed := s.book(c.settlements, c.runs, c.errs)
	s.slow.down = failed == len(c.runs)
	s.backOff(failed)
}

// book takes answers in: what is settled is not in hand any more, and what may succeed
// later is kept.
func (s *settler) book(sts []nixie.Settlement, runs []*run, errs []error) (failed int) {
	w := s.w
	errs = w.c.settled(sts, errs)
	now := w.since(w.c.Clock())
	for i, err := range errs {
		if err != nil && retryable(err) {
			failed++
			w.c.journal.trouble(settling, err)
			if now < time.Duration(runs[i].leaseEnd.Load()) {
				s.again.add(runs[i], &sts[i])
				continue
			}
		}
		if err != nil && nixie.CodeOf(err) != nixie.CodeLeaseLost {
			w.c.trouble(failing, fmt.Errorf("settle message %s: %w", sts[i].Delivery.ID, err))
		}
		if errors.Is(err, nixie.ErrClosed) {
			w.gone(err)
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

// settled reads what the source answered, and tells the observer. Where a handler
// completed its message in a transaction of its own, the lease is over because of
// that: it succeeded, whatever the handler said afterwards.
func (c *Config) settled(sts []nixie.Settlement, errs []error) []error {
	errs = answers(errs, len(sts))
	for i := range sts {
		st := &sts[i]
		if errs[i] == nil || nixie.CodeOf(errs[i]) != nixie.CodeLeaseLost || !st.Delivery.Completed() {
			continue
		}
		if st.Failure != nil {
			c.trouble(failing, nixie.Errorf(nixie.CodeConflict,
				"message %s was completed in a transaction of its handler and stays succeeded; the error after that does not count: %s", st.Delivery.ID, st.Failure.Text))
		}
		*st, errs[i] = nixie.Settlement{Delivery: st.Delivery, Verb: nixie.Complete}, nil
	}
	c.Observer.OnSettled(c.Queue, sts, errs)
	c.journal.settled(sts, errs)
	return errs
}

// backOff chooses when to repeat. Repeats come well before leases end.
func (s *settler) backOff(failed int) {
	first, most := min(firstPause, s.w.c.Lease/hurry), min(maxPause, s.w.c.Lease/hurry)
	if failed == 0 {
		s.pause = 0
	}
	if !s.left() {
		if failed == 0 {
			s.w.c.journal.over(settling)
		}
		s.due, s.down, s.slow.down = nil, false, false
		return
	}
	if s.due == nil {
		s.pause = min(max(first, 2*s.pause), most)
		s.due = time.After(s.pause)
	}
}

// giveUp leaves to their leases what could not be settled.
func (s *settler) giveUp() {
	s.slow.end()
	for s.slow.out > 0 {
		s.landed(<-s.slow.back)
	}
	for _, o := range [...]*outbox{&s.box, &s.again, &s.slow.waiting} {
		if n := len(o.runs); n > 0 {
			s.w.c.trouble(failing, nixie.Errorf(nixie.CodeUnavailable,
				"%d outcomes could not be settled before the worker ended: their messages come again when their leases end", n))
		}
		s.w.forget(o.runs...)
	}
}

// retryable reports whether the same settlement may succeed later. An unknown
// outcome is repeated too: if it did happen the repeat finds its lease gone.
func retryable(err error) bool {
	if errors.Is(err, nixie.ErrClosed) {
		return false
	}
	switch nixie.CodeOf(err) {
	case nixie.CodeUnavailable, nixie.CodeOutcomeUnknown, nixie.CodeLimit, nixie.CodeInternal:
		return true
	}
	return false
}

// answers makes sure that there is one for each of n.
func answers(errs []error, n int) []error {
	if len(errs) == n {
		return errs
	}
	err := nixie.Errorf(nixie.CodeInternal, "source gave %d answers to a call about %d deliveries: it has to give one for each", len(errs), n)
	errs = make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}
