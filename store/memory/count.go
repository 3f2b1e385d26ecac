package memory

import (
	"context"
	"slices"
	"strconv"

	"github.com/nixie-go/nixie"
)

// Tally counts the messages that still retry.
func (s *Store) Tally(ctx context.Context, filter nixie.Filter, by nixie.GroupBy) ([]nixie.Tally, error) {
	if !slices.Contains(nixie.TalliedBy(), by) {
		return nil, nixie.Errorf(nixie.CodeInvalid, "messages cannot be counted by %q: give one of %v", by, nixie.TalliedBy())
	}
	now, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	counts := map[string]*nixie.Tally{}
	for _, m := range s.messages {
		if !m.Retrying() || !filter.MatchMessage(&m.Message, now) {
			continue
		}
		key := tallyKey(m, by)
		if counts[key] == nil {
			counts[key] = &nixie.Tally{Key: key}
		}
		if m.State == nixie.Leased {
			counts[key].Leased++
		} else {
			counts[key].Queued++
		}
	}
	list := make([]nixie.Tally, 0, len(counts))
	for _, c := range counts {
		list = append(list, *c)
	}
	nixie.SortTallies(list, by)
	return list, nil
}

func tallyKey(m *message, by nixie.GroupBy) string {
	switch by {
	case nixie.ByAttempts:
		return strconv.Itoa(m.Attempts)
	case nixie.ByReason:
		return string(m.LastReason)
	case nixie.ByType:
		return m.Type
	}
	return m.Queue
}
