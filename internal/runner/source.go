package runner

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/store"
)

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
	s.r.trouble.note(ctx, receiving, err)
	for _, d := range got {
		if d.Abandoned {
			s.r.clear(d.AbandonedBy)
		}
	}
	return got, err
}

// Settle implements nixie.Source.
func (s *source) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	errs := s.Source.Settle(ctx, settlements)
	var failed error
	for _, err := range errs {
		if err != nil && nixie.CodeOf(err) != nixie.CodeLeaseLost {
			failed = err
			break
		}
	}
	s.r.trouble.note(ctx, settling, failed)
	return errs
}

// clear ends the commands of a run that is gone, once. What this run itself
// abandoned, because its process was frozen for longer than a lease, the worker
// ends.
func (r *Runner) clear(owner string) {
	if owner == r.c.Owner || r.cleared[owner] {
		return
	}
	r.cleared[owner] = true
	if err := command.EndAbandoned(r.ownersFolder(), owner, abandonedWait); err != nil {
		r.c.Warn("commands of the run %s could not be ended, so an item may run twice at once; they see a lower NIXIE_LEASE: %v", owner, err)
		return
	}
	_ = os.RemoveAll(r.verdictFolder(owner)) // what stays is small, and nobody reads it
}

// What a run asks of its store.
const (
	receiving = iota
	settling
	watching
	counting
	asked // how many there are
)

// troublePatience is how long a store may fail in every try before the run
// ends. Nothing is lost by ending: the items are handed out again.
const troublePatience = 10 * time.Second

// trouble tells a person once of each thing that is wrong with the store, and
// ends the run when it lasts.
type trouble struct {
	r *Runner

	mu    sync.Mutex
	since [asked]time.Time // of the first of a row of failures; zero is none
	told  string
}

// toldByTrouble are the states of a worker that are told here.
var toldByTrouble = []string{"receive", "settle"}

// note notes how a call went.
func (t *trouble) note(ctx context.Context, what int, err error) {
	if ctx.Err() != nil && err != nil {
		return // it was told to stop
	}
	t.mu.Lock()
	now := t.r.c.Clock()
	if err == nil {
		t.since[what] = time.Time{}
		t.mu.Unlock()
		return
	}
	if t.since[what].IsZero() {
		t.since[what] = now
	}
	lasts := now.Sub(t.since[what]) >= t.patience(err)
	news := err.Error() != t.told
	t.told = err.Error()
	t.mu.Unlock()
	if lasts {
		t.r.halt(err)
	} else if news {
		t.r.c.Warn("%v; trying again", err)
	}
}

// patience is how long an error may last. The store knows what may be waited for.
func (t *trouble) patience(err error) time.Duration {
	if t.r.store == nil {
		return brokerPatience
	}
	if away := t.r.store.Features().Patience; away != nil {
		if most := away(err); most > 0 {
			return most
		}
	}
	return min(troublePatience, t.r.c.Lease)
}
