package postgres

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Extend implements store.Queue.
func (s *Store) Extend(ctx context.Context, deliveries []*nixie.Delivery, lease time.Duration) []error {
	errs := make([]error, len(deliveries))
	if len(deliveries) == 0 {
		return errs
	}
	if err := store.CheckCall(len(deliveries)); err != nil {
		return all(errs, err)
	}
	if err := store.CheckLease(lease); err != nil {
		return all(errs, err)
	}
	err := s.write(ctx, func(t *tx) error {
		if err := t.holdLeased(deliveries, false); err != nil {
			return err
		}
		until := t.now + int64(lease)
		members := map[int64][]*message{}
		seen := map[*message]bool{}
		for i, d := range deliveries {
			m, steps, err := t.held(d)
			if errs[i] = err; err != nil || seen[m] {
				continue
			}
			seen[m], m.Steps = true, steps
			if m.in == inRangeBatch || m.in == inOrderedBatch {
				members[m.batch] = append(members[m.batch], m)
				continue
			}
			m.Until = until
			t.touch(m)
		}
		t.extendBatches(members, until)
		return nil
	})
	if err != nil {
		return all(errs, err)
	}
	return errs
}

// held finds the message of a delivery whose lease is current, and all its steps.
func (t *tx) held(d *nixie.Delivery) (*message, []string, error) {
	if d == nil {
		return nil, nil, nixie.Errorf(nixie.CodeInvalid, "delivery is missing: give the one that was received")
	}
	m := t.byID[d.ID]
	if m == nil || m.State != lifecycle.Leased || isStale(m, d) || m.Number != d.Lease.Number || m.Until <= t.now {
		return nil, nil, lifecycle.Lost(d)
	}
	steps, err := lifecycle.Learn(m.Steps, d)
	return m, steps, err
}
