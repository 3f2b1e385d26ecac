package runner

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/store"
)

// abandonedWait bounds the wait for the commands that a dead run left.
const abandonedWait = 10 * time.Second

// source is the job's queue. Before an item of a dead run is judged or runs, it ends the commands
// that the dead run left. So no item runs twice at the same time.
type source struct {
	*store.Source
	r *Runner
}

// Receive implements nixie.Source.
func (s *source) Receive(ctx context.Context, want nixie.Want) ([]*nixie.Delivery, error) {
	got, err := s.Source.Receive(ctx, want)
	s.r.outage.note(ctx, receiving, err)
	for _, d := range got {
		if d.Abandoned {
			s.r.endAbandoned(d.AbandonedBy)
		} else if stopped := d.Patience.StoppedBy; stopped != "" {
			s.r.endAbandoned(stopped)
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
	s.r.outage.note(ctx, settling, failed)
	return errs
}

// endAbandoned ends the commands of a dead run, once. Commands that this run abandoned itself, when
// its process was frozen for longer than a lease, are ended by the worker.
func (r *Runner) endAbandoned(owner string) {
	if owner == r.c.Owner || r.ended[owner] {
		return
	}
	r.ended[owner] = true
	if err := command.EndAbandoned(r.ownersFolder(), owner, abandonedWait); err != nil {
		r.c.Warn("commands of the run %s could not be ended, so an item may run twice at once; they see a lower NIXIE_LEASE: %v", owner,
			err)
		return
	}
	_ = os.RemoveAll(r.verdictFolder(owner)) // a leftover is small and unused
}

// Calls of a store or source that may fail.
const (
	receiving = iota
	settling
	watching
	counting
	filling // a disk on which commands work
	callCount
)

// storePatience bounds the time that each try of a call may fail before the run ends. Ending loses
// nothing: the items are claimed again later.
const storePatience = 10 * time.Second

// outage tells a person each error of the store once, and ends the run when the errors last.
type outage struct {
	r *Runner

	mu    sync.Mutex
	since [callCount]time.Time // of the first failure in a row; zero means none
	told  string
}

// toldElsewhere lists the states of a worker whose errors outage tells, or who ends the run.
var toldElsewhere = []string{"receive", "settle", "end"}

// note notes the result of a call.
func (t *outage) note(ctx context.Context, what int, err error) {
	if ctx.Err() != nil && err != nil {
		return // the run was told to stop
	}
	t.mu.Lock()
	now := t.r.c.Clock()
	if err == nil {
		if what == filling && !t.since[what].IsZero() {
			t.told = ""
			t.r.c.Warn("there is room again: the job goes on")
		}
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

// patience bounds how long an error may last. The store may know that it is worth waiting longer.
func (t *outage) patience(err error) time.Duration {
	var full *command.FullError
	if errors.As(err, &full) {
		return roomPatience
	}
	if t.r.store == nil {
		return brokerPatience
	}
	if away := t.r.store.Features().Patience; away != nil {
		if most := away(err); most > 0 {
			return most
		}
	}
	return min(storePatience, t.r.c.Lease)
}
