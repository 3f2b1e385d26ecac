package memory

import (
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// cameBack reports whether a letter from elsewhere is a later death of a message that is
// not on its way here.
func (m *message) cameBack(given *nixie.Letter) bool {
	l := m.letter
	return l != nil && l.ID == given.ID && lifecycle.CameBack(l.Status, m.State, m.Generation, given)
}

// dieAgain moves a letter on whose message died again with a foreign broker.
func (s *Store) dieAgain(l *letter, given *nixie.Letter, actor, reason string, now time.Time) error {
	m := l.message
	q := s.queue(m.Queue)
	if lifecycle.KeepsDead(q.settings.DedupeScope) {
		if err := q.free(m); err != nil {
			return err
		}
		q.take(m)
	}
	had := 0
	for i := range m.history {
		had = max(had, m.history[i].Generation)
	}
	for i := range given.History {
		if f := &given.History[i]; f.Generation > had {
			m.keep(*f)
			if f.Decision == nixie.Retry {
				q.retried(m, now)
			}
		}
	}
	if err := m.decide(func(d *lifecycle.Message) error {
		d.DieElsewhere(given)
		return nil
	}); err != nil {
		return err
	}
	way := store.Comeback(l.Status, given.Status)
	if err := l.decide(func(d *lifecycle.Letter) error { return d.DieElsewhere(given, now.UnixNano()) }); err != nil {
		return err
	}
	for _, on := range way {
		q.record(now, actor, on, l.ID, reason)
	}
	return nil
}
