package postgres

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
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
	if err := checkLease(lease); err != nil {
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
			var m *message
			if m, errs[i] = t.held(d); errs[i] != nil || seen[m] {
				continue
			}
			seen[m] = true
			m.learn(d.Steps)
			if m.in == inRange || m.in == offLane {
				members[m.batch] = append(members[m.batch], m)
				continue
			}
			m.until = until
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

// held finds the message of a delivery whose lease is current.
func (t *tx) held(d *nixie.Delivery) (*message, error) {
	if d == nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "delivery is missing: give the one that was received")
	}
	m := t.byID[d.ID]
	if m == nil || m.state != stLeased || isStale(m, d) || m.number != d.Lease.Number || m.until <= t.now {
		return nil, nixie.Errorf(nixie.CodeLeaseLost, "lease %d of message %s is over: its outcome was not recorded, another claim decides", d.Lease.Number, d.ID)
	}
	if len(d.Steps) > nixie.MaxSteps {
		return nil, nixie.Errorf(nixie.CodeLimit, "message has %d steps, the limit is %d: use fewer, larger steps", len(d.Steps), nixie.MaxSteps)
	}
	return m, nil
}
