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
	return s.each(ctx, len(settlements), func(i int, now time.Time) error {
		return s.settle(&settlements[i], now)
	})
}

func (s *Store) settle(st *nixie.Settlement, now time.Time) error {
	if err := store.CheckSettlement(st); err != nil {
		return err
	}
	m, steps, err := s.held(st.Delivery, now)
	if err != nil {
		return err
	}
	on := st.Verb.Event()
	if on == nixie.OnBury && m.letter != nil && m.letter.Status != nixie.StatusRedriving {
		return m.letter.forbids(nixie.OnDieAgain)
	}
	if err := m.move(on); err != nil {
		return err
	}
	m.Steps = steps
	for _, f := range [...]*nixie.Failure{st.Failure, st.Second} {
		if f != nil {
			m.fail(*f, st.Verb)
		}
	}
	switch on {
	case nixie.OnComplete:
		return s.end(m, lifecycle.Success(), now)
	case nixie.OnDiscard:
		s.queue(m.Queue).discarded(m)
		return s.end(m, lifecycle.Settled(st, m.letter != nil), now)
	case nixie.OnBury:
		return s.bury(m, st, lifecycle.Settled(st, m.letter != nil), now)
	}
	s.again(m, st, now)
	return nil
}

// again queues a message that was retried or released. A release takes the
// attempt back; one of an abandoned message, which took none, leaves it to be
// judged by the next holder.
func (s *Store) again(m *message, st *nixie.Settlement, now time.Time) {
	m.wait(now.Add(st.Delay))
	switch {
	case st.Verb == nixie.Retry:
		if !m.abandoned {
			m.Crashes = 0 // it survived
		}
		m.abandoned, m.abandonedBy = false, ""
		if st.Failure != nil {
			s.queue(m.Queue).retried(m, now)
		}
	case !m.abandoned:
		m.Attempts--
	}
	m.MayPass = st.MayPass && st.Verb == nixie.Release && m.ordered && s.queue(m.Queue).settings.Order == nixie.OrderStrict
	if st.Delay == 0 {
		s.wakes.Ring(m.Queue)
	}
}

// end finishes a message that succeeded, was discarded or canceled, and moves
// its letter on if it has one that was redriven.
func (s *Store) end(m *message, e lifecycle.End, now time.Time) error {
	m.leave()
	m.abandoned, m.abandonedBy, m.MayPass = false, "", false
	m.EndedAt = now
	q := s.queue(m.Queue)
	q.release(m, true)
	l := m.letter
	if l == nil || l.Status != nixie.StatusRedriving {
		return nil
	}
	l.Note = e.Note
	if err := l.move(e.Event, now); err != nil {
		return err
	}
	q.record(now, e.Actor, e.Event, l.ID, e.Reason)
	return nil
}
