package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
)

// Kept is the worktree of a failed attempt, kept for the operator.
type Kept struct {
	Item   string `json:"item"`
	Lease  int64  `json:"lease"`
	Path   string `json:"path"`
	Branch string `json:"branch"`
	Start  string `json:"start"` // the commit at which it began
}

// Log returns the path of the agent's log. The file exists if the agent wrote one.
func (k Kept) Log() string { return k.Path + LogFile }

// Keep takes the worktree out of the pool and leaves it as it is, in a folder named by item
// and lease. The next attempt gets another one.
func (t *Tree) Keep(ctx context.Context) (Kept, error) {
	ctx = context.WithoutCancel(ctx) // half a move is worse than a late one
	j := t.job
	defer func() { j.slots <- t.slot }()
	name := fmt.Sprintf("%s-%d", refName(t.Item), t.Lease)
	kept := Kept{Item: t.Item, Lease: t.Lease, Path: j.folder("kept", name), Branch: j.attemptBranch(t.Item, t.Lease), Start: t.Start}
	raw, err := json.Marshal(kept)
	if err == nil {
		err = os.MkdirAll(j.folder("kept"), 0o700)
	}
	if err != nil {
		return kept, worktreeError(fmt.Errorf("keep a worktree: %w", err))
	}
	if err := writeFile(kept.Path+".json", raw); err != nil {
		return kept, err
	}
	if err := j.remove(ctx, kept.Path, ""); err != nil { // of an item that was worked on anew from its first lease on
		return kept, err
	}
	if err := t.checkoutBranch(ctx, "refs/heads/"+kept.Branch); err != nil {
		return kept, err
	}
	err = withRepositoryLock(j.record.Common, func() error {
		_, err := j.git.call(ctx, j.record.Common, "worktree", "move", t.Path, kept.Path)
		return err
	})
	if err != nil {
		return kept, err
	}
	if err := os.Rename(t.File(LogFile), kept.Log()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return kept, worktreeError(fmt.Errorf("keep a log: %w", err))
	}
	t.Path = kept.Path
	return kept, nil
}

// checkoutBranch makes a branch of the attempt's commits and checks it out without touching files.
func (t *Tree) checkoutBranch(ctx context.Context, ref string) error {
	if _, err := t.call(ctx, "update-ref", ref, "HEAD"); err != nil {
		return err
	}
	_, err := t.call(ctx, "symbolic-ref", "HEAD", ref)
	return err
}

// sweep removes records of worktrees whose keeping a crash interrupted.
func (j *Job) sweep(ctx context.Context) error {
	all, err := j.keptRecords()
	if err != nil {
		return err
	}
	for _, k := range all {
		if !k.exists() {
			if err := j.Forget(ctx, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// Kept lists the kept worktrees.
func (j *Job) Kept() ([]Kept, error) {
	all, err := j.keptRecords()
	return slices.DeleteFunc(all, func(k Kept) bool { return !k.exists() }), err
}

func (k Kept) exists() bool {
	_, err := os.Stat(k.Path)
	return !errors.Is(err, fs.ErrNotExist)
}

// ForgetItem removes the kept worktrees of an item that have an earlier lease.
func (j *Job) ForgetItem(ctx context.Context, item string, lease int64) error {
	all, err := j.keptRecordsNamed(escapeGlob(refName(item)) + "-")
	for _, k := range all {
		if k.Item == item && k.Lease < lease {
			err = errors.Join(err, j.Forget(ctx, k))
		}
	}
	return err
}

// keptRecords lists the kept worktrees, also those whose keeping was interrupted.
func (j *Job) keptRecords() ([]Kept, error) { return j.keptRecordsNamed("") }

// keptRecordsNamed lists those whose names begin so.
func (j *Job) keptRecordsNamed(begin string) (list []Kept, err error) {
	names, err := filepath.Glob(filepath.Join(escapeGlob(j.folder("kept")), begin+"*.json"))
	if err != nil {
		return nil, worktreeError(err)
	}
	for _, name := range names {
		var k Kept
		raw, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(raw, &k)
		}
		if err != nil {
			return nil, worktreeError(fmt.Errorf("%s: %w", name, err))
		}
		list = append(list, k)
	}
	return list, nil
}

// escapeGlob quotes all pattern characters of a path.
func escapeGlob(folder string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(folder)
}

// Forget removes a worktree that was kept, and its branch.
func (j *Job) Forget(ctx context.Context, k Kept) error {
	if err := j.remove(ctx, k.Path, k.Branch); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(k.Log()), os.RemoveAll(k.Path+".json")); err != nil {
		return worktreeError(fmt.Errorf("forget a worktree: %w", err))
	}
	return nil
}

func (j *Job) remove(ctx context.Context, folder, branch string) error {
	if err := os.RemoveAll(folder); err != nil {
		return worktreeError(fmt.Errorf("remove a worktree: %w", err))
	}
	return withRepositoryLock(j.record.Common, func() error {
		if _, err := j.git.call(ctx, j.record.Common, "worktree", "prune"); err != nil || branch == "" {
			return err
		}
		_, err := j.git.call(ctx, j.record.Common, "update-ref", "-d", "refs/heads/"+branch)
		return err
	})
}

// Deliver merges the branch of the job into the branch that was checked out when the job began. It
// does so in the user's checkout, which must be on that branch and have no changes. A conflict
// leaves both branches as they were.
func (j *Job) Deliver(ctx context.Context) error {
	at, err := j.git.call(ctx, j.record.Top, "symbolic-ref", "--quiet", "HEAD")
	if err != nil || at != j.record.Target {
		return nixie.Errorf(nixie.CodeConflict, "%s is on another branch than %s: check that one out", j.record.Top,
			shortRef(j.record.Target))
	}
	changes, err := j.git.call(ctx, j.record.Top, "status", "--porcelain", "--untracked-files=no")
	switch {
	case err != nil:
		return err
	case changes != "":
		return nixie.Errorf(nixie.CodeConflict, "%s has changes that are not committed: commit or stash them", j.record.Top)
	}
	// Half a merge in the user's checkout is worse than a late one.
	s, code, err := j.git.exec(context.WithoutCancel(ctx), j.record.Top, nil, "-c", "user.name="+j.committer.name, "-c", "user.email="+
		j.committer.email, "merge", "--quiet", "--no-edit", "--no-stat", j.Branch())
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

// Clean removes all that the job has made: worktrees, also kept ones, branches and records. It
// refuses undelivered work without force. It closes the job.
func (j *Job) Clean(ctx context.Context, force bool) error {
	if done, err := j.Delivered(ctx); err != nil || !done && !force {
		if err == nil {
			err = nixie.Errorf(nixie.CodeConflict, "branch %s is not merged into %s: merge it first, or force", j.Branch(),
				shortRef(j.record.Target))
		}
		return err
	}
	if err := j.remove(ctx, j.folder("pool"), ""); err != nil {
		return err
	}
	if err := j.remove(ctx, j.folder("kept"), j.Branch()); err != nil {
		return err
	}
	attempts, err := j.git.call(ctx, j.record.Common, "for-each-ref", "--format=%(refname)", "refs/heads/nixie-attempts/"+j.name+"/")
	if err != nil {
		return err
	}
	for _, ref := range lines(attempts) {
		if _, err := j.git.call(ctx, j.record.Common, "update-ref", "-d", ref); err != nil {
			return err
		}
	}
	if err := errors.Join(os.RemoveAll(j.folder()), j.lock.Close()); err != nil {
		return worktreeError(fmt.Errorf("clean the job: %w", err))
	}
	return nil
}
