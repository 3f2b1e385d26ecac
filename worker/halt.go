package worker

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// HaltedError is the error of a Run that has ended because nothing succeeds: see
// [Config.HaltAfter].
type HaltedError struct {
	Breaker nixie.BreakerChange // that was open, with the newest failure that counted
	Failed  int                 // attempts that failed, until one succeeded or Run ended
	Alike   bool                // they are of one cause

	// Succeeded: an attempt that was under way at the halt has succeeded.
	Succeeded bool
}

func (e *HaltedError) Error() string {
	count, how := fmt.Sprintf("all %d", e.Failed), " the same way"
	if e.Succeeded {
		count = fmt.Sprintf("the first %d", e.Failed)
	}
	if !e.Alike {
		how = ", the last with reason " + string(e.Breaker.Reason)
	}
	return fmt.Sprintf("%s attempts failed%s: %s", count, how, short(e.Breaker.Text))
}

// halting decides when Run ends because nothing succeeds.
type halting struct {
	after time.Duration // 0 is never
	by    atomic.Pointer[nixie.BreakerChange]

	mu         sync.Mutex
	failed     int    // attempts that failed while none had succeeded
	unrunnable int    // those of them whose command could not be run
	cause      string // fingerprint of the first
	mixed      bool   // others have another one
}

// Exit codes of a shell whose program cannot be run, or is not there.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// note counts a failed attempt.
func (h *halting) note(st *nixie.Settlement) {
	f := st.Failure
	if h.after == 0 || f == nil || st.Verb == nixie.Release {
		return
	}
	_, cause := policy.SignatureOf(f, &st.Delivery.Message)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed++; h.failed == 1 {
		h.cause = cause
	}
	h.mixed = h.mixed || cause != h.cause
	if f.ExitCode != nil && (*f.ExitCode == exitNotExecutable || *f.ExitCode == exitNotFound) {
		h.unrunnable++
	}
}

// due reports whether a breaker that is open has been so for long enough. No time helps when every
// attempt failed because its command could not be run.
func (h *halting) due(open *nixie.BreakerChange) bool {
	if h.after == 0 {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unrunnable > 0 && h.unrunnable == h.failed || open.At.Sub(open.Since) >= h.after
}

// lastTry returns when a breaker that is open is tried next: the last try before a halt is not
// later than that.
func (h *halting) lastTry(b *policy.Breaker, now time.Time) time.Time {
	if last := b.Since.Add(h.after); h.after > 0 && now.Before(last) && last.Before(b.Until) {
		return last
	}
	return b.Until
}

// halt ends Run if nothing has succeeded, and a breaker has been open for long enough. Handlers
// that run may finish.
func (w *Worker) halt(change nixie.BreakerChange) bool {
	if w.Succeeded() || !w.halting.due(&change) {
		return false
	}
	if w.halting.by.CompareAndSwap(nil, &change) {
		w.endRun(nil)
	}
	return true
}

// haltIdle ends Run if a halt was due for a while when the worker asked the source, which had
// nothing that the last try could take.
func (w *Worker) haltIdle(asked time.Duration) {
	if w.halting.after == 0 || w.InHand() > 0 {
		return
	}
	for _, change := range w.OpenBreakers() {
		change.At = w.epoch.Add(asked - w.Wait())
		w.halt(change)
	}
}

// halted returns the error of a Run that was halted, or nil.
func (w *Worker) halted() error {
	by := w.halting.by.Load()
	if by == nil {
		return nil
	}
	h := &w.halting
	h.mu.Lock()
	defer h.mu.Unlock()
	err := &HaltedError{Breaker: *by, Failed: h.failed, Alike: !h.mixed, Succeeded: w.Succeeded()}
	w.c.events.ended(err)
	return err
}
