package worktree

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nixie-go/nixie"
)

// Clean removes all that the job has made: worktrees, also kept ones, branches and records. It
// refuses undelivered work and locked worktrees without force, and a branch that a user has
// checked out in any case. It closes the job.
func (j *Job) Clean(ctx context.Context, force bool) error {
	if err := j.mayClean(ctx, force); err != nil {
		return err
	}
	if err := j.unlockAll(ctx, force); err != nil {
		return err
	}
	if err := j.remove(ctx, j.folder("pool"), ""); err != nil {
		return err
	}
	if err := j.remove(ctx, j.folder("kept"), ""); err != nil {
		return err
	}
	attempts, err := j.git.call(ctx, j.record.Common, "for-each-ref", "--format=%(refname)", "refs/heads/nixie-attempts/"+j.name+"/")
	if err != nil {
		return err
	}
	for _, ref := range append(lines(attempts), j.branchRef(), j.ref()) {
		if _, err := j.git.call(ctx, j.record.Common, "update-ref", "-d", ref); err != nil {
			return err
		}
	}
	if err := errors.Join(removeAll(j.folder()), j.lock.Close()); err != nil {
		return worktreeError(fmt.Errorf("clean the job: %w", err))
	}
	return nil
}

// mayClean refuses to remove what a user would miss.
func (j *Job) mayClean(ctx context.Context, force bool) error {
	_, folder, err := j.branchNow(ctx)
	if err == nil && folder != "" {
		err = nixie.Errorf(nixie.CodeConflict, "branch %s is checked out in %s: git -C %s switch --detach leaves it", j.Branch(), folder,
			folder)
	}
	if err != nil || force {
		return err
	}
	if _, err := j.Follow(ctx); err != nil {
		return err
	}
	done, err := j.Delivered(ctx)
	if err == nil && !done {
		err = nixie.Errorf(nixie.CodeConflict, "branch %s is not merged into %s: merge it first, or force", j.Branch(),
			shortRef(j.record.Target))
	}
	return err
}

// unlockAll takes the locks off the job's worktrees. Without force it refuses the first one.
func (j *Job) unlockAll(ctx context.Context, force bool) error {
	locked, err := j.locked(ctx)
	for folder, why := range locked {
		if !force {
			return nixie.Errorf(nixie.CodeConflict,
				"worktree %s is locked (%s): git -C %s worktree unlock %s lets it be removed, and so does force",
				folder, why, j.record.Common, folder)
		}
		if _, err := j.git.call(ctx, j.record.Common, "worktree", "unlock", folder); err != nil {
			return err
		}
	}
	return err
}

// locked returns the worktrees of the job that a user locked, each with the reason, also those
// whose folder is gone.
func (j *Job) locked(ctx context.Context) (map[string]string, error) {
	text, err := j.git.call(ctx, j.record.Common, "worktree", "list", "--porcelain", "-z")
	all := map[string]string{}
	folder := ""
	for _, line := range fields(text) {
		name, rest, _ := strings.Cut(line, " ")
		switch {
		case name == "worktree":
			folder = rest
		case name == "locked" && j.owns(folder):
			if all[folder] = rest; rest == "" {
				all[folder] = "no reason is given"
			}
		}
	}
	return all, err
}
