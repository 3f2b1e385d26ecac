// Package rawlimit drains messages by scripts of the server alone, without anything that makes a
// queue of them: no worker, no policy, no renewal of leases.
package rawlimit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/nixie-go/nixie/bench/contest"
)

const (
	perCall = 1000
	workers = 2
	lease   = 30 // seconds
)

// Entrants returns the limits.
func Entrants() []contest.Entrant {
	entrant := func(name, title string, open func(context.Context, contest.Setup) (contest.Library, error)) contest.Entrant {
		return contest.Entrant{
			Name: name, Kind: contest.Limit, Only: []contest.Scenario{contest.Drain}, Open: open,
			Settings: fmt.Sprintf("a limit: %s; %d loops, %d messages a call", title, workers, perCall),
		}
	}
	return []contest.Entrant{
		entrant("list", "a list, with a lease for a batch; a call ends a batch and takes the next", openList),
		entrant("script", "the script of Nixie's mailbox, a call to claim and one to acknowledge", openScript),
	}
}

// worker is one loop.
type worker struct {
	number, calls int
	ended         []any // names what the next step ends
}

// token names the lease of a call.
func (w *worker) token() string { return strconv.Itoa(w.number) + ":" + strconv.Itoa(w.calls) }

// step ends the messages of the step before, and returns the bodies of the next ones.
type step func(ctx context.Context, w *worker) ([]string, error)

// start runs the loops.
func (next step) start(ctx context.Context, handle contest.Handler) (func() error, error) {
	var running sync.WaitGroup
	errs := make([]error, workers)
	for n := range workers {
		running.Go(func() { errs[n] = next.drain(ctx, &worker{number: n}, handle) })
	}
	return func() error {
		running.Wait()
		return errors.Join(errs...)
	}, nil
}

// drain works until there is nothing.
func (next step) drain(ctx context.Context, w *worker, handle contest.Handler) error {
	for {
		w.calls++
		bodies, err := next(ctx, w)
		if err != nil || len(bodies) == 0 {
			return err
		}
		for _, body := range bodies {
			t, err := contest.Decode([]byte(body))
			if err != nil {
				return err
			}
			if err := handle.Handle(t); err != nil {
				return err
			}
		}
	}
}
