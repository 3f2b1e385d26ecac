package mapreduce

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/mapreduce/worktree"
)

// MergeAttempt runs the merge steps of a workflow in the user's checkout.
type MergeAttempt struct {
	m    *Map
	tree *worktree.Checkout
}

// BeginMerge prepares the checkout for merge steps. It returns nil if the branch is merged already.
func (m *Map) BeginMerge(ctx context.Context, d *nixie.Delivery) (*MergeAttempt, error) {
	if done, err := m.c.Job.Delivered(ctx); err != nil || done {
		return nil, inPhase("checkout", Merge, err)
	}
	tree, err := m.c.Job.Checkout(ctx, d.Lease.Number, d.Attempts+d.Crashes > 1 || d.Redrives > 0)
	if err != nil {
		return nil, inPhase("checkout", Merge, nixie.Permanent(err))
	}
	return &MergeAttempt{m, tree}, nil
}

// Dir returns the folder of the checkout.
func (a *MergeAttempt) Dir() string { return a.tree.Path }

// Environ returns the environment that commands inherit, with the names of both branches.
func (a *MergeAttempt) Environ() []string {
	return append(a.tree.Environ(), "NIXIE_MERGE_SOURCE_BRANCH="+a.m.c.Job.Branch(), "NIXIE_MERGE_TARGET_BRANCH="+a.m.c.Job.Target())
}

// ItemFile returns a path for the message.
func (a *MergeAttempt) ItemFile() string { return a.tree.File(worktree.ItemFile) }

// ResultFile returns a path for a result, which nothing reads.
func (a *MergeAttempt) ResultFile() string { return a.tree.File(worktree.ResultFile) }

// LogFile returns a path for the log of agents.
func (a *MergeAttempt) LogFile() string { return a.tree.Log() }

// Head returns the commit that is checked out.
func (a *MergeAttempt) Head(ctx context.Context) (string, error) { return a.tree.Head(ctx) }

// Committed returns an error if the commit that is checked out is still the one before a step.
func (a *MergeAttempt) Committed(ctx context.Context, since string) error {
	head, err := a.tree.Head(ctx)
	if err == nil && head == since {
		err = noCommit(head, "")
	}
	return err
}

// Check accepts what steps leave: it is the user's checkout.
func (a *MergeAttempt) Check(context.Context) error { return nil }

// End ends a merge that is not done, so that the checkout is as it was before.
func (a *MergeAttempt) End(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	facts := evidenceOf(err)
	if _, there := os.Stat(a.LogFile()); there == nil {
		facts.LogLocation = a.LogFile()
	}
	facts.Attachments = slices.Clone(facts.Attachments)
	return errors.Join(nixie.WithEvidence(err, facts), a.tree.AbortMerge(context.WithoutCancel(ctx)))
}
