package mapreduce

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/itemfile"
)

// The phases of a workflow, without the work on its items.
const (
	Setup  = "setup"  // before the items are known
	Reduce = "reduce" // after they have ended
	Merge  = "merge"  // brings the branch of the job into the checkout
)

// Phases lists them in their order.
func Phases() []string { return []string{Setup, Reduce, Merge} }

// PhaseQueue returns the queue that holds the one message of a phase, from the queue of the items.
func PhaseQueue(queue, phase string) string { return queue + "/" + phase }

// PhaseOf returns the phase of a queue and the queue of the items of its job, and whether it is
// one.
func PhaseOf(queue string) (items, phase string, is bool) {
	for _, phase := range Phases() {
		if items, is := strings.CutSuffix(queue, "/"+phase); is {
			return items, phase, true
		}
	}
	return queue, "", false
}

// BeginPhase gives an attempt of setup or reduce the worktree that they share. Prepare, unless it
// is nil, returns variables for its commands, and may write files whose paths begin so. BeginPhase
// returns nil for a phase that is merged already.
func (m *Map) BeginPhase(
	ctx context.Context, d *nixie.Delivery, prepare func(ctx context.Context, files string) (variables []string, err error),
) (*Attempt, error) {
	phase, name := d.Key, strings.ReplaceAll(cmp.Or(d.DedupeKey, d.Key), " ", "-")
	if done, err := m.c.Job.PhaseMerged(ctx, name); err != nil || done != "" {
		return nil, inPhase("worktree", phase, err)
	}
	tree, err := m.c.Job.Phase(ctx, name, d.Lease.Number, phase == Setup)
	if err != nil {
		return nil, inPhase("worktree", phase, err)
	}
	a := &Attempt{m: m, tree: tree, died: d.Redrives > 0, phase: phase}
	if prepare == nil {
		return a, nil
	}
	if a.more, err = prepare(ctx, tree.Path); err != nil {
		tree.Release()
		return nil, inPhase("results", phase, err)
	}
	return a, nil
}

// inPhase is during for a phase.
func inPhase(doing, phase string, err error) error {
	if err == nil {
		return nil
	}
	facts := evidenceOf(err)
	facts.Step, facts.Context = doing, []string{"phase " + phase}
	return nixie.WithEvidence(err, facts)
}

// endPhase is End for a phase. Its worktree stays where it is, as later phases need what is in it.
func (a *Attempt) endPhase(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		a.tree.Release()
		return errors.Join(err, ctx.Err())
	}
	if err == nil {
		_, err = a.tree.Merge(ctx, a.phase, nil)
		err = inPhase("merge", a.phase, err)
	}
	if err == nil {
		a.tree.Release()
		if !a.died {
			_ = a.m.c.Job.ForgetLogs(a.tree.Item) // what stays goes with the job
		}
		return nil
	}
	if full := a.tree.Full(err); full != nil {
		a.tree.Release()
		return nixie.WithEvidence(full, evidenceOf(err))
	}
	facts := evidenceOf(err)
	if _, there := os.Stat(a.LogFile()); there == nil {
		facts.LogLocation = a.LogFile()
	}
	facts.Attachments = append(slices.Clone(facts.Attachments),
		nixie.Attachment{Name: itemfile.ArtifactPath, Data: []byte(a.tree.Path)})
	a.tree.Leave()
	return nixie.WithEvidence(err, facts)
}
