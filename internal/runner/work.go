package runner

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie/store"
)

// Work counts the work on queues and the messages left in them.
type Work struct {
	Queues    []string `json:"queues"`
	Attempts  int64    `json:"attempts"` // commands started by this worker
	Succeeded int64    `json:"succeeded"`
	Retried   int64    `json:"retried"` // attempts that are repeated
	Dead      int64    `json:"dead"`    // buried by this worker
	Discarded int64    `json:"discarded"`
	Ready     int64    `json:"ready"` // left in the queues, as the next two
	Scheduled int64    `json:"scheduled"`
	Leased    int64    `json:"leased"` // by others
	End
}

// Work runs the command on the messages of the queues. It ends when [Config.Until] is reached, when
// a message halts it, or when ctx ends. Then running commands finish, and deliveries that have not
// begun are released. Abort ends the commands.
func (r *Runner) Work(ctx context.Context) (Work, error) {
	end, err := r.begin()
	if err != nil {
		return Work{}, err
	}
	defer end()
	if err := r.checkQueues(context.WithoutCancel(ctx)); err != nil { // a stop that comes now ends as a later one
		return Work{}, err
	}
	if err := r.workAll(ctx); err != nil {
		return Work{}, err
	}
	if err := r.stoppedUnanswered(); err != nil {
		return Work{}, err
	}
	if ctx.Err() == nil {
		r.prune(ctx)
	}
	list, err := r.queues(context.WithoutCancel(ctx))
	if err != nil {
		return Work{}, err
	}
	all := sum(list)
	w := Work{
		Queues: r.c.Queues, Attempts: r.count.attempts.Load(), Succeeded: r.count.succeeded.Load(), Retried: r.count.retried.Load(),
		Dead: r.count.buried.Load(), Discarded: r.count.discarded.Load(), Ready: all.Ready, Scheduled: all.Scheduled, Leased: all.Leased,
		End: r.end(ctx.Err() != nil && r.c.Until != Stopped && r.left(all) > 0),
	}
	return w, nil
}

// checkQueues counts the messages to do, and warns of missing and paused queues.
func (r *Runner) checkQueues(ctx context.Context) error {
	list, err := r.queues(ctx)
	if err != nil {
		return err
	}
	for _, name := range r.c.Queues {
		at := slices.IndexFunc(list, func(q store.QueueInfo) bool { return q.Name == name })
		switch {
		case at < 0:
			r.c.Warn("queue %s does not exist yet: its first message makes it", name)
		case list[at].Settings.Paused:
			r.c.Warn("queue %s is paused (%s): workers get nothing from it", name, list[at].Settings.PausedNote)
		}
	}
	return r.countRemaining(ctx)
}
