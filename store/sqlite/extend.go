package sqlite

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Extend implements store.Queue.
func (s *Store) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	errs := make([]error, len(ds))
	if len(ds) == 0 {
		return errs
	}
	if err := store.CheckCall(len(ds)); err != nil {
		return all(errs, err)
	}
	if err := store.CheckLease(lease); err != nil {
		return all(errs, err)
	}
	err := s.write(ctx, 0, func(t *tx) error { return t.extend(ds, t.now+int64(lease), errs) })
	if err != nil {
		return all(errs, err)
	}
	s.owner.progress.extended(ds, errs)
	return errs
}

// extend renews leases. If it renews all members of a batch, the batch keeps its one row. Otherwise
// the renewed members get rows of their own, so that the leases of the others end in time.
func (t *tx) extend(ds []*nixie.Delivery, until int64, errs []error) error {
	members := map[*batchRow][]*held{}
	seen := make(map[int64]bool, len(ds))
	for i, d := range ds {
		h, err := t.hold(d)
		errs[i] = err
		switch {
		case err == nil && seen[h.pos]:
			continue
		case err != nil && !answers(err):
			return err
		case err != nil:
			continue
		}
		seen[h.pos] = true
		if h.batch != nil {
			members[h.batch] = append(members[h.batch], h)
			continue
		}
		if err := t.run("update pending set until = ?, steps = ? where pos = ?", until, jsonText(len(h.Steps) == 0, h.Steps),
			h.pos); err != nil {
			return err
		}
	}
	for b, hs := range members {
		whole := int64(len(hs)) == b.left
		if whole {
			b.until, b.dirty = until, true
		}
		for _, h := range hs {
			if whole && len(h.Steps) == 0 {
				continue
			}
			if err := t.split(h, until); err != nil {
				return err
			}
		}
	}
	return nil
}

// split gives a member of a batch a row of its own under the same lease.
func (t *tx) split(h *held, until int64) error {
	if err := t.leave(h); err != nil {
		return err
	}
	h.batch.hasRows = true
	h.State, h.Until = lifecycle.Leased, until
	return t.insertPending(&h.pendingRow)
}
