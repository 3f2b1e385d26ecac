package runner

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
)

// Work is how work on queues went, and how they stand when it is over.
type Work struct {
	Queues    []string `json:"queues"`
	Attempts  int64    `json:"attempts"` // commands started by this worker
	Succeeded int64    `json:"succeeded"`
	Retried   int64    `json:"retried"` // attempts that will be repeated
	Dead      int64    `json:"dead"`    // buried by this worker
	Discarded int64    `json:"discarded"`
	Ready     int64    `json:"ready"` // what is left in the queues
	Scheduled int64    `json:"scheduled"`
	Leased    int64    `json:"leased"` // by others

	Interrupted bool   `json:"-"` // before what was asked for was done
	Halted      string `json:"-"` // why the work stopped by itself
}

// Work runs the command on the messages of the queues until [Config.Until] is
// reached, somebody halts it, or ctx ends: then commands that run may finish, and
// what was not begun is given back. Abort ends them.
func (r *Runner) Work(ctx context.Context) (Work, error) {
	end, err := r.begin()
	if err != nil {
		return Work{}, err
	}
	defer end()
	if err := r.lookAround(ctx); err != nil {
		return Work{}, err
	}
	if err := r.workOn(ctx); err != nil {
		return Work{}, err
	}
	if ctx.Err() == nil {
		r.tidy(ctx)
	}
	list, err := r.known(context.WithoutCancel(ctx))
	if err != nil {
		return Work{}, err
	}
	all := sum(list)
	w := Work{
		Queues: r.c.Queues, Attempts: r.count.attempts.Load(), Succeeded: r.count.succeeded.Load(), Retried: r.count.retried.Load(),
		Dead: r.count.buried.Load(), Discarded: r.count.discarded.Load(), Ready: all.Ready, Scheduled: all.Scheduled, Leased: all.Leased,
		Interrupted: ctx.Err() != nil && r.c.Until != Stopped && r.left(all) > 0,
	}
	if why := r.whyHalted(); why != nil {
		w.Halted = why.Error()
	}
	return w, nil
}

// lookAround counts what there is to do, and warns of queues from which nothing
// will come.
func (r *Runner) lookAround(ctx context.Context) error {
	list, err := r.known(ctx)
	if err != nil {
		return err
	}
	for _, name := range r.c.Queues {
		at := slices.IndexFunc(list, func(q nixie.QueueInfo) bool { return q.Name == name })
		switch {
		case at < 0:
			r.c.Warn("queue %s is not there yet: it comes with its first message", name)
		case list[at].Settings.Paused:
			r.c.Warn("queue %s is paused (%s): nothing of it is handed out", name, list[at].Settings.PausedNote)
		}
	}
	return r.countRemaining(ctx)
}
