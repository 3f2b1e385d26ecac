package memory

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/store"
)

// Count counts letters, or messages that still retry. It always scans all.
func (s *Store) Count(ctx context.Context, f nixie.Filter, c store.Counting) ([][]store.Group, store.Coverage, error) {
	if err := c.Check(); err != nil {
		return nil, store.Coverage{}, err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return nil, store.Coverage{}, err
	}
	defer s.mu.Unlock()
	counted := store.NewGrouping(c)
	if c.Retrying {
		for _, m := range s.messages {
			if m.Retrying() && filter.MatchMessage(&f, &m.Message, m.errorType(), now) {
				counted.AddRetrying(&m.Message)
			}
		}
		return counted.Groups(), store.Coverage{}, nil
	}
	for _, l := range s.find(&f, now) {
		whole := l.joined()
		counted.Add(&whole)
	}
	return counted.Groups(), store.Coverage{}, nil
}
