package memory

import (
	"bytes"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// letter is a letter without what its message has already: Message and
// history are filled in when it is shown.
type letter struct {
	nixie.Letter
	message *message
	born    int  // 0, 1, 2 … in the order of birth
	blocks  bool // the followers in its stream wait
}

// bury makes the letter of a message, or moves the one it has on.
func (s *Store) bury(m *message, st *nixie.Settlement, e lifecycle.End, now time.Time) error {
	q, b := s.queue(m.Queue), st.Burial
	q.release(m, false)
	l := m.letter
	if l == nil {
		l = &letter{Letter: nixie.Letter{ID: s.ids.New(now)}, message: m, born: s.births}
		s.births++
		m.letter = l
		s.letters[l.ID] = l
		s.born = append(s.born, l)
	}
	l.DiedAt = now
	l.blocks = m.ordered && q.settings.Blocks()
	l.Cause, l.Signature, l.Fingerprint = b.Cause, b.Signature, b.Fingerprint
	l.Redrivable, l.NeedsReview, l.Rule = b.Redrivable, b.NeedsReview, b.Rule
	l.Note = e.Note
	if n := len(m.history); n > 0 {
		last := &m.history[n-1]
		l.Class, l.Reason = last.Class, last.Reason
		l.LastFailedAt = last.FailedAt
		if l.FirstFailedAt.IsZero() {
			l.FirstFailedAt = m.history[0].FailedAt
		}
	}
	if st.Verb == nixie.Halt {
		q.settings.Paused, q.settings.PausedNote = true, "halted by message "+m.ID.String()
	}
	if err := l.move(e.Event, now); err != nil {
		return err
	}
	q.record(now, e.Actor, e.Event, l.ID, e.Reason)
	return nil
}

// move brings a letter to where the table of moves says.
func (l *letter) move(on nixie.Event, now time.Time) error {
	next, err := lifecycle.Next(l.ID, l.Status, on)
	if err != nil {
		return err
	}
	l.Status = next
	l.Revision++
	l.ResolvedAt = time.Time{}
	if !next.Unresolved() {
		l.ResolvedAt = now
	}
	return nil
}

// follows says why the letter of a message, if it has one, cannot follow its end.
func (m *message) follows(e lifecycle.End) error {
	if m.letter == nil {
		return nil
	}
	_, err := lifecycle.Follow(m.letter.ID, m.letter.Status, e.Event)
	return err
}

// show is a copy for the outside.
func (l *letter) show(whole, body bool) nixie.Letter {
	shown := l.Letter
	shown.Message = l.message.show(whole || body)
	shown.HistoryDropped = l.message.dropped
	shown.Notes, shown.Original = nil, nil
	if whole {
		shown.Original = showOriginal(l.Original)
		shown.Notes = slices.Clone(l.Notes)
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
