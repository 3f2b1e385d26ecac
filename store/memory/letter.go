package memory

import (
	"bytes"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// letter is a letter without what its message has already: Message and
// history are filled in when it is shown.
type letter struct {
	nixie.Letter
	message *message
	born    int // 0, 1, 2 … in the order of birth
}

// bury makes the letter of a message, or moves the one it has on.
func (s *Store) bury(m *message, st *nixie.Settlement, now time.Time) error {
	on, status, err := death(m.letter, statusAt(st))
	if err != nil {
		return err
	}
	q, b := s.queue(m.Queue), st.Burial
	m.leave()
	m.abandoned, m.abandonedBy = false, ""
	m.EndedAt = now
	q.release(m, false)
	l := m.letter
	if l == nil {
		l = &letter{Letter: nixie.Letter{ID: s.ids.New(now)}, message: m, born: len(s.born)}
		m.letter = l
		s.letters[l.ID] = l
		s.born = append(s.born, l)
	}
	l.Status, l.DiedAt = status, now
	l.Cause, l.Signature, l.Fingerprint = b.Cause, b.Signature, b.Fingerprint
	l.Redrivable, l.NeedsReview, l.Rule = b.Redrivable, b.NeedsReview, b.Rule
	l.Note = st.Note
	l.Revision++
	if n := len(m.history); n > 0 {
		last := &m.history[n-1]
		l.Class, l.Reason = last.Class, last.Reason
		l.FirstFailedAt, l.LastFailedAt = m.history[0].FailedAt, last.FailedAt
	}
	q.record(now, st.Delivery.Lease.Owner, on, l.ID, b.Rule)
	if st.Verb == nixie.Halt {
		q.halt(st, now)
	}
	return nil
}

// halt pauses the queue because a message said so.
func (q *queue) halt(st *nixie.Settlement, now time.Time) {
	note := "halted by message " + st.Delivery.ID.String()
	q.settings.Paused, q.settings.PausedNote = true, note
	q.record(now, st.Delivery.Lease.Owner, nixie.OnConfigure, st.Delivery.ID, note)
}

// move brings a letter to where the table of moves says, with its audit entry.
func (s *Store) move(l *letter, on nixie.Event, actor, reason string, now time.Time) error {
	next, ok := nixie.NextStatus(l.Status, on)
	if !ok {
		return l.forbids(on)
	}
	l.Status = next
	l.Revision++
	l.ResolvedAt = time.Time{}
	if !next.Unresolved() {
		l.ResolvedAt = now
	}
	s.queue(l.message.Queue).record(now, actor, on, l.ID, reason)
	return nil
}

func (l *letter) forbids(on nixie.Event) error {
	return nixie.Errorf(nixie.CodeConflict, "letter %s is %s, which does not allow %s", l.ID, l.Status, on)
}

// show is a copy for the outside.
func (l *letter) show(whole bool) nixie.Letter {
	shown := l.Letter
	shown.Message = l.message.show(whole)
	shown.HistoryDropped = l.message.dropped
	if whole {
		shown.History = showHistory(l.message.history)
	}
	return shown
}

func showHistory(history []nixie.Failure) []nixie.Failure {
	shown := slices.Clone(history)
	for i := range shown {
		f := &shown[i]
		f.Context, f.Steps = slices.Clone(f.Context), slices.Clone(f.Steps)
		f.Attachments = slices.Clone(f.Attachments)
		for j := range f.Attachments {
			f.Attachments[j].Data = bytes.Clone(f.Attachments[j].Data)
		}
	}
	return shown
}
