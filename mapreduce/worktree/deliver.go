package worktree

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/nixie-go/nixie"
)

// Deliver merges the branch of the job into the branch that was checked out when the job began. It
// does so in the user's checkout, which must be on that branch and have no changes. A conflict
// leaves both branches as they were.
func (j *Job) Deliver(ctx context.Context) error {
	if err := j.mayDeliver(ctx); err != nil {
		return err
	}
	tip, err := j.tip(ctx)
	if err != nil {
		return err
	}
	// Half a merge in the user's checkout is worse than a late one.
	s, code, err := j.git.filter(context.WithoutCancel(ctx), j.record.Top, "-c", "user.name="+j.committer.name, "-c", "user.email="+
		j.committer.email, "merge", "--quiet", "--no-edit", "--no-stat", "-m", "Merge branch '"+j.Branch()+"'", tip)
	if err != nil || code == 0 {
		return err
	}
	if _, err := j.git.call(context.WithoutCancel(ctx), j.record.Top, "merge", "--abort"); err != nil {
		return errors.Join(failed([]string{"merge"}, s), err)
	}
	return nixie.WithReason(
		nixie.Errorf(nixie.CodeConflict, "branch %s cannot be joined with %s as it is now: %s", j.Branch(), shortRef(j.record.Target),
			s.out), nixie.ReasonMergeConflict)
}

// mayDeliver refuses a checkout into which the branch cannot be merged, and brings the branch up to
// date.
func (j *Job) mayDeliver(ctx context.Context) error {
	if _, err := os.Stat(j.record.Top); err != nil {
		return nixie.Errorf(nixie.CodeNotFound, "the checkout of job %s is gone: %w: git -C %s worktree add %s %s makes it again", j.c.Job,
			err, j.record.Common, j.record.Top, shortRef(j.record.Target))
	}
	at, err := j.git.call(ctx, j.record.Top, "symbolic-ref", "--quiet", "HEAD")
	if err != nil || at != j.record.Target {
		return nixie.Errorf(nixie.CodeConflict, "%s is on another branch than %s: check that one out", j.record.Top,
			shortRef(j.record.Target))
	}
	changes, err := j.changesIn(ctx, j.record.Top)
	switch {
	case err != nil:
		return err
	case changes != "":
		return nixie.Errorf(nixie.CodeConflict, "%s has changes that are not committed: commit or stash them", j.record.Top)
	}
	_, err = j.Follow(ctx)
	return err
}

// Target returns the branch that was checked out when the job began.
func (j *Job) Target() string { return shortRef(j.record.Target) }

// Tip returns the commit at which the work of the job is.
func (j *Job) Tip(ctx context.Context) (string, error) { return j.tip(ctx) }

// shortRef removes refs/heads/ from the name of a branch.
func shortRef(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }

// Delivered reports whether the branch that the job began at has all commits of the job.
func (j *Job) Delivered(ctx context.Context) (bool, error) {
	tip, err := j.tip(ctx)
	if err != nil {
		return false, err
	}
	target, err := j.git.call(ctx, j.record.Common, "rev-parse", "--verify", "--quiet", j.record.Target+"^{commit}")
	if err != nil {
		return false, err
	}
	return j.contains(ctx, target, tip)
}
