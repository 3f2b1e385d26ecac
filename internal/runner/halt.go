package runner

import (
	"strings"

	"github.com/nixie-go/nixie"
)

// haltNote begins the note of a queue that a run halted, so that the next run may resume it.
const haltNote = "halted by message "

func (r *Runner) halted(s nixie.QueueSettings) bool { return strings.HasPrefix(s.PausedNote, haltNote) }

func haltedBy(st *nixie.Settlement) error {
	text := ""
	if st.Failure != nil {
		text = ": " + st.Failure.Text
	}
	return nixie.Errorf(nixie.CodeConflict, "item %s failed%s", itemID(st.Delivery), text)
}

// halt ends the run for a reason: it ends running commands and releases their items. The first
// reason stays.
func (r *Runner) halt(why error) {
	if r.stop(why) {
		r.Abort()
	}
}

// stop ends the run for a reason after its running commands have finished. It reports whether there
// was a run. The first reason stays.
func (r *Runner) stop(why error) bool {
	r.mu.Lock()
	if r.halting == nil {
		r.halting = why
	}
	finish := r.finish
	r.mu.Unlock()
	if finish != nil {
		finish(why)
	}
	return finish != nil
}

func (r *Runner) whyHalted() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.halting
}

// wake wakes the receiver of a channel with a buffer of one.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
