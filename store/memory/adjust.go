package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Adjust changes settings of a queue.
func (s *Store) Adjust(ctx context.Context, name, actor, reason string, edit func(*nixie.QueueSettings) error) (nixie.QueueSettings,
	error) {
	if err := store.CheckOperator(name, actor, reason); err != nil {
		return nixie.QueueSettings{}, err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return nixie.QueueSettings{}, err
	}
	defer s.mu.Unlock()
	known := s.queues[name]
	var settings nixie.QueueSettings
	if known != nil {
		settings = known.settings
	}
	if err := edit(&settings); err != nil {
		return settings, err
	}
	if err := settings.Check(); err != nil {
		return settings, err
	}
	if known != nil && known.settings == settings {
		return settings, nil
	}
	others := map[string]nixie.QueueSettings{}
	for other, q := range s.queues {
		if other != name {
			others[other] = q.settings
		}
	}
	if err := lifecycle.RefuseNotices(name, &settings, others); err != nil {
		return settings, err
	}
	q := s.queue(name)
	if err := q.reorder(settings); err != nil {
		return settings, err
	}
	q.settings = settings
	q.record(now, actor, store.OnConfigure, nixie.ID{}, reason)
	if !settings.Paused {
		s.wakes.Ring(name)
	}
	return settings, nil
}

// tried implements Tried of store.Features.
func (s *Store) tried(ctx context.Context, name, actor, reason string) error {
	if err := store.CheckOperator(name, actor, reason); err != nil {
		return err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		return nixie.Errorf(nixie.CodeNotFound, "no queue is called %q", name)
	}
	q.record(now, actor, store.OnTry, nixie.ID{}, reason)
	return nil
}

// Purge cancels queued messages of a queue.
func (s *Store) Purge(ctx context.Context, name string, f nixie.Filter, most int, actor, reason string) (int, error) {
	if err := store.CheckOperator(name, actor, reason); err != nil {
		return 0, err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		return 0, nixie.Errorf(nixie.CodeNotFound, "no queue is called %q", name)
	}
	n, err := s.purge(q, &f, min(max(most, 0), nixie.MaxBatch), &store.Change{Verb: store.Cancel, Actor: actor, Reason: reason}, now)
	if n > 0 {
		q.record(now, actor, store.OnPurge, nixie.ID{}, fmt.Sprintf("%d canceled: %s", n, reason))
	}
	return n, err
}

func (s *Store) purge(q *queue, f *nixie.Filter, most int, cancel *store.Change, now time.Time) (n int, err error) {
	for _, m := range q.all {
		if n == most {
			break
		}
		if m.State != nixie.Queued || !filter.MatchMessage(f, &m.Message, m.errorType(), now) {
			continue
		}
		if err := s.cancel(m, cancel, now); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
