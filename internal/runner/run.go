package runner

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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

// counters counts the work of this run.
type counters struct {
	attempts  atomic.Int64
	succeeded atomic.Int64
	retried   atomic.Int64
	buried    atomic.Int64
	discarded atomic.Int64
	remaining atomic.Int64 // items of the job that have not ended, as far as this run knows
}

// Counts shows the progress of a job.
type Counts struct {
	Total     int64 // items of the job
	Ended     int64
	Retried   int64  // attempts of this run that are repeated
	Dead      int64  // buried by this run
	Succeeded int64  // by this run
	Held      string // what holds items back, and until when; empty: nothing does
}

// Summary counts the items of a job after its run.
type Summary struct {
	Job        string  `json:"job"`
	Items      int64   `json:"items"`
	Succeeded  int64   `json:"succeeded"`
	Dead       int64   `json:"dead"`      // unresolved letters
	Discarded  int64   `json:"discarded"` // by the policy or by an operator
	Unfinished int64   `json:"unfinished"`
	Attempts   int64   `json:"attempts"` // commands started by this run
	Groups     []Group `json:"groups"`   // of the dead, by cause
	End
}

// Group counts the dead of one cause.
type Group struct {
	Signature   string       `json:"signature"`
	Fingerprint string       `json:"fingerprint"`
	Count       int64        `json:"count"`
	Reason      nixie.Reason `json:"reason"`
	Text        string       `json:"example_text"` // one of its failures, in the first [groupsShown] groups
}

// groupsShown is the number of groups that get an example.
const groupsShown = 100

// recountEvery is the interval at which an idle run asks whether other runs have ended the job.
const recountEvery = 500 * time.Millisecond

// Run runs the command on every item of the job that has not ended, also on those that wait for a
// retry. It returns when none is left, when an item halts the job, or when ctx ends and the running
// commands have finished. Abort ends them.
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
		if err := r.workAll(ctx); err != nil {
			return Summary{}, err
		}
		summary, err := r.Summary(context.WithoutCancel(ctx))
		switch {
		case err != nil && r.whyHalted() != nil:
			return Summary{}, errors.Join(r.whyHalted(), err)
		case err != nil:
			return Summary{}, err
		case ctx.Err() == nil && r.whyHalted() == nil && summary.Unfinished > 0:
			continue // a producer enqueued more at the last moment
		}
		summary.End = r.end(ctx.Err() != nil && summary.Unfinished > 0)
		if ctx.Err() == nil {
			r.prune(ctx)
		}
		return summary, nil
	}
}

// A run prunes this number of steps when it is over. A run without an end prunes them at this
// interval.
const (
	pruneSteps = 10
	pruneEvery = time.Minute
)

// pruneRegularly prunes a little at each interval until ctx ends.
func (r *Runner) pruneRegularly(ctx context.Context) {
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.prune(ctx)
		}
	}
}

// prune removes a little of what is older than its retention, in all queues. Its failure does not
// fail the run.
func (r *Runner) prune(ctx context.Context) {
	for range pruneSteps {
		done, err := r.store.Prune(ctx, store.Pruning{Resume: true})
		if err != nil && ctx.Err() == nil {
			r.c.Warn("pruning: %v; the run tries again later", err)
		}
		if err != nil || done.Next == "" {
			return
		}
	}
}

// begin prepares the machine for commands; end removes the preparations after all have ended.
func (r *Runner) begin() (end func(), err error) {
	r.verdicts = r.verdictFolder(r.c.Owner)
	if err := r.prepareFolders(); err != nil {
		return nil, err
	}
	tidy := func() { _ = os.RemoveAll(r.verdicts) } // a leftover is small and unused
	if r.guard, err = command.StartGuard(r.ownersFolder(), r.c.Owner); err != nil {
		tidy()
		return nil, err
	}
	r.mu.Lock()
	for i := range r.steps {
		if s := &r.steps[i]; s.Persistent && err == nil {
			s.crew, err = r.newCrew(s)
		}
	}
	r.mu.Unlock()
	end = func() {
		var crews sync.WaitGroup
		for _, s := range r.steps {
			if s.crew != nil {
				crews.Go(s.crew.close)
			}
		}
		crews.Wait()
		_ = r.guard.Close() // every command has ended
		tidy()
	}
	if err != nil {
		end()
	}
	return end, err
}

// workAll works until nothing is left.
func (r *Runner) workAll(ctx context.Context) error {
	w, err := r.storeWorker()
	if err != nil {
		return err
	}
	return r.runWorker(ctx, w, r.watchQueues)
}

// runWorker runs a worker until its watcher ends it.
func (r *Runner) runWorker(ctx context.Context, w *worker.Worker, watch func(context.Context, context.CancelCauseFunc)) error {
	working, done := context.WithCancelCause(ctx)
	defer done(nil)
	r.mu.Lock()
	r.w, r.working, r.finish = w, working, done
	aborted := r.aborted
	r.mu.Unlock()
	if aborted {
		w.Abort()
	}
	var watchers sync.WaitGroup
	watchers.Go(func() { watch(working, done) })
	if r.c.Watchdog > 0 {
		r.heard.beat()
		watchers.Go(func() { r.watchWorker(working) })
	}
	err := w.Run(working)
	done(nil)
	watchers.Wait()
	return r.checkHalt(err)
}

// noMore is closed when no more attempts should begin.
func (r *Runner) noMore() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.working.Done()
}

// Abort ends the running commands and releases their items. It makes a Run whose context has ended
// return soon.
func (r *Runner) Abort() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.aborted = true
	if r.w != nil {
		r.w.Abort()
	}
	for _, s := range r.steps {
		if s.crew != nil {
			s.crew.hasten()
		}
	}
}

// prepareFolders makes the folders of the run on this machine.
func (r *Runner) prepareFolders() error {
	for _, folder := range [...]string{r.ownersFolder(), r.verdicts} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nixie.Errorf(nixie.CodeUnavailable, "folder for running commands: %w; XDG_STATE_HOME names another", err)
		}
	}
	return nil
}

func (r *Runner) ownersFolder() string { return filepath.Join(r.c.StateFolder, "owners") }

func (r *Runner) storeWorker() (*worker.Worker, error) {
	recorder, noted := r.store.(lease.ProgressLog)
	ahead := 2 // few, because a kill counts an attempt of each waiting delivery
	if noted {
		ahead = 256 // for the quickest commands; the worker claims fewer for slower ones
	}
	return r.newWorker(&source{Source: store.NewSource(r.store, r.c.Queues...), r: r}, nil, recorder, ahead)
}

// newWorker makes a worker with ahead deliveries in hand for each running command. The source
// decides which messages may run, unless admits is given.
func (r *Runner) newWorker(from nixie.Source, admits *policy.Policy, recorder lease.ProgressLog, ahead int) (*worker.Worker, error) {
	r.source = from
	var handler nixie.Handler = nixie.HandlerFunc(r.handle)
	if r.c.Wrap != nil {
		handler = r.c.Wrap(handler)
	}
	haltAfter := r.c.HaltAfter
	if r.count.succeeded.Load() > 0 { // an earlier worker of this run has seen a success
		haltAfter = 0
	}
	var beat func()
	if r.c.Watchdog > 0 {
		beat = r.heard.beat
	}
	return worker.New(worker.Config{
		Source:      from,
		Handler:     handler,
		Policy:      admits,
		Decider:     r.decider,
		Mask:        r.c.Mask,
		Breaker:     r.c.Breaker,
		Awaited:     r.c.Job != "",
		HaltAfter:   haltAfter,
		Concurrency: r.c.Parallel,
		Prefetch:    min(ahead*r.c.Parallel, nixie.MaxBatch),
		SettleEach:  true,
		ProgressLog: recorder,
		Lease:       r.c.Lease,
		Drain:       drainForever,
		Name:        r.c.Owner,
		Clock:       r.c.Clock,
		Beat:        beat,
		Logger:      slog.New(warner{r.c.Warn}),
		Observer:    nixie.Tee(r.c.Observer, &nixie.Observer{Settled: r.settled, Breaker: r.breaker}),
	})
}

// drainForever lets running commands finish when the run is told to stop; Abort ends them.
const drainForever = 365 * 24 * time.Hour

// settled counts settlements and wakes watchQueues when nothing is left.
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
	r.checkDead()
	if r.count.remaining.Load() <= 0 {
		wake(r.recount)
	}
}

// watchQueues ends the run when the store has nothing left. The counts of this run are only a hint:
// other processes may work on the job and add to it.
func (r *Runner) watchQueues(ctx context.Context, done context.CancelCauseFunc) {
	if r.c.Until == Stopped {
		r.pruneRegularly(ctx)
		return
	}
	tick := time.NewTicker(recountEvery)
	defer tick.Stop()
	last := int64(-1)
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.recount:
		case <-tick.C:
			if now := r.count.attempts.Load(); now != last {
				last = now // busy: no need to ask
				continue
			}
		}
		list, err := r.queues(ctx)
		r.outage.note(ctx, watching, err)
		if err != nil {
			continue
		}
		all := sum(list)
		if paused := slices.IndexFunc(list, func(q store.QueueInfo) bool { return q.Settings.Paused && r.left(q) > 0 }); paused >= 0 {
			r.halt(nixie.Errorf(nixie.CodeConflict, "%s %s is paused (%s)", r.noun(), list[paused].Name, list[paused].Settings.PausedNote))
		} else if r.checkHeld(list) {
			return
		} else if r.left(all) == 0 {
			done(nil)
			return
		}
		r.count.remaining.Store(r.left(all))
		r.total.Store(all.Total)
	}
}

// sum adds queues up.
func sum(list []store.QueueInfo) (all store.QueueInfo) {
	for _, q := range list {
		all.Total += q.Total
		all.Ready += q.Ready
		all.Scheduled += q.Scheduled
		all.Leased += q.Leased
	}
	return all
}

// left counts the messages that the work waits for before it ends by itself.
func (r *Runner) left(q store.QueueInfo) int64 {
	if r.c.Until == Drained {
		return q.Ready + q.Leased
	}
	return q.Unfinished()
}

// noun returns the word for a queue of this runner.
func (r *Runner) noun() string {
	if r.c.Job != "" {
		return "job"
	}
	return "queue"
}

func (r *Runner) countRemaining(ctx context.Context) error {
	list, err := r.queues(ctx)
	all := sum(list)
	r.count.remaining.Store(r.left(all))
	r.total.Store(all.Total)
	if r.left(all) == 0 {
		wake(r.recount)
	}
	return err
}

// Counts returns the progress of the run. It may be called at any time.
func (r *Runner) Counts() Counts {
	t := r.total.Load()
	return Counts{
		Total: t, Ended: max(t-max(r.count.remaining.Load(), 0), 0), Retried: r.count.retried.Load(),
		Dead: r.count.buried.Load(), Succeeded: r.count.succeeded.Load(), Held: r.heldText(),
	}
}

// Summary counts the items of the job in the store.
func (r *Runner) Summary(ctx context.Context) (Summary, error) {
	q, _, err := r.queue(ctx)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{
		Job: r.c.Job, Items: q.Total, Succeeded: q.Succeeded, Dead: q.Dead,
		Discarded: q.Total - q.Succeeded - q.Dead - q.Unfinished(), Unfinished: q.Unfinished(), Attempts: r.count.attempts.Load(),
		Groups: []Group{},
	}
	described, _, err := r.store.Count(ctx, nixie.Filter{
		Queues:   []string{r.c.Job},
		Statuses: []nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined},
	}, store.Counting{By: []store.GroupBy{store.ByFingerprint}, Scan: store.ScanAll, Described: true})
	if err != nil {
		return s, err
	}
	groups := described[0]
	for _, g := range groups {
		s.Groups = append(s.Groups, Group{Signature: g.Label, Fingerprint: g.Key, Count: g.Count, Reason: g.Reason})
	}
	return s, r.addExamples(ctx, s.Groups, groups)
}

// addExamples adds one failure to each group.
func (r *Runner) addExamples(ctx context.Context, groups []Group, found []store.Group) error {
	at := map[nixie.ID]int{}
	var ids []nixie.ID
	for i, g := range found[:min(len(found), groupsShown)] {
		if len(g.Examples) > 0 {
			at[g.Examples[0]] = i
			ids = append(ids, g.Examples[0])
		}
	}
	if len(ids) == 0 {
		return nil // no IDs would mean all letters
	}
	letters, _, err := r.store.Letters(ctx, nixie.Filter{IDs: ids}, store.Page{Limit: groupsShown})
	for i := range letters {
		groups[at[letters[i].ID]].Text = letters[i].Message.LastFailure
	}
	return err
}
