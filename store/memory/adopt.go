package memory

import (
	"context"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Adopt takes in letters of messages that died elsewhere.
func (s *Store) Adopt(ctx context.Context, letters []nixie.Letter, actor, reason string) ([]nixie.Receipt, []error) {
	receipts := make([]nixie.Receipt, len(letters))
	_, refused, err := store.CheckAdoption(letters, actor, reason)
	if err != nil {
		return receipts, slices.Repeat([]error{err}, len(letters))
	}
	return receipts, s.each(ctx, len(letters), func(i int, now time.Time) (err error) {
		if refused[i] != nil {
			return refused[i]
		}
		receipts[i], err = s.adopt(&letters[i], actor, reason, now)
		return err
	})
}

func (s *Store) adopt(given *nixie.Letter, actor, reason string, now time.Time) (nixie.Receipt, error) {
	hash := nixie.HashBody(given.Message.Body)
	there, err := s.known(given)
	switch {
	case err != nil:
		return nixie.Receipt{}, err
	case there != nil && there.cameBack(given):
		return nixie.Receipt{ID: given.ID}, s.dieAgain(there.letter, given, actor, reason, now)
	case there != nil:
		return nixie.Receipt{ID: there.shownID(), Duplicate: true, Different: there.Hash != hash}, nil
	}
	q := s.queue(given.Message.Queue)
	m := &message{Message: given.Message, dropped: given.HistoryDropped}
	m.Message = m.show(true)
	m.makeDead(given, hash, now)
	if m.ID.IsZero() {
		m.ID = s.ids.New(now)
	}
	if lifecycle.KeepsDead(q.settings.DedupeScope) {
		if err := q.free(m); err != nil {
			return nixie.Receipt{}, err
		}
		q.take(m)
	}
	for i := range given.History {
		f := &given.History[i]
		m.keep(*f)
		if f.Decision == nixie.Retry {
			q.retries = append(q.retries, retry{f.FailedAt, m})
		}
	}
	slices.SortFunc(q.retries, func(a, b retry) int { return a.at.Compare(b.at) })
	s.position++
	m.position, m.born = s.position, s.position
	l := &letter{Letter: *given, message: m, born: len(s.born)}
	if l.ID.IsZero() {
		l.ID = s.ids.New(now)
	}
	l.Message, l.History, l.HistoryDropped, l.Artifacts, l.ResolvedAt = nixie.Message{}, nil, 0, nil, time.Time{}
	l.Revision, l.Notes = max(l.Revision, 1), slices.Clone(given.Notes)
	m.letter = l
	if o := given.Message.Origin; o != nil && s.letters[o.Earlier] != nil {
		s.ends(now, o.Earlier, lifecycle.Elsewhere(s.letters[o.Earlier].Operation, given, true)...)
	}
	s.messages[m.ID], s.letters[l.ID] = m, l
	s.born, q.all = append(s.born, l), append(q.all, m)
	for _, on := range store.Adoption(l.Status) {
		q.record(now, actor, on, l.ID, reason)
	}
	return nixie.Receipt{ID: l.ID}, nil
}

// makeDead gives the message the fields of a dead one.
func (m *message) makeDead(given *nixie.Letter, hash nixie.Hash, now time.Time) {
	m.Hash, m.State, m.NotBefore = hash, nixie.Dead, time.Time{}
	m.Generation = max(m.Generation, 1)
	m.number = int64(m.Deliveries)
	m.LastFailure, m.LastReason, m.OnConflict, m.MayPass, m.Patience = "", "", 0, false, nixie.Patience{}
	if m.EnqueuedAt.IsZero() {
		m.EnqueuedAt = now
	}
	if m.EndedAt.IsZero() {
		m.EndedAt = given.DiedAt
	}
}

// known finds the message of a letter from elsewhere, if the store has it.
func (s *Store) known(given *nixie.Letter) (*message, error) {
	if l := s.letters[given.ID]; l != nil {
		if id := given.Message.ID; !id.IsZero() && id != l.message.ID {
			return nil, nixie.Errorf(nixie.CodeConflict, "letter %s is here and belongs to message %s: it cannot be that of %s", given.ID,
				l.message.ID, id)
		}
		return l.message, nil
	}
	if m := s.messages[given.Message.ID]; m != nil {
		if m.letter != nil && !given.ID.IsZero() {
			return nil, nixie.Errorf(nixie.CodeConflict, "message %s is here and has letter %s: it cannot have %s", m.ID, m.letter.ID,
				given.ID)
		}
		return m, nil
	}
	if given.Message.Origin == nil {
		return nil, nil
	}
	for _, m := range s.messages {
		if store.KnownOrigin(m.Origin, given.Message.Origin) {
			return m, nil
		}
	}
	return nil, nil
}

// shownID returns the ID of the letter of a message, or of the message itself if it has no letter.
func (m *message) shownID() nixie.ID {
	if m.letter != nil {
		return m.letter.ID
	}
	return m.ID
}

// cameBack reports whether a letter from elsewhere tells of a later death of the message.
func (m *message) cameBack(given *nixie.Letter) bool {
	l := m.letter
	return l != nil && l.ID == given.ID && lifecycle.CameBack(l.Status, m.State, m.Generation, given)
}

// dieAgain moves the letter of a message that died again with a foreign broker.
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
	way, sent := store.Comeback(l.Status, given.Status), l.Operation
	if err := l.decide(func(d *lifecycle.Letter) error { return d.DieElsewhere(given, now.UnixNano()) }); err != nil {
		return err
	}
	s.ends(now, l.ID, lifecycle.Elsewhere(sent, given, false)...)
	for _, on := range way {
		q.record(now, actor, on, l.ID, reason)
	}
	return nil
}
