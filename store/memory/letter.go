package memory

import (
	"bytes"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// letter is a letter without its message and history, which are filled in when it is shown.
type letter struct {
	nixie.Letter
	message *message
	born    int  // 0, 1, 2 … in the order in which letters were made
	blocks  bool // its followers in the stream wait
}

// decide lets package lifecycle change the letter. A refused change changes nothing.
func (l *letter) decide(change func(*lifecycle.Letter) error) error {
	m := l.message
	d := lifecycle.Letter{
		ID: l.ID, Status: l.Status, Revision: l.Revision,
		Cause: l.Cause, Class: l.Class, Reason: l.Reason, Signature: l.Signature, Fingerprint: l.Fingerprint,
		Redrivable: l.Redrivable, NeedsReview: l.NeedsReview, Rule: l.Rule, Note: l.Note, Operation: l.Operation,
		Died: lifecycle.Nanos(l.DiedAt), Resolved: lifecycle.Nanos(l.ResolvedAt),
		FirstFailed: lifecycle.Nanos(l.FirstFailedAt), LastFailed: lifecycle.Nanos(l.LastFailedAt),
		InStream: m.ordered && l.Status.Unresolved(), Blocks: l.blocks,
	}
	if m.ordered {
		d.Rank = m.rank
	}
	if err := change(&d); err != nil {
		return err
	}
	l.Status, l.Revision = d.Status, d.Revision
	l.Cause, l.Class, l.Reason, l.Signature, l.Fingerprint = d.Cause, d.Class, d.Reason, d.Signature, d.Fingerprint
	l.Redrivable, l.NeedsReview, l.Rule, l.Note = d.Redrivable, d.NeedsReview, d.Rule, d.Note
	l.Operation, l.blocks = d.Operation, d.Blocks
	l.DiedAt, l.ResolvedAt = lifecycle.Moment(d.Died), lifecycle.Moment(d.Resolved)
	l.FirstFailedAt, l.LastFailedAt = lifecycle.Moment(d.FirstFailed), lifecycle.Moment(d.LastFailed)
	return nil
}

// bury makes the letter of a message, or moves its letter that is redriving.
func (s *Store) bury(m *message, st *nixie.Settlement, e lifecycle.End, now time.Time) error {
	q := s.queue(m.Queue)
	q.release(m, false)
	l, to := m.letter, q.settings.DeadLetterTo
	if l == nil {
		l = &letter{Letter: nixie.Letter{ID: s.ids.New(now)}, message: m, born: s.births}
		s.births++
		m.letter = l
		s.letters[l.ID] = l
		s.born = append(s.born, l)
	}
	if st.Verb == nixie.Halt {
		q.settings.Paused, q.settings.PausedNote = true, "halted by message "+m.ID.String()
	}
	first, last := m.failures()
	if err := l.decide(func(d *lifecycle.Letter) error {
		return d.Die(&lifecycle.Message{Ordered: m.ordered, Rank: d.Rank}, e, st.Burial, &q.settings, first, last, now.UnixNano())
	}); err != nil {
		return err
	}
	s.ends(now, l.ID, lifecycle.Ending{Operation: l.Operation, On: e.Event, Fingerprint: l.Fingerprint})
	q.record(now, e.Actor, e.Event, l.ID, e.Reason)
	if to != "" {
		d := lifecycle.Message{ID: m.ID, Attempts: m.Attempts, Crashes: m.Crashes, Generation: m.Generation,
			Received: lifecycle.Nanos(m.FirstReceivedAt)}
		n := d.Notice(m.Message, st, last, to, now.UnixNano())
		s.accept(&n, now)
	}
	return nil
}

// failures returns the oldest and the newest failure of the history, nil if it is empty.
func (m *message) failures() (first, last *lifecycle.Failure) {
	if len(m.history) == 0 {
		return nil, nil
	}
	of := func(f *nixie.Failure) *lifecycle.Failure {
		return &lifecycle.Failure{At: lifecycle.Nanos(f.FailedAt), Class: f.Class, Reason: f.Reason, Text: f.Text}
	}
	return of(&m.history[0]), of(&m.history[len(m.history)-1])
}

// follows returns an error if the letter of the message cannot follow its end.
func (m *message) follows(e lifecycle.End) error {
	if m.letter == nil {
		return nil
	}
	return (&lifecycle.Letter{ID: m.letter.ID, Status: m.letter.Status}).Follows(e)
}

// show copies the letter for a caller.
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
