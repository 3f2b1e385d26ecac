package runner

import (
	"context"
	"errors"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
)

// Bounds of the wait for room on a full disk.
const (
	roomPatience = 15 * time.Minute // until the run ends, the same as for the disk of a store
	roomEvery    = time.Second      // between two looks
	mostRefills  = 3                // that an attempt is repeated and not counted: the item may fill the disk itself
)

// withRoom makes an attempt, and makes it again once there is room when it failed on a full disk.
func (r *Runner) withRoom(ctx context.Context, attempt func() error) error {
	for refills := 0; ; refills++ {
		err := attempt()
		var full *command.FullError
		if !errors.As(err, &full) || refills == mostRefills {
			return err
		}
		if err := r.waitForRoom(ctx, full); err != nil {
			return err
		}
	}
}

// waitForRoom waits until a disk has room. It gives the item back when the run ends before that.
func (r *Runner) waitForRoom(ctx context.Context, full *command.FullError) error {
	r.mu.Lock()
	working := r.working
	r.mu.Unlock()
	look := time.NewTicker(roomEvery)
	defer look.Stop()
	for {
		if command.Room(full.Folder) != nil { // else it has room since the attempt failed
			r.outage.note(working, filling, full)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-working.Done():
			return nixie.Verdict(nixie.Release, full)
		case <-look.C:
		}
		if command.Room(full.Folder) == nil {
			r.outage.note(working, filling, nil)
			return nil
		}
	}
}
