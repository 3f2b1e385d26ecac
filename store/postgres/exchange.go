package postgres

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
)

// exchange implements Exchange of store.Features. It saves a round trip and a commit. It locks the
// cursor before it settles, as all calls lock cursors first. So exchanges that claim from one queue
// wait for each other's commits.
func (s *Store) exchange(ctx context.Context, settlements []nixie.Settlement, queue string, want nixie.Want) ([]error,
	[]*nixie.Delivery, error) {
	errs, got, err := s.settleAndClaim(ctx, settlements, queue, want)
	switch {
	case err != nil:
		return errs, nil, err
	case got.counts():
		return errs, got.sorted(), nil
	}
	list, err := s.Claim(ctx, queue, want)
	return errs, list, err
}

// settleAndClaim settles, and claims unless that has to be done by itself.
func (s *Store) settleAndClaim(ctx context.Context, settlements []nixie.Settlement, queue string, want nixie.Want) ([]error,
	*claims, error) {
	leave, err := s.beginClaim(ctx, queue, &want)
	if err != nil {
		return s.verbs.Settle(ctx, settlements), nil, err
	}
	defer leave()
	var got *claims
	owner := s.owner.self()
	claim := func(t *tx) (err error) {
		got, err = t.claim(queue, want, owner)
		return err
	}
	c := s.plan(settlements)
	if _, bad := store.CheckSettlements(settlements); bad != nil || c == nil || c.plain < len(settlements) {
		errs, err := s.verbs.Exchange(ctx, settlements, queue, func(tx engine.Tx) error {
			t := tx.(*verb).tx
			t.flush()
			return claim(t)
		})
		return errs, got, err
	}
	err = s.transact(ctx, s.pool, func(t *tx) error {
		t.quiet, t.claims = true, queue
		if err := t.lockCursor(queue); err != nil {
			return err
		}
		t.list = append(t.list, c.statements()...)
		t.after = append(t.after, func() { s.tell(c.woken) })
		return claim(t)
	})
	if err != nil {
		return s.verbs.Unexchanged(ctx, settlements, err), nil, err
	}
	return s.settleRest(ctx, c), got, nil
}

// settleRest settles what was not completed plainly.
func (s *Store) settleRest(ctx context.Context, c *completing) []error {
	errs := make([]error, len(c.done))
	var at []int
	var rest []nixie.Settlement
	for i, done := range c.done {
		if !done {
			at, rest = append(at, i), append(rest, c.settlements[i])
		}
	}
	for i, err := range s.verbs.Settle(ctx, rest) {
		errs[at[i]] = err
	}
	return errs
}
