package sqlite

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/engine"
)

// Extend implements store.Queue. What is lost needs its slot of progress no longer than a sweep.
func (s *Store) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	errs := s.verbs.Extend(ctx, ds, lease)
	s.owner.progress.extended(ds, errs)
	return errs
}

// loadLeases finds the messages of deliveries.
func (v *verb) loadLeases(w *engine.Want, facts *engine.Facts) error {
	if len(w.Leases) == 0 {
		return nil
	}
	facts.Leases = make([]*engine.Message, len(w.Leases))
	all, found := make([]engine.Message, len(w.Leases)), make([]held, len(w.Leases))
	v.messages = make(map[int64]*held, len(w.Leases))
	for i, d := range w.Leases {
		if d == nil {
			continue
		}
		h, err := v.leased(d, &found[i])
		if err != nil {
			return err
		}
		if h == nil {
			continue
		}
		if h.fact == nil {
			h.ID, h.fact = d.ID, &all[i]
			h.fact.Message, h.fact.Pos = &h.Message, h.pos
			v.messages[h.pos] = h
		}
		facts.Leases[i] = h.fact
	}
	return nil
}

// leased finds the message of a delivery in its row or in a batch, nil if it is in neither.
func (v *verb) leased(d *nixie.Delivery, into *held) (h *held, err error) {
	pos, batch := d.Lease.Handle.Pos, d.Lease.Handle.Batch
	if pos == 0 {
		if pos, batch, err = v.find(d); err != nil {
			return nil, lostIsNone(err)
		}
	}
	if h = v.messages[pos]; h != nil {
		return h, nil
	}
	row, err := v.pending(pos)
	if err != nil {
		return nil, err
	}
	h = into
	if h.d = d; row != nil {
		h.pendingRow, h.was = *row, *row
	} else if err := v.holdMember(h, pos, batch, false); err != nil {
		return nil, lostIsNone(err)
	}
	h.q, err = v.queueAt(pos)
	return h, err
}

// lostIsNone returns nil for the error of a lease that is over: then there is no message under it.
func lostIsNone(err error) error {
	if nixie.CodeOf(err) == nixie.CodeLeaseLost {
		return nil
	}
	return err
}

// writeExtended renews leases. If all members of a batch are renewed, the batch keeps its one row.
// Otherwise the renewed members get rows of their own, so that the leases of the others end in
// time.
func (v *verb) writeExtended(c *engine.Changes) error {
	members := map[*batchRow][]*held{}
	for _, m := range c.Extended {
		h := v.messages[m.Pos]
		if h.batch != nil {
			members[h.batch] = append(members[h.batch], h)
			continue
		}
		if err := v.run("update pending set until = ?, steps = ? where pos = ?", h.Until, jsonText(len(h.Steps) == 0, h.Steps),
			h.pos); err != nil {
			return err
		}
	}
	for b, hs := range members {
		whole := int64(len(hs)) == b.left
		if whole {
			b.until, b.dirty = hs[0].Until, true
		}
		for _, h := range hs {
			if whole && len(h.Steps) == 0 {
				continue
			}
			if err := v.split(h); err != nil {
				return err
			}
		}
	}
	return nil
}

// split gives a member of a batch a row of its own under the same lease.
func (v *verb) split(h *held) error {
	if err := v.leave(h); err != nil {
		return err
	}
	h.batch.hasRows = true
	return v.insertPending(&h.pendingRow)
}
