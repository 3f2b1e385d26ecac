package memory

import (
	"context"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Resolve moves letters on, each whole or not at all.
func (s *Store) Resolve(ctx context.Context, resolutions []store.Resolution) []error {
	return s.each(ctx, len(resolutions), func(i int, now time.Time) error {
		return s.resolve(&resolutions[i], now)
	})
}

func (s *Store) resolve(r *store.Resolution, now time.Time) error {
	if err := r.Check(); err != nil {
		return err
	}
	l := s.letters[r.Letter]
	if l == nil {
		return nixie.Errorf(nixie.CodeNotFound, "no letter %s", r.Letter)
	}
	item, err := s.item(r)
	if err != nil {
		return err
	}
	err = s.allow(l, r)
	state := itemDone
	switch {
	case nixie.CodeOf(err) == nixie.CodeConflict:
		state = itemSkipped
	case err != nil:
		state = itemFailed
	default:
		err = s.apply(l, r, now)
	}
	if item != nil {
		*item = state
	}
	return err
}

// possible reports whether the status of the letter allows an event of an
// operator. A letter whose message is on its way is put on hold by its next
// death only, and one whose message ended alive has nothing to restore.
func possible(l *letter, on nixie.Event) bool {
	_, ok := nixie.NextStatus(l.Status, on)
	switch on {
	case nixie.OnNote:
		return true
	case nixie.OnHold:
		return ok && l.Status != nixie.StatusRedriving
	case nixie.OnRestore:
		return ok && l.message.State == nixie.Dead
	}
	return ok
}

// allow says whether a resolution can be applied; it changes nothing.
func (s *Store) allow(l *letter, r *store.Resolution) error {
	if r.Skip != "" {
		return nixie.Errorf(nixie.CodeConflict, "%s", r.Skip)
	}
	if !possible(l, r.Event) {
		return l.forbids(r.Event)
	}
	m := l.message
	q := s.queue(m.Queue)
	switch r.Event {
	case nixie.OnNote:
		if len(l.Notes) >= nixie.MaxNotes {
			return nixie.Errorf(nixie.CodeLimit, "letter %s has %d notes, the limit: keep long stories elsewhere and note where", l.ID, len(l.Notes))
		}
	case nixie.OnPurge:
		if !r.Purges(l.Status) {
			return nixie.Errorf(nixie.CodeConflict, "letter %s is %s: the purge is not for such letters", l.ID, l.Status)
		}
	case nixie.OnRedrive:
		if !r.Force && (!l.Redrivable || l.NeedsReview) {
			return nixie.Errorf(nixie.CodeConflict, "letter %s is not to be redriven without force: rule %s", l.ID, l.Rule)
		}
		if r.MaxRedrives > 0 && m.Redrives >= r.MaxRedrives {
			return nixie.Errorf(nixie.CodeConflict, "letter %s was redriven %d times, the cap is %d: mend the cause, then raise the cap", l.ID, m.Redrives, r.MaxRedrives)
		}
		return q.free(m)
	case nixie.OnRestore:
		if q.settings.DedupeScope != "" && q.settings.DedupeScope != nixie.DedupeActive {
			return q.free(m)
		}
	}
	return nil
}

// apply does what allow found possible.
func (s *Store) apply(l *letter, r *store.Resolution, now time.Time) error {
	m := l.message
	q := s.queue(m.Queue)
	if r.Event == nixie.OnRedrive {
		if err := m.move(nixie.OnRedrive); err != nil {
			return err
		}
		m.live(now)
		if !l.blocks { // others have passed it, or may have
			s.join(q, m)
			m.OrderGap = m.OrderGap || m.ordered
		}
		l.blocks = false
		q.take(m)
		if !slices.Contains(q.live, m) { // it may not have been swept out yet
			q.live = append(q.live, m)
		}
		s.wakes.Ring(q.name)
	}
	if r.Event == nixie.OnConfirm && l.Status != nixie.StatusRedriving {
		if err := m.move(nixie.OnRedrive); err != nil {
			return err
		}
		m.live(now)
		l.blocks = false
	}
	if !r.Operation.IsZero() {
		l.Operation = r.Operation
	}
	switch r.Event {
	case nixie.OnNote:
		l.Notes = append(l.Notes, nixie.Note{At: now, By: r.Actor, Text: r.Reason})
		l.Revision++
		q.record(now, r.Actor, r.Event, l.ID, r.Reason)
		return nil
	case nixie.OnPurge:
		s.removeLetter(l, r.Operation)
		q.purged++
		q.record(now, r.Actor, r.Event, l.ID, r.Reason)
		return nil
	}
	if err := s.move(l, r.Event, r.Actor, r.Reason, now); err != nil {
		return err
	}
	l.Note = r.Note()
	switch r.Event {
	case nixie.OnDiscard:
		l.blocks = false
		q.release(m, true)
	case nixie.OnRestore:
		if q.settings.DedupeScope != "" && q.settings.DedupeScope != nixie.DedupeActive {
			q.take(m)
		}
	case nixie.OnConfirm:
		return s.handOver(m, now)
	}
	return nil
}

// live starts the next life of a dead message.
func (m *message) live(now time.Time) {
	m.Generation++
	m.Redrives++
	m.Attempts, m.Deliveries, m.Crashes = 0, 0, 0
	m.EndedAt = time.Time{}
	m.wait(now)
}

// handOver ends a message that lives on in somebody else's broker: here it is
// canceled, so that nobody works on it twice.
func (s *Store) handOver(m *message, now time.Time) error {
	if err := m.move(nixie.OnCancel); err != nil {
		return err
	}
	return s.end(m, nixie.OnSuccess, "", "", now)
}
