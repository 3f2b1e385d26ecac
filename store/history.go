package store

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
)

// LastFailure implements [lease.Historian], for a queue that lists its messages.
func (s *Source) LastFailure(ctx context.Context, d *nixie.Delivery) (*nixie.Failure, error) {
	all, ok := s.queue.(Overview)
	if !ok {
		return nil, nil
	}
	found, _, err := all.Messages(ctx, nixie.Filter{IDs: []nixie.ID{d.ID}}, Page{Whole: true, Limit: 1})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return lease.LastFailure(found[0].History), nil
}
