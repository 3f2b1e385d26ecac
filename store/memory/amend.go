package memory

import (
	"context"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Amend changes messages that have not ended.
func (s *Store) Amend(ctx context.Context, ids []nixie.ID, change store.Change) []error {
	return s.each(ctx, len(ids), func(i int, now time.Time) error {
		if err := change.Check(); err != nil {
			return err
		}
		m := s.messages[ids[i]]
		if m == nil {
			return nixie.Errorf(nixie.CodeNotFound, "no message %s", ids[i])
		}
		if change.Verb == store.Cancel {
			return s.cancel(m, &change, now)
		}
		if m.State != nixie.Queued {
			return nixie.Errorf(nixie.CodeConflict, "message %s is %s: %s needs one that is queued", m.ID, m.State, change.Verb)
		}
		q := s.queue(m.Queue)
		if err := s.amend(q, m, &change, now); err != nil || change.Verb == store.Hold {
			return err // the audit has the event of the letter instead
		}
		q.record(now, change.Actor, change.Event(), m.ID, change.Note())
		if !m.due.After(now) {
			s.wakes.Ring(m.Queue)
		}
		return nil
	})
}

func (s *Store) cancel(m *message, c *store.Change, now time.Time) error {
	if err := m.end(store.OnCancel, now); err != nil {
		return err
	}
	s.queue(m.Queue).record(now, c.Actor, c.Event(), m.ID, c.Note())
	return s.follow(m, lifecycle.Changed(c, m.letter != nil), now)
}

// amend changes a queued message.
func (s *Store) amend(q *queue, m *message, c *store.Change, now time.Time) error {
	switch c.Verb {
	case store.Hold:
		return s.hold(m, c, now)
	case store.Move:
		return s.transfer(q, m, c.Queue)
	}
	return m.decide(func(l *lifecycle.Message) error { return l.Amend(c, &q.settings, now.UnixNano()) })
}

// hold buries a queued message for review.
func (s *Store) hold(m *message, c *store.Change, now time.Time) error {
	e := lifecycle.Changed(c, m.letter != nil)
	if err := m.follows(e); err != nil {
		return err
	}
	if err := m.end(store.OnHold, now); err != nil {
		return err
	}
	f := *c.Hold
	f.Generation, f.Attempt = m.Generation, m.Attempts
	m.fail(f, nixie.Hold)
	return s.bury(m, c.Settlement(), e, now)
}

// transfer moves a message to the end of another queue.
func (s *Store) transfer(from *queue, m *message, name string) error {
	var letter nixie.ID
	if m.letter != nil {
		letter = m.letter.ID
	}
	if err := lifecycle.MayLeave(m.ID, letter, from.name, name); err != nil {
		return err
	}
	to := s.queue(name)
	if err := lifecycle.Admits(&to.settings, name); err != nil {
		return err
	}
	takes := lifecycle.TakesKey(to.settings.DedupeScope, m.number)
	if takes {
		if err := to.free(m); err != nil {
			return err
		}
	}
	if m.holdsKey {
		from.drop(m)
	}
	is := func(o *message) bool { return o == m }
	from.all, from.live = slices.DeleteFunc(from.all, is), slices.DeleteFunc(from.live, is)
	m.Queue, m.MayPass = name, false
	s.join(to, m)
	m.position = m.rank
	if m.keyless = !takes; takes {
		to.take(m)
	}
	to.all, to.live = append(to.all, m), append(to.live, m)
	return nil
}
