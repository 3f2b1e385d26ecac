package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/config"
	"github.com/nixie-go/nixie/internal/runner"
	"github.com/nixie-go/nixie/internal/workflow"
	"github.com/nixie-go/nixie/mapreduce"
	"github.com/nixie-go/nixie/mapreduce/worktree"
	"github.com/nixie-go/nixie/office"
	"github.com/nixie-go/nixie/store"
)

// workflowRun runs the phases of a workflow around the run of its items.
type workflowRun struct {
	m       *mapRun
	file    *workflow.File
	kept    worktree.Workflow // the file, as the job has it
	items   string            // the list that was named; empty is that of the file
	renewed bool              // the file was changed, and the job takes it as it is now
	only    bool              // merge what is done, and run nothing else

	job    *worktree.Job
	store  store.Store
	config runner.Config // of the items
	phases []phaseView   // that were run or left out, in their order
}

// phaseView tells how a phase ended.
type phaseView struct {
	Phase    string         `json:"phase"`
	State    string         `json:"state"` // succeeded, dead, discarded or unfinished; left-out
	Why      string         `json:"why"`   // it was left out; empty otherwise
	Attempts int64          `json:"attempts"`
	Groups   []runner.Group `json:"groups"` // of its letter, by cause
}

// States of a phase.
const (
	phaseSucceeded  = "succeeded"
	phaseDead       = "dead"
	phaseDiscarded  = "discarded"
	phaseUnfinished = "unfinished"
	phaseLeftOut    = "left-out"
)

// flowReport is the JSON of a run of a workflow.
type flowReport struct {
	runner.Summary
	Phases []phaseView `json:"phases"`
}

// begin runs the setup, and returns the list of the items. It is empty if the store has them.
func (w *workflowRun) begin(ctx context.Context, st store.Store, c runner.Config) (list string, err error) {
	w.store, w.config = st, c
	if err := w.check(); err != nil {
		return "", err
	}
	if err := w.m.accepted(); err != nil {
		return "", err
	}
	if w.file.Setup != nil {
		end, err := w.run(ctx, mapreduce.Setup, mapreduce.Setup, w.file.Setup, []byte("{}"), w.inShared(nil))
		if err != nil {
			return "", err
		}
		if state := w.phases[0].State; state == phaseDead || state == phaseUnfinished {
			return "", w.ended(w.report(runner.Summary{Job: c.Job, Groups: []runner.Group{}, End: end}))
		}
	}
	if w.m.stored {
		known, err := st.Queues(ctx, store.QueueQuery{Names: []string{c.Job}})
		if err != nil || len(known) > 0 {
			return "", err
		}
	}
	return w.list(ctx)
}

// ended ends a run before it has items, with an exit code also where all is well.
func (w *workflowRun) ended(err error) error { return cmp.Or[error](err, exit(ExitOK)) }

// end runs the phases after the items, and completes the summary of the run.
func (w *workflowRun) end(ctx context.Context, s *runner.Summary) error {
	if s.Unfinished > 0 || s.Ended != runner.EndDone {
		return nil
	}
	counts := mapreduce.Counts{Total: s.Items, Successful: s.Succeeded, Dead: s.Dead}
	var err error
	if w.file.Reduce != nil {
		err = w.reduce(ctx, s, counts)
	} else {
		err = w.job.SaveValues(valuesOfMap, counts.Values(""))
	}
	if err != nil {
		return err
	}
	if err := w.tellLeft(ctx); err != nil || w.file.Merge == nil || !w.m.merge {
		return err
	}
	if why := w.noMerge(s); why != "" {
		w.leaveOut(mapreduce.Merge, why)
		return nil
	}
	return w.merge(ctx, &s.End)
}

// noMerge says why the branch is not merged; empty if it may be.
func (w *workflowRun) noMerge(s *runner.Summary) string {
	for _, v := range w.phases {
		if v.State == phaseDead || v.State == phaseUnfinished {
			return v.Phase + " is " + v.State
		}
	}
	if s.Dead > 0 && w.m.failOnDead {
		return plural(s.Dead, "item") + " dead, and --fail-on-dead"
	}
	return ""
}

// reduce runs the reduce, unless it ran for the items as they are.
func (w *workflowRun) reduce(ctx context.Context, s *runner.Summary, counts mapreduce.Counts) error {
	if s.Dead > 0 && w.file.Reduce.NotAfter {
		w.leaveOut(mapreduce.Reduce, fmt.Sprintf("%s dead, and with_letters is false", plural(s.Dead, "item")))
		return nil
	}
	if s.Dead > 0 {
		w.m.say("reduce runs without %s that died; it runs again once more have succeeded", plural(s.Dead, "item"))
	}
	body, err := json.Marshal(counts)
	if err != nil {
		return err
	}
	if err := w.giveUpEarlier(ctx, counts.Key()); err != nil {
		return err
	}
	end, err := w.run(ctx, mapreduce.Reduce, counts.Key(), w.file.Reduce, body,
		w.inShared(func(ctx context.Context, files string) ([]string, error) {
			made, err := mapreduce.WriteResults(ctx, files+".results", w.store, w.config.Job, w.job, counts)
			if err != nil {
				return nil, err
			}
			return made, w.job.SaveValues(valuesOfMap, counts.Values(files+".results"))
		}))
	if err == nil && end.Ended != runner.EndDone {
		s.End = end
	}
	return err
}

// merge runs the merge steps in the checkout, unless the branch is merged.
func (w *workflowRun) merge(ctx context.Context, end *runner.End) error {
	if done, err := w.job.Delivered(ctx); err != nil || done {
		return err
	}
	tip, err := w.job.Tip(ctx)
	if err != nil {
		return err
	}
	ended, err := w.run(ctx, mapreduce.Merge, mapreduce.Merge+" "+tip, w.file.Merge, []byte("{}"),
		func(ctx context.Context, d *nixie.Delivery) (runner.Workplace, error) {
			a, err := mapreduce.New(mapreduce.Config{Job: w.job}).BeginMerge(ctx, d)
			if a == nil {
				return nil, err
			}
			return a, nil
		})
	if err == nil && ended.Ended != runner.EndDone {
		*end = ended
	}
	return err
}

// mergesItself reports whether the branch is not for git's merge now: merge steps of the file have
// merged it, or a phase that should come before has not succeeded.
func (w *workflowRun) mergesItself(ctx context.Context) (bool, error) {
	if w.file.Merge == nil {
		why := w.noMerge(&runner.Summary{})
		if why != "" {
			w.m.say("branch %s is not merged: %s", w.job.Branch(), why)
		}
		return why != "", nil
	}
	done, err := w.job.Delivered(ctx)
	if done {
		w.m.say("branch %s is merged", w.job.Branch())
	}
	return true, err
}

// mergeNow runs the merge steps, and nothing else.
func (w *workflowRun) mergeNow(ctx context.Context, st store.Store, c runner.Config) error {
	w.store, w.config = st, c
	s := runner.Summary{Job: c.Job, Groups: []runner.Group{}, End: runner.End{Ended: runner.EndDone}}
	if err := w.merge(ctx, &s.End); err != nil {
		return err
	}
	if w.noMerge(&s) != "" {
		return w.ended(w.report(s))
	}
	d := mapDone{Job: w.m.mapFlags.job, Branch: w.job.Branch(), Merged: true}
	return w.ended(w.m.done(d, "branch "+w.job.Branch()+" is merged"))
}

// phaseOfItems stands for the work on items where phases are named.
const phaseOfItems = "map"

// valuesOfMap names the values about the items, for the phases after them.
const valuesOfMap = "map"

// values returns what the steps of a phase, or of an item, know before they begin: what earlier
// phases made known, and what there is to know about the items.
func (w *workflowRun) values(ctx context.Context, phase string) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	for _, earlier := range mapreduce.Phases() {
		if earlier == phase {
			break
		}
		made, err := w.job.Values(earlier)
		if err != nil {
			return nil, err
		}
		for name, value := range made {
			if name == "shell" { // ${setup.output} is the output of its last step
				name = earlier
			}
			all[name] = value
		}
		if phase == phaseOfItems {
			return all, ctx.Err()
		}
	}
	if phase == mapreduce.Setup {
		return all, ctx.Err()
	}
	made, err := w.job.Values(valuesOfMap)
	if err == nil {
		all["map"], err = json.Marshal(made)
	}
	if phase == mapreduce.Merge && err == nil {
		all["merge"], err = json.Marshal(map[string]string{"source_branch": w.job.Branch(), "target_branch": w.job.Target()})
	}
	return all, err
}

// workplace makes the workplace of an attempt of a phase.
type workplace func(context.Context, *nixie.Delivery) (runner.Workplace, error)

// inShared makes workplaces in the worktree that setup and reduce share.
func (w *workflowRun) inShared(prepare func(context.Context, string) ([]string, error)) workplace {
	return func(ctx context.Context, d *nixie.Delivery) (runner.Workplace, error) {
		a, err := mapreduce.New(mapreduce.Config{Job: w.job}).BeginPhase(ctx, d, prepare)
		if a == nil {
			return nil, err
		}
		return a, nil
	}
}

// check refuses what no phase could do, such as to start a program that is not there, before one
// begins.
func (w *workflowRun) check() error {
	for phase, of := range map[string]*workflow.Phase{
		mapreduce.Setup: w.file.Setup, mapreduce.Reduce: w.file.Reduce, mapreduce.Merge: w.file.Merge,
	} {
		if of == nil {
			continue
		}
		if _, err := runner.New(w.phaseConfig(phase, of, w.inShared(nil))); err != nil {
			return fmt.Errorf("%s: %w", phase, err)
		}
	}
	return nil
}

// phaseConfig is the configuration of the items, changed for a phase.
func (w *workflowRun) phaseConfig(phase string, of *workflow.Phase, at workplace) runner.Config {
	c := w.config
	c.Job, c.Queues, c.Steps, c.Validate = mapreduce.PhaseQueue(w.config.Job, phase), nil, of.Steps, nil
	c.Parallel, c.OnFailure, c.StopAfter, c.Whole, c.Workplace = 1, runner.ToOffice, runner.StopAfter{}, of.Timeout, at
	c.Values = func(ctx context.Context, _ *nixie.Delivery) (map[string]json.RawMessage, error) {
		return w.values(ctx, phase)
	}
	c.Keep = func(_ context.Context, _ *nixie.Delivery, made map[string]json.RawMessage) error {
		return w.job.SaveValues(phase, made)
	}
	return c
}

// run enqueues the message of a phase, unless it was, and works on it to its end.
func (w *workflowRun) run(ctx context.Context, phase, key string, of *workflow.Phase, body []byte, at workplace) (runner.End, error) {
	c := w.phaseConfig(phase, of, at)
	r, err := runner.New(c)
	if err != nil {
		return runner.End{}, err
	}
	r.Use(w.store)
	if err := r.WorkOn(c.Job, []nixie.Header{{Name: mapreduce.HeaderRepository, Value: w.job.Repository()}}); err != nil {
		return runner.End{}, err
	}
	if err := r.Add(ctx, phase, key, body); err != nil {
		return runner.End{}, err
	}
	var s runner.Summary
	if err := w.m.drive(ctx, r, false, func(ctx context.Context) (err error) {
		s, err = r.Run(ctx)
		return err
	}); err != nil {
		return runner.End{}, err
	}
	v := phaseView{Phase: phase, State: phaseSucceeded, Attempts: s.Attempts, Groups: s.Groups}
	switch {
	case s.Unfinished > 0:
		v.State = phaseUnfinished
	case s.Dead > 0:
		v.State = phaseDead
	case s.Succeeded == 0:
		v.State = phaseDiscarded
	}
	w.phases = append(w.phases, v)
	return s.End, nil
}

// leaveOut notes that a phase did not run, and why.
func (w *workflowRun) leaveOut(phase, why string) {
	w.m.say("%s did not run: %s", phase, why)
	w.phases = append(w.phases, phaseView{Phase: phase, State: phaseLeftOut, Why: why, Groups: []runner.Group{}})
}

// giveUpEarlier gives up the letters of earlier reduces: a later one replaces them.
func (w *workflowRun) giveUpEarlier(ctx context.Context, key string) error {
	queue := mapreduce.PhaseQueue(w.config.Job, mapreduce.Reduce)
	o, err := office.New(office.Config{Store: w.store, Actor: config.Actor(w.m.Env), Clock: w.m.Now})
	if err != nil {
		return err
	}
	var earlier []nixie.ID
	for l, err := range o.AllLetters(ctx, nixie.Filter{Queues: []string{queue}, Statuses: unresolved()}, false) {
		if err != nil {
			return err
		}
		if l.Message.DedupeKey != key {
			earlier = append(earlier, l.ID)
		}
	}
	if len(earlier) == 0 {
		return nil
	}
	request := &office.OperationRequest{Event: store.OnDiscard, IDs: earlier, Reason: "a later reduce replaces it"}
	result, err := o.Begin(ctx, request)
	if err == nil {
		_, err = o.Run(ctx, result.Operation, request)
	}
	return err
}

// unresolved are the statuses of letters that count as dead.
func unresolved() []nixie.Status {
	return []nixie.Status{nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined}
}

// tellLeft tells what setup and reduce left in their worktree without a commit.
func (w *workflowRun) tellLeft(ctx context.Context) error {
	folder, changes, err := w.job.Shared(context.WithoutCancel(ctx))
	if err == nil && changes != "" {
		w.m.say("setup and reduce left %s without a commit, in %s: %s", plural(int64(strings.Count(changes, "\n")+1), "file"), folder,
			firstOf(changes))
	}
	return err
}

// firstOf names the first file of changes in the short format of git status.
func firstOf(changes string) string {
	line, _, more := strings.Cut(changes, "\n")
	return strings.TrimSpace(line[min(2, len(line)):]) + either(more, " …", "")
}

// report prints the summary with the phases and returns how the process ends.
func (w *workflowRun) report(s runner.Summary) error {
	all := s // with the letters of phases
	for _, v := range w.phases {
		if v.State == phaseDead {
			all.Dead, all.Groups = all.Dead+1, append(all.Groups, v.Groups...)
		}
	}
	shown := func(to io.Writer) {
		if len(w.phases) > 0 {
			fmt.Fprintln(to)
		}
		for _, v := range w.phases {
			fmt.Fprintf(to, "%-6s  %s\n", v.Phase, v.State)
		}
		if s.Items > 0 {
			w.m.printCounts(to, s)
		}
		w.m.printOutcome(to, all, nil)
	}
	if err := w.m.summary(flowReport{s, w.phases}, shown); err != nil {
		return err
	}
	return w.m.conclude(s.End, all.Dead > 0)
}
