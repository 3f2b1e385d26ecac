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

// Kept is the worktree of an attempt that failed, for whoever wants to look.
type Kept struct {
	Item   string `json:"item"`
	Lease  int64  `json:"lease"`
	Path   string `json:"path"`
	Branch string `json:"branch"`
	Start  string `json:"start"` // the commit at which it began
}

// Log is the file of what an agent had to tell, if it told anything.
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
		return kept, broken(fmt.Errorf("keep a worktree: %w", err))
	}
	if err := writeFile(kept.Path+".json", raw); err != nil {
		return kept, err
	}
	if err := j.remove(ctx, kept.Path, ""); err != nil { // of an item that was worked on anew from its first lease on
		return kept, err
	}
	if err := t.name(ctx, "refs/heads/"+kept.Branch); err != nil {
		return kept, err
	}
	err = alone(j.note.Common, func() error {
		_, err := j.git.call(ctx, j.note.Common, "worktree", "move", t.Path, kept.Path)
		return err
	})
	if err != nil {
		return kept, err
	}
	if err := os.Rename(t.File(LogFile), kept.Log()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return kept, broken(fmt.Errorf("keep a log: %w", err))
	}
	t.Path = kept.Path
	return kept, nil
}

// name makes a branch of what the attempt has committed, and checks it out as it is.
func (t *Tree) name(ctx context.Context, ref string) error {
	if _, err := t.call(ctx, "update-ref", ref, "HEAD"); err != nil {
		return err
	}
	_, err := t.call(ctx, "symbolic-ref", "HEAD", ref)
	return err
}

// sweep forgets what was not kept to the end before a crash.
func (j *Job) sweep(ctx context.Context) error {
	all, err := j.notes()
	if err != nil {
		return err
	}
	for _, k := range all {
		if !k.there() {
			if err := j.Forget(ctx, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// Kept lists what was kept.
func (j *Job) Kept() ([]Kept, error) {
	all, err := j.notes()
	return slices.DeleteFunc(all, func(k Kept) bool { return !k.there() }), err
}

func (k Kept) there() bool {
	_, err := os.Stat(k.Path)
	return !errors.Is(err, fs.ErrNotExist)
}

// ForgetItem removes what was kept of an item under leases before that one.
func (j *Job) ForgetItem(ctx context.Context, item string, lease int64) error {
	all, err := j.notesOf(escaped(refName(item)) + "-")
	for _, k := range all {
		if k.Item == item && k.Lease < lease {
			err = errors.Join(err, j.Forget(ctx, k))
		}
	}
	return err
}

// notes lists what was kept, or begun to be.
func (j *Job) notes() ([]Kept, error) { return j.notesOf("") }

// notesOf lists what was kept under names that begin so.
func (j *Job) notesOf(begin string) (list []Kept, err error) {
	names, err := filepath.Glob(filepath.Join(escaped(j.folder("kept")), begin+"*.json"))
	if err != nil {
		return nil, broken(err)
	}
	for _, name := range names {
		var k Kept
		raw, err := os.ReadFile(name)
		if err == nil {
			err = json.Unmarshal(raw, &k)
		}
		if err != nil {
			return nil, broken(fmt.Errorf("%s: %w", name, err))
		}
		list = append(list, k)
	}
	return list, nil
}

// escaped is a path in which nothing is a pattern.
func escaped(folder string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(folder)
}

// Forget removes a worktree that was kept, and its branch.
func (j *Job) Forget(ctx context.Context, k Kept) error {
	if err := j.remove(ctx, k.Path, k.Branch); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(k.Log()), os.RemoveAll(k.Path+".json")); err != nil {
		return broken(fmt.Errorf("forget a worktree: %w", err))
	}
	return nil
}

func (j *Job) remove(ctx context.Context, folder, branch string) error {
	if err := os.RemoveAll(folder); err != nil {
		return broken(fmt.Errorf("remove a worktree: %w", err))
	}
	return alone(j.note.Common, func() error {
		if _, err := j.git.call(ctx, j.note.Common, "worktree", "prune"); err != nil || branch == "" {
			return err
		}
		_, err := j.git.call(ctx, j.note.Common, "update-ref", "-d", "refs/heads/"+branch)
		return err
	})
}

// Deliver merges the branch of the job into the one that was checked out when it began, in
// the user's checkout, which has to be on it and to have no changes. A conflict leaves both
// as they were.
func (j *Job) Deliver(ctx context.Context) error {
	at, err := j.git.call(ctx, j.note.Top, "symbolic-ref", "--quiet", "HEAD")
	if err != nil || at != j.note.Target {
		return nixie.Errorf(nixie.CodeConflict, "%s is on another branch than %s: check that one out", j.note.Top, short(j.note.Target))
	}
	changes, err := j.git.call(ctx, j.note.Top, "status", "--porcelain", "--untracked-files=no")
	switch {
	case err != nil:
		return err
	case changes != "":
		return nixie.Errorf(nixie.CodeConflict, "%s has changes that are not committed: commit or stash them", j.note.Top)
	}
	// Half a merge in the user's checkout is worse than a late one.
	s, code, err := j.git.ask(context.WithoutCancel(ctx), j.note.Top, nil, "-c", "user.name="+j.who.name, "-c", "user.email="+j.who.email, "merge", "--quiet", "--no-edit", "--no-stat", j.Branch())
	if err != nil || code == 0 {
		return err
	}
	if _, err := j.git.call(context.WithoutCancel(ctx), j.note.Top, "merge", "--abort"); err != nil {
		return errors.Join(failed([]string{"merge"}, s), err)
	}
	return nixie.WithReason(nixie.Errorf(nixie.CodeConflict, "branch %s cannot be joined with %s as it is now: %s", j.Branch(), short(j.note.Target), s.out), nixie.ReasonMergeConflict)
}

// short is the name of a branch without what all have.
func short(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }

// Delivered reports whether the branch that the job began at has all of the job's.
func (j *Job) Delivered(ctx context.Context) (bool, error) {
	tip, err := j.tip(ctx)
	if err != nil {
		return false, err
	}
	target, err := j.git.call(ctx, j.note.Common, "rev-parse", "--verify", "--quiet", j.note.Target+"^{commit}")
	if err != nil {
		return false, err
	}
	return j.has(ctx, target, tip)
}

// Clean removes all that the job has made: worktrees, also those that were kept, branches
// and notes. What is not delivered is lost only with force. The job is closed then.
func (j *Job) Clean(ctx context.Context, force bool) error {
	if done, err := j.Delivered(ctx); err != nil || !done && !force {
		if err == nil {
			err = nixie.Errorf(nixie.CodeConflict, "branch %s is not merged into %s: merge it first, or force", j.Branch(), short(j.note.Target))
		}
		return err
	}
	if err := j.remove(ctx, j.folder("pool"), ""); err != nil {
		return err
	}
	if err := j.remove(ctx, j.folder("kept"), j.Branch()); err != nil {
		return err
	}
	attempts, err := j.git.call(ctx, j.note.Common, "for-each-ref", "--format=%(refname)", "refs/heads/nixie-attempts/"+j.name+"/")
	if err != nil {
		return err
	}
	for _, ref := range lines(attempts) {
		if _, err := j.git.call(ctx, j.note.Common, "update-ref", "-d", ref); err != nil {
			return err
		}
	}
	if err := errors.Join(os.RemoveAll(j.folder()), j.lock.Close()); err != nil {
		return broken(fmt.Errorf("clean the job: %w", err))
	}
	return nil
}
