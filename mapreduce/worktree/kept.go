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
)

// Kept is the worktree of a failed attempt, kept for the operator.
type Kept struct {
	Item   string `json:"item"`
	Lease  int64  `json:"lease"`
	Path   string `json:"path"`
	Branch string `json:"branch"`
	Start  string `json:"start"` // the commit at which it began
}

// olderLog is the end of the path of a log as earlier builds kept it, with the worktree.
const olderLog = ".log"

// Keep takes the worktree out of the pool and leaves it as it is, in a folder named by item
// and lease. The next attempt gets another one. Of a worktree that the attempt broke Keep keeps the
// files, without a branch; of one that it removed nothing: then the path is empty.
func (t *Tree) Keep(ctx context.Context) (Kept, error) {
	ctx = context.WithoutCancel(ctx) // half a move is worse than a late one
	j := t.job
	defer func() { t.slot.home <- t.slot }()
	if err := t.leaveBranch(ctx); err != nil {
		return Kept{Item: t.Item, Lease: t.Lease}, err
	}
	if _, err := os.Lstat(t.Path); err != nil {
		return Kept{Item: t.Item, Lease: t.Lease}, nil
	}
	name := fmt.Sprintf("%s-%d", refName(t.Item), t.Lease)
	kept := Kept{Item: t.Item, Lease: t.Lease, Path: j.folder("kept", name), Branch: j.attemptBranch(t.Item, t.Lease), Start: t.Start}
	if err := kept.write(); err != nil {
		return kept, err
	}
	if err := j.remove(ctx, kept.Path, ""); err != nil { // of an item that was worked on anew from its first lease on
		return kept, err
	}
	if err := t.checkoutBranch(ctx, "refs/heads/"+kept.Branch); err != nil {
		kept.Branch = ""
		if err := kept.write(); err != nil {
			return kept, err
		}
	}
	if err := t.moveTo(ctx, kept.Path); err != nil {
		if renamed := os.Rename(t.Path, kept.Path); renamed != nil {
			return kept, errors.Join(err, worktreeError(renamed))
		}
	}
	t.Path = kept.Path
	return kept, nil
}

// write writes the record of a kept worktree.
func (k Kept) write() error {
	raw, err := json.Marshal(k)
	if err != nil {
		return worktreeError(err)
	}
	return writeFile(k.Path+".json", raw)
}

// moveTo lets git move the worktree.
func (t *Tree) moveTo(ctx context.Context, folder string) error {
	return withRepositoryLock(t.job.record.Common, func() error {
		_, err := t.job.git.call(ctx, t.job.record.Common, "worktree", "move", t.Path, folder)
		return err
	})
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

// ForgetItem removes the kept worktrees of an item that have an earlier lease. One that a user
// locked stays until the job is cleaned.
func (j *Job) ForgetItem(ctx context.Context, item string, lease int64) error {
	all, err := j.keptRecordsNamed(escapeGlob(refName(item)) + "-")
	all = slices.DeleteFunc(all, func(k Kept) bool { return k.Item != item || k.Lease >= lease })
	if err != nil || len(all) == 0 {
		return err
	}
	locked, err := j.locked(ctx)
	for _, k := range all {
		if _, is := locked[k.Path]; !is {
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
	if err := errors.Join(os.RemoveAll(k.Path+olderLog), os.RemoveAll(k.Path+".json")); err != nil {
		return worktreeError(fmt.Errorf("forget a worktree: %w", err))
	}
	return nil
}

func (j *Job) remove(ctx context.Context, folder, branch string) error {
	if err := removeAll(folder); err != nil {
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
