package memory

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Settle applies each settlement whole or not at all.
func (s *Store) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	_, wrong := store.CheckSettlements(settlements)
	return s.each(ctx, len(settlements), func(i int, now time.Time) error {
		if wrong != nil {
			return wrong
		}
		return s.settleThen(&settlements[i], now)
	})
}

// settleThen settles, and enqueues the messages that follow.
func (s *Store) settleThen(st *nixie.Settlement, now time.Time) error {
	if err := store.CheckSettlement(st); err != nil {
		return err
	}
	if err := s.refuse(st.Then); err != nil {
		return err
	}
	if err := s.settle(st, now); err != nil {
		return err
	}
	for i := range st.Then {
		s.accept(&st.Then[i], now)
	}
	return nil
}

func (s *Store) settle(st *nixie.Settlement, now time.Time) error {
	m, steps, err := s.held(st.Delivery, now)
	if err != nil {
		return err
	}
	e := lifecycle.Settled(st, m.letter != nil)
	if store.EventOf(st.Verb) == store.OnBury {
		if err := m.follows(e); err != nil {
			return err
		}
	}
	q := s.queue(m.Queue)
	if err := m.decide(func(l *lifecycle.Message) error { return l.Settle(st, &q.settings, steps, now.UnixNano()) }); err != nil {
		return err
	}
	for _, f := range [...]*nixie.Failure{st.Failure, st.Second} {
		if f != nil {
			m.fail(*f, st.Verb)
		}
	}
	switch m.State {
	case nixie.Queued:
		if st.Verb == nixie.Retry && st.Failure != nil {
			q.retried(m, now)
		}
		s.again(m, now)
		return nil
	case nixie.Dead:
		return s.bury(m, st, e, now)
	case nixie.Discarded:
		q.discarded(m)
	}
	return s.follow(m, e, now)
}

// again wakes callers that wait for a message that is queued again.
func (s *Store) again(m *message, now time.Time) {
	if !m.due.After(now) {
		s.wakes.Ring(m.Queue)
	}
}

// follow releases the dedupe key of a message that has ended for good, and moves its letter if that
// is redriving.
func (s *Store) follow(m *message, e lifecycle.End, now time.Time) error {
	q := s.queue(m.Queue)
	q.release(m, true)
	l := m.letter
	if l == nil || l.Status != nixie.StatusRedriving {
		return nil
	}
	if err := l.decide(func(d *lifecycle.Letter) error { return d.Follow(e, now.UnixNano()) }); err != nil {
		return err
	}
	s.ends(now, l.ID, lifecycle.Ending{Operation: l.Operation, On: e.Event})
	q.record(now, e.Actor, e.Event, l.ID, e.Reason)
	return nil
}
