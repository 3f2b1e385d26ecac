package postgres

import (
	"context"
	"errors"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// Holders note how far they are with their leases in a table without a write-ahead log: a note
// costs a round trip and does not wait for the disk. Notes survive the process that wrote them; a
// crash of the server removes all. Without a note a message counts as begun. Position and number
// name a lease for good, so a note is about that lease or about none.

// errNoProgress says that the progress is not noted.
var errNoProgress = errors.New("the progress of deliveries is not noted")

// LogProgress implements lease.ProgressLog.
func (s *Store) LogProgress(progress lease.Progress, ds ...*nixie.Delivery) error {
	for _, d := range ds {
		if d.Lease.Handle.Pos == 0 || progress == lease.Succeeded && len(lease.NewSteps(d)) > 0 {
			return errNoProgress
		}
	}
	st := s.note(progress, ds, s.owner.self())
	return s.single(context.Background(), s.own, []stmt{st})
}

// note returns the statement that notes the progress of deliveries. It leaves out leases that are
// over or of another owner by now.
func (s *Store) note(progress lease.Progress, ds []*nixie.Delivery, owner int64) stmt {
	positions := eachOf(ds, func(d *nixie.Delivery) int64 { return d.Lease.Handle.Pos })
	numbers := eachOf(ds, func(d *nixie.Delivery) int64 { return d.Lease.Number })
	if progress == lease.Begun {
		return stmt{query: s.named("forget_begun.sql"), args: []any{positions, numbers}}
	}
	batches := eachOf(ds, func(d *nixie.Delivery) int64 { return d.Lease.Handle.Batch })
	return stmt{query: s.named("note_progress.sql"), args: []any{positions, numbers, batches, owner, progress == lease.Succeeded}}
}

// noteClaimed notes that the messages that are being claimed wait.
func (t *tx) noteClaimed(got *claims, owner int64) error {
	if err := t.send(); err != nil || len(got.list) == 0 {
		return err
	}
	ds := eachOf(got.list, func(c *claimed) *nixie.Delivery { return c.d })
	t.list = append(t.list, t.store.note(lease.Waiting, ds, owner))
	return nil
}
