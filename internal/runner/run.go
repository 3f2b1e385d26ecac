package runner

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/worker"
)

// counters are what this run did, as it goes.
type counters struct {
	attempts  atomic.Int64
	succeeded atomic.Int64
	retried   atomic.Int64
	buried    atomic.Int64
	discarded atomic.Int64
	remaining atomic.Int64 // items of the job that have not ended, as far as this run knows
}

// Progress is how far a job is, for people.
type Progress struct {
	Total     int64 // items of the job
	Ended     int64
	Retried   int64 // attempts of this run that will be repeated
	Dead      int64 // buried by this run
	Succeeded int64 // by this run
}

// Summary is how a job stands when its run is over.
type Summary struct {
	Job         string  `json:"job"`
	Items       int64   `json:"items"`
	Succeeded   int64   `json:"succeeded"`
	Dead        int64   `json:"dead"`      // letters that nobody has dealt with
	Discarded   int64   `json:"discarded"` // by policy, or given up in the office
	Unfinished  int64   `json:"unfinished"`
	Attempts    int64   `json:"attempts"` // commands started by this run
	Groups      []Group `json:"groups"`   // of the dead
	Interrupted bool    `json:"-"`
	Halted      string  `json:"-"` // why the run stopped by itself
}

// Group is a cause of death in a summary.
type Group struct {
	Signature   string       `json:"signature"`
	Fingerprint string       `json:"fingerprint"`
	Count       int64        `json:"count"`
	Reason      nixie.Reason `json:"reason"`
	Text        string       `json:"example_text"` // what one of its failures said, of the first [groupsTold] groups
}

// groupsTold is of how many groups an example is looked up.
const groupsTold = 100

// recheckEvery is how often a run that is idle looks whether others have ended
// the job.
const recheckEvery = 500 * time.Millisecond

// Run runs the command on every item of the job that has not ended, also on
// those that wait for a retry, and returns when none is left, when the job is
// halted or when ctx ends: then commands that run may finish. Abort ends them.
func (r *Runner) Run(ctx context.Context) (Summary, error) {
	end, err := r.begin()
	if err != nil {
		return Summary{}, err
	}
	defer end()
	for {
		if err := r.countRemaining(ctx); err != nil {
			return Summary{}, err
		}
		if err := r.workOn(ctx); err != nil {
			return Summary{}, err
		}
		summary, err := r.Summary(context.WithoutCancel(ctx))
		switch {
		case err != nil && r.whyHalted() != nil:
			return Summary{}, errors.Join(r.whyHalted(), err)
		case err != nil:
			return Summary{}, err
		case ctx.Err() == nil && summary.Halted == "" && summary.Unfinished > 0:
			continue // somebody enqueued more at the last moment
		}
		summary.Interrupted = ctx.Err() != nil && summary.Unfinished > 0
		if ctx.Err() == nil {
			r.tidy(ctx)
		}
		return summary, nil
	}
}

// How much is pruned: so many steps when a run is over, and so often by one that
// does not end by itself.
const (
	tidySteps = 10
	tidyEvery = time.Minute
)

// keepTidy prunes a little now and then until ctx ends.
func (r *Runner) keepTidy(ctx context.Context) {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.tidy(ctx)
		}
	}
}

// tidy removes a little of what outlived its retention, in any queue. That it
// fails is no failure of the run.
func (r *Runner) tidy(ctx context.Context) {
	for range tidySteps {
		done, err := r.store.Prune(ctx, store.Pruning{Resume: true})
		if err != nil && ctx.Err() == nil {
			r.c.Warn("pruning: %v; it is tried again later", err)
		}
		if err != nil || done.Next == "" {
			return
		}
	}
}

// begin prepares the machine for commands; end tidies up once all have ended.
func (r *Runner) begin() (end func(), err error) {
	r.verdicts = r.verdictFolder(r.c.Owner)
	if err := r.prepareFolders(); err != nil {
		return nil, err
	}
	tidy := func() { _ = os.RemoveAll(r.verdicts) } // what stays is small, and nobody reads it
	if r.guard, err = command.StartGuard(r.ownersFolder(), r.c.Owner); err != nil {
		tidy()
		return nil, err
	}
	return func() {
		_ = r.guard.Close() // every command has ended
		tidy()
	}, nil
}

// workOn works until nothing is left to do.
func (r *Runner) workOn(ctx context.Context) error {
	w, err := r.worker()
	if err != nil {
		return err
	}
	return r.workWith(ctx, w, r.watch)
}

// workWith lets a worker run until what watches it is done.
func (r *Runner) workWith(ctx context.Context, w *worker.Worker, watch func(context.Context, context.CancelCauseFunc)) error {
	working, done := context.WithCancelCause(ctx)
	defer done(nil)
	r.mu.Lock()
	r.w, r.finish = w, done
	aborted := r.aborted
	r.mu.Unlock()
	if aborted {
		w.Abort()
	}
	var watcher sync.WaitGroup
	watcher.Add(1)
	go func() {
		defer watcher.Done()
		watch(working, done)
	}()
	err := w.Run(working)
	done(nil)
	watcher.Wait()
	return err
}

// Abort ends the commands that run; their items are released. It makes a Run
// whose context has ended return soon.
func (r *Runner) Abort() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.aborted = true
	if r.w != nil {
		r.w.Abort()
	}
}

// prepareFolders makes the places for what this machine has to know of the run.
func (r *Runner) prepareFolders() error {
	for _, folder := range [...]string{r.ownersFolder(), r.verdicts} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nixie.Errorf(nixie.CodeUnavailable, "folder for running commands: %w; XDG_STATE_HOME names another", err)
		}
	}
	return nil
}

func (r *Runner) ownersFolder() string { return filepath.Join(r.c.StateFolder, "owners") }

func (r *Runner) worker() (*worker.Worker, error) {
	recorder, noted := r.store.(lease.ProgressLog)
	ahead := 2 // little: what waits in hand when a run is killed counts as an attempt
	if noted {
		ahead = 256 // of the quickest; the worker takes so many of no others
	}
	return r.workerOn(&source{Source: store.NewSource(r.store, r.c.Queues...), r: r}, nil, recorder, ahead)
}

// workerOn is a worker that has so many deliveries for each command in hand. What may
// be run at all its source says, unless that is given.
func (r *Runner) workerOn(from nixie.Source, admits *policy.Policy, recorder lease.ProgressLog, ahead int) (*worker.Worker, error) {
	return worker.New(worker.Config{
		Source:      from,
		Handler:     nixie.HandlerFunc(r.handle),
		Policy:      admits,
		Decider:     r.judge,
		Mask:        r.c.Mask,
		Breaker:     *r.c.Breaker,
		Concurrency: r.c.Parallel,
		Prefetch:    min(ahead*r.c.Parallel, nixie.MaxBatch),
		SettleEach:  true,
		ProgressLog: recorder,
		Lease:       r.c.Lease,
		Drain:       drainForever,
		Name:        r.c.Owner,
		Clock:       r.c.Clock,
		Logger:      slog.New(warner{r.c.Warn}),
		Observer:    nixie.Tee(r.c.Observer, &nixie.Observer{Settled: r.settled, Breaker: r.breaker}),
	})
}

// breaker tells a person why nothing of a queue is started.
func (r *Runner) breaker(change nixie.BreakerChange) {
	switch change.State {
	case string(policy.BreakerOpen):
		r.c.Warn("%s in a row in %s (reason %s): it pauses until %s", plural(r.c.Breaker.Failures), change.Queue, change.Reason, change.Until.UTC().Format("15:04:05Z"))
	case policy.BreakerClosed.String():
		r.c.Warn("%s goes on: no more failures of reason %s", change.Queue, change.Reason)
	}
}

func plural(failures int) string {
	if failures == 1 {
		return "1 failure"
	}
	return strconv.Itoa(failures) + " failures"
}

// drainForever lets commands finish that run when the run is told to stop:
// whoever has no patience calls Abort.
const drainForever = 365 * 24 * time.Hour

// settled counts what was settled and ends the run when nothing is left.
func (r *Runner) settled(_ string, sts []nixie.Settlement, errs []error) {
	for i, st := range sts {
		if errs[i] != nil {
			continue
		}
		switch st.Verb {
		case nixie.Complete:
			r.count.succeeded.Add(1)
		case nixie.Discard:
			r.count.discarded.Add(1)
		case nixie.Retry:
			r.count.retried.Add(1)
			continue
		case nixie.Release:
			continue
		case nixie.Halt:
			r.count.buried.Add(1)
			r.halt(haltedBy(&st))
		default:
			r.count.buried.Add(1)
		}
		r.count.remaining.Add(-1)
	}
	if r.count.remaining.Load() <= 0 {
		select {
		case r.recheck <- struct{}{}:
		default:
		}
	}
}

// watch ends the run when the store says that nothing is left. What this run
// counted is only a hint: others may work on the job, and add to it.
func (r *Runner) watch(ctx context.Context, done context.CancelCauseFunc) {
	if r.c.Until == Stopped {
		r.keepTidy(ctx)
		return
	}
	tick := time.NewTicker(recheckEvery)
	defer tick.Stop()
	last := int64(-1)
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.recheck:
		case <-tick.C:
			if now := r.count.attempts.Load(); now != last {
				last = now // busy: no need to ask
				continue
			}
		}
		list, err := r.known(ctx)
		r.trouble.note(ctx, watching, err)
		if err != nil {
			continue
		}
		all := sum(list)
		if paused := slices.IndexFunc(list, func(q nixie.QueueInfo) bool { return q.Settings.Paused && r.left(q) > 0 }); paused >= 0 {
			r.halt(nixie.Errorf(nixie.CodeConflict, "%s %s is paused (%s)", r.noun(), list[paused].Name, list[paused].Settings.PausedNote))
		} else if r.left(all) == 0 {
			done(nil)
			return
		}
		r.count.remaining.Store(r.left(all))
		r.total.Store(all.Total)
	}
}

// sum adds queues up.
func sum(list []nixie.QueueInfo) (all nixie.QueueInfo) {
	for _, q := range list {
		all.Total += q.Total
		all.Ready += q.Ready
		all.Scheduled += q.Scheduled
		all.Leased += q.Leased
	}
	return all
}

// left is what has to be waited for before the work ends by itself.
func (r *Runner) left(q nixie.QueueInfo) int64 {
	if r.c.Until == Drained {
		return q.Ready + q.Leased
	}
	return q.Unfinished()
}

// noun is what a person calls a queue of this runner.
func (r *Runner) noun() string {
	if r.c.Job != "" {
		return "job"
	}
	return "queue"
}

func (r *Runner) countRemaining(ctx context.Context) error {
	list, err := r.known(ctx)
	all := sum(list)
	r.count.remaining.Store(r.left(all))
	r.total.Store(all.Total)
	if r.left(all) == 0 {
		select {
		case r.recheck <- struct{}{}:
		default:
		}
	}
	return err
}

// Progress is how far the run is. It may be asked at any time.
func (r *Runner) Progress() Progress {
	t := r.total.Load()
	return Progress{
		Total: t, Ended: max(t-max(r.count.remaining.Load(), 0), 0), Retried: r.count.retried.Load(),
		Dead: r.count.buried.Load(), Succeeded: r.count.succeeded.Load(),
	}
}

// Summary is how the job stands.
func (r *Runner) Summary(ctx context.Context) (Summary, error) {
	q, _, err := r.queue(ctx)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{
		Job: r.c.Job, Items: q.Total, Succeeded: q.Succeeded, Dead: q.Dead,
		Discarded: q.Total - q.Succeeded - q.Dead - q.Unfinished(), Unfinished: q.Unfinished(), Attempts: r.count.attempts.Load(), Groups: []Group{},
	}
	if why := r.whyHalted(); why != nil {
		s.Halted = why.Error()
	}
	described, _, err := r.store.Count(ctx, nixie.Filter{
		Queues:   []string{r.c.Job},
		Statuses: []nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined},
	}, store.Counting{By: []nixie.GroupBy{nixie.ByFingerprint}, Scan: store.ScanAll, Described: true})
	if err != nil {
		return s, err
	}
	groups := described[0]
	for _, g := range groups {
		s.Groups = append(s.Groups, Group{Signature: g.Label, Fingerprint: g.Key, Count: g.Count, Reason: g.Reason})
	}
	return s, r.tell(ctx, s.Groups, groups)
}

// tell adds what one failure of each group said.
func (r *Runner) tell(ctx context.Context, groups []Group, found []nixie.Group) error {
	at := map[nixie.ID]int{}
	var ids []nixie.ID
	for i, g := range found[:min(len(found), groupsTold)] {
		if len(g.Examples) > 0 {
			at[g.Examples[0]] = i
			ids = append(ids, g.Examples[0])
		}
	}
	if len(ids) == 0 {
		return nil // no IDs would mean all letters
	}
	letters, _, err := r.store.Letters(ctx, nixie.Filter{IDs: ids}, store.Page{Limit: groupsTold})
	for i := range letters {
		groups[at[letters[i].ID]].Text = letters[i].Message.LastFailure
	}
	return err
}
