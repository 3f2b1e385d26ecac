package worktree

import (
	"path/filepath"
	"sync"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
)

// room knows whether the disks of a job had room when that was asked last.
type room struct {
	mu   sync.Mutex // held also while the disks are probed, so that many attempts do not fill what is left
	full error      // nil: they had
	seen int        // how often they were found full
}

// probe asks whether the disks of the repository and of the worktrees have room.
func (j *Job) probe() error {
	j.room.full = command.Room(filepath.Join(j.record.Common, "objects"), j.c.State)
	if j.room.full != nil {
		j.room.seen++
	}
	return j.room.full
}

// beginWithRoom returns the number that an attempt begins with. While a disk is full none begins.
func (j *Job) beginWithRoom() (seen int, err error) {
	j.room.mu.Lock()
	defer j.room.mu.Unlock()
	if j.room.full != nil {
		err = j.probe()
	}
	return j.room.seen, err
}

// fullSince returns a [*command.FullError] when a disk is full, when err says so, or when another
// attempt found one full since this one began. Otherwise it returns nil.
func (j *Job) fullSince(seen int, err error) error {
	j.room.mu.Lock()
	defer j.room.mu.Unlock()
	full := j.probe()
	if full == nil && (command.IsFull(err) || j.room.seen > seen) {
		full = &command.FullError{Folder: filepath.Join(j.record.Common, "objects")}
	}
	if full == nil {
		return nil
	}
	return nixie.WithReason(full, nixie.ReasonResource)
}

// Full returns a [*command.FullError] when err, with which the attempt failed, may come from a full
// disk. Otherwise it returns nil.
func (t *Tree) Full(err error) error { return t.job.fullSince(t.seen, err) }

// Discard gives the worktree to the next attempt and removes all that is in it at once, which makes
// room when the attempt itself has filled the disk.
func (t *Tree) Discard() {
	_ = removeAll(t.Path) // the next attempt removes it before it makes one
	t.Release()
}
