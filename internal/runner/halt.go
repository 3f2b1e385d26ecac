package runner

import (
	"context"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/store"
)

// haltNote begins the note of a queue that a run halted, so that the next run
// knows that it may go on.
const haltNote = "halted by message "

func (r *Runner) halted(s nixie.QueueSettings) bool { return strings.HasPrefix(s.PausedNote, haltNote) }

func haltedBy(st *nixie.Settlement) error {
	text := ""
	if st.Failure != nil {
		text = ": " + st.Failure.Text
	}
	return nixie.Errorf(nixie.CodeConflict, "item %s failed%s", itemID(st.Delivery), text)
}

// halt ends the run for a reason: commands that run are ended and released.
func (r *Runner) halt(why error) {
	r.mu.Lock()
	if r.halting == nil {
		r.halting = why
	}
	finish := r.finish
	r.mu.Unlock()
	if finish != nil {
		finish(why)
	}
}

func (r *Runner) whyHalted() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.halting
}

// abandonedWait is how long a restart waits for what a dead run left behind.
const abandonedWait = 10 * time.Second

// source is the job's queue. Before an item of a dead run is judged, the
// commands that that run left behind are ended: no item runs twice at once.
type source struct {
	*store.Source
	r *Runner
}

// Receive implements nixie.Source.
func (s *source) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	got, err := s.Source.Receive(ctx, want)
	for _, d := range got {
		if d.Abandoned && !s.r.cleared[d.AbandonedBy] {
			s.r.cleared[d.AbandonedBy] = true
			if err := command.EndAbandoned(s.r.ownersFolder(), d.AbandonedBy, abandonedWait); err != nil {
				s.r.c.Warn("commands of the run %s could not be ended, so an item may run twice at once; they see a lower NIXIE_LEASE: %v", d.AbandonedBy, err)
			}
		}
	}
	return got, err
}
