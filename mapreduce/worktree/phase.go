package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/nixie-go/nixie"
)

// phaseMark begins the name of a phase where others have items: no item has a control character.
const phaseMark = "\x01"

// sharedFolder is the worktree that all phases of the job share.
func (j *Job) sharedFolder() string { return j.folder("pool", "shared") }

// begunFile is there once a phase that carries on has begun in the shared worktree.
const begunFile = ".begun"

// Phase gives an attempt of a phase the worktree that all phases share, at the tip of the job. The
// name tells the phase from those that were merged before. A fresh worktree has committed files
// only. One that is not has what earlier phases left uncommitted. A repeated attempt has what they
// left in files that git does not track.
func (j *Job) Phase(ctx context.Context, name string, lease int64, fresh bool) (*Tree, error) {
	prepare := (*Tree).carryOn
	if fresh {
		prepare = (*Tree).startOver
	}
	return j.attempt(ctx, j.shared, phaseMark+name, lease, prepare)
}

// PhaseMerged returns the commit that merged a phase; empty means none.
func (j *Job) PhaseMerged(ctx context.Context, name string) (string, error) {
	return j.Merged(ctx, phaseMark+name)
}

// startOver makes the shared worktree a fresh one.
func (t *Tree) startOver(ctx context.Context) error {
	if err := os.RemoveAll(t.File(begunFile)); err != nil {
		return worktreeError(fmt.Errorf("worktree: %w", err))
	}
	return t.fresh(ctx)
}

// carryOn brings the shared worktree to the commit at which the attempt begins, and leaves what
// earlier phases did not commit. A repeated attempt resets the files that git tracks: a killed one
// may have left half a change.
func (t *Tree) carryOn(ctx context.Context) error {
	own, err := t.job.gitDir(t.slot)
	if err != nil { // no phase was here before, or one broke it
		return t.startOver(ctx)
	}
	if err := tidy(own); err != nil {
		return worktreeError(fmt.Errorf("worktree: %w", err))
	}
	t.own, t.git = own, t.job.git.in(t.job.record.Common, own, t.Path)
	_, err = os.Stat(t.File(begunFile))
	if err == nil {
		_, err = t.filter(ctx, "checkout", "--quiet", "--force", "--detach", t.Start)
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return worktreeError(fmt.Errorf("worktree: %w", err))
	}
	if _, err := t.filter(ctx, "checkout", "--quiet", "--detach", t.Start); err != nil {
		return t.uncommittedConflict(ctx, err)
	}
	return writeFile(t.File(begunFile), nil)
}

// uncommittedConflict makes the failure of a phase of a checkout that git refused because files
// without a commit differ from what items committed.
func (t *Tree) uncommittedConflict(ctx context.Context, refused error) error {
	changes, err := t.Changes(ctx)
	if err != nil || changes == "" {
		return refused
	}
	if err := writeFile(t.File(begunFile), nil); err != nil {
		return err
	}
	return nixie.WithReason(nixie.Permanent(fmt.Errorf("what an earlier phase left uncommitted conflicts with what items committed: "+
		"let setup commit it; a redrive goes on with what is committed: %w", refused)), nixie.ReasonMergeConflict)
}

// tidy removes from the git folder of a worktree what a killed git left there. Nothing works in it.
func tidy(own string) error {
	entries, err := os.ReadDir(own)
	for _, entry := range entries {
		if err == nil && !slices.Contains(cleanEntries[:], entry.Name()) {
			err = removeAll(filepath.Join(own, entry.Name()))
		}
	}
	return err
}

// Shared returns the worktree of the phases, and what is uncommitted in it, in the short format of
// git status. It is empty if no phase has left one.
func (j *Job) Shared(ctx context.Context) (folder, changes string, err error) {
	s := <-j.shared
	defer func() { j.shared <- s }()
	own, err := j.gitDir(s)
	if err != nil {
		return "", "", nil //nolint:nilerr // no phase has begun, or it broke the worktree
	}
	t := Tree{Path: s.path, job: j, slot: s, own: own, git: j.git.in(j.record.Common, own, s.path)}
	changes, err = t.Changes(ctx)
	return s.path, changes, err
}

// OpenShared opens a file of the shared worktree, by its path there. It leads nowhere else, also
// not by links.
func (j *Job) OpenShared(name string) (io.ReadCloser, error) {
	root, err := os.OpenRoot(j.sharedFolder())
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only opened
	return root.Open(name)
}
