package engine

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Extend implements store.Queue.
func (e *Engine) Extend(ctx context.Context, deliveries []*nixie.Delivery, lease time.Duration) []error {
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
	err := e.driver.Update(ctx, How{Renews: true}, func(tx Tx) error {
		facts, err := tx.Load(&Want{Leases: deliveries})
		if err != nil {
			return err
		}
		c := call{Facts: facts}
		for i, d := range deliveries {
			errs[i] = c.extend(facts.Leases[i], d, facts.Now+int64(lease))
		}
		return tx.Write(&c.changes)
	})
	if err != nil {
		return all(errs, err)
	}
	return errs
}

// extend lets the lease of a message end at a later moment.
func (c *call) extend(m *Message, d *nixie.Delivery, until int64) error {
	steps, err := c.held(m, d)
	if err != nil {
		return err
	}
	m.Until, m.Steps = until, steps
	if !m.changed {
		m.changed = true
		c.changes.Extended = append(c.changes.Extended, m)
	}
	return nil
}

func missing() error {
	return nixie.Errorf(nixie.CodeInvalid, "delivery is missing: give the one that was received")
}

// held returns all steps of the message of a delivery, if the lease is current.
func (c *call) held(m *Message, d *nixie.Delivery) ([]string, error) {
	switch {
	case d == nil:
		return nil, missing()
	case m == nil || m.State != lifecycle.Leased || m.Number != d.Lease.Number || m.Until <= c.Now:
		return nil, lifecycle.Lost(d)
	}
	return lifecycle.Learn(m.Steps, d)
}
