package postgres

import (
	"cmp"
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Adopt implements store.DeadLetters.
func (s *Store) Adopt(ctx context.Context, letters []nixie.Letter, actor, reason string) ([]nixie.Receipt, []error) {
	receipts, errs := make([]nixie.Receipt, len(letters)), make([]error, len(letters))
	if len(letters) == 0 {
		return receipts, errs
	}
	_, refused, err := store.CheckAdoption(letters, actor, reason)
	if err != nil {
		return receipts, all(errs, err)
	}
	err = s.write(ctx, func(t *tx) error {
		clear(receipts)
		copy(errs, refused)
		a := &adopting{tx: t, actor: actor, reason: reason}
		return a.adoptAll(letters, receipts, errs)
	})
	if err != nil {
		return receipts, all(errs, err)
	}
	s.changed(ctx, len(letters))
	return receipts, errs
}

// adopting is one call that takes in letters from elsewhere.
type adopting struct {
	*tx
	actor, reason string
	byOrigin      map[string]*message
	earlier       map[nixie.ID]itemEnd // by letter: what may end with a later death of the same job
	fresh         []messageRow
	noted         []*nixie.Letter // with the IDs that they have here
	lived         map[int64]int   // the last generation in the history of a letter that exists, by its position
}

// adoptAll takes letters in, each whole or not at all, in their order.
func (a *adopting) adoptAll(letters []nixie.Letter, receipts []nixie.Receipt, errs []error) error {
	if err := a.look(letters, errs); err != nil {
		return err
	}
	for i := range letters {
		if errs[i] == nil {
			receipts[i], errs[i] = a.adopt(&letters[i])
		}
	}
	a.dropUnused()
	a.insertMessages(a.fresh)
	for _, l := range a.noted {
		for i := range l.Notes {
			n := &l.Notes[i]
			a.run("insert into @.note (letter, ordinal, at, by, text) values ($1, $2, $3, $4, $5)",
				a.letters[l.ID].pos, i, lifecycle.Nanos(n.At), plain(n.By), plain(n.Text))
		}
	}
	return nil
}

// look reads what exists already of the letters, and locks the keys that they want.
func (a *adopting) look(letters []nixie.Letter, errs []error) error {
	var ids, earlier []nixie.ID
	var origins, queues, keys []string
	for i := range letters {
		if errs[i] != nil {
			continue
		}
		l := &letters[i]
		ids, queues = append(ids, l.ID, l.Message.ID), append(queues, l.Message.Queue)
		if l.Message.Origin != nil {
			origins = append(origins, store.OriginTexts(l.Message.Origin)...)
			if before := l.Message.Origin.Earlier; !before.IsZero() {
				earlier = append(earlier, before)
			}
		}
		if l.Message.DedupeKey != "" {
			keys = append(keys, l.Message.DedupeKey)
		}
	}
	if len(queues) == 0 {
		return nil
	}
	if err := a.openQueues(queues); err != nil {
		return err
	}
	numbers := make([]int64, 0, len(a.named))
	for _, q := range a.named {
		numbers = append(numbers, q.n)
	}
	here := "c.pos = any(array(" + texts()["messages_with"] + " union all " + texts()["letters_with"] + ")) or c.origin = any($2::text[])"
	list := uuids(ids)
	// A letter that comes back leaves its own stream.
	a.openStreamsOf("select s.queue, s.name from @.letter l join @.stream s on s.n = l.stream where l.pos"+which().letters, list)
	a.lock(&a.locked.letters, "select pos from @.letter where pos"+which().letters+" order by pos for update", list)
	a.openKeys(texts()["keys_to_adopt"], list, numbers, keys)
	a.clock()
	a.readMessages(here, list, origins)
	a.readLetters("pos in (select c.pos from @.message c where "+here+")", list, origins)
	a.readLives(list)
	a.byOrigin = map[string]*message{}
	a.read(func(r row) error {
		var pos int64
		var origin string
		err := r.Scan(&pos, &origin)
		a.byOrigin[origin] = a.rows[pos]
		return err
	}, "select pos, origin from @.message where origin = any($1)", origins)
	if len(earlier) > 0 {
		a.earlier = map[nixie.ID]itemEnd{}
		a.read(func(r row) error {
			var id nixie.ID
			var sent itemEnd
			err := r.Scan((*idColumn)(&id), &sent.letter, (*idColumn)(&sent.Operation))
			a.earlier[id] = sent
			return err
		}, "select id, pos, operation from @.letter where pos"+which().letters, uuids(earlier))
	}
	a.draw(len(letters))
	return a.send()
}

// adopt takes one letter in, or answers with the one that exists.
func (a *adopting) adopt(l *nixie.Letter) (nixie.Receipt, error) {
	given, hash := &l.Message, nixie.HashBody(l.Message.Body)
	there, err := a.known(l)
	if err != nil {
		return nixie.Receipt{}, err
	}
	if there != nil && a.cameBack(there, l) {
		return nixie.Receipt{ID: l.ID}, a.dieAgain(there, l)
	}
	if there != nil {
		r := nixie.Receipt{ID: there.ID, Duplicate: true, Different: there.hash != hash}
		if there.letter != nil {
			r.ID = there.letter.ID
		}
		return r, nil
	}
	q := a.named[given.Queue]
	m := &message{
		Message: lifecycle.Message{
			ID: given.ID, State: lifecycle.Dead, Attempts: given.Attempts, Deliveries: given.Deliveries, Crashes: given.Crashes,
			Generation: max(given.Generation, 1), Redrives: given.Redrives,
			Number: int64(given.Deliveries), Received: lifecycle.Nanos(given.FirstReceivedAt), Steps: given.Steps, Gap: given.OrderGap,
			Ended: lifecycle.Nanos(given.EndedAt), Redriven: lifecycle.Nanos(given.RedrivenAt),
		},
		pos: a.nextPosition(), queue: q.n, q: q, mtype: given.Type, key: given.Key, stream: given.Stream, priority: given.Priority,
		hash: hash, dedupe: given.DedupeKey,
	}
	if m.ID.IsZero() {
		m.ID = a.store.ids.New(lifecycle.Moment(a.now))
	}
	if m.Ended == 0 {
		m.Ended = lifecycle.Nanos(l.DiedAt)
	}
	if lifecycle.KeepsDead(q.settings.DedupeScope) {
		if err := a.free(q.n, m); err != nil {
			return nixie.Receipt{}, err
		}
		a.take(m)
	}
	a.history(m, l)
	id := a.adoptLetter(m, l)
	a.rows[m.pos], a.byID[m.ID] = m, m
	if given.Origin != nil {
		a.byOrigin[store.OriginText(given.Origin)] = m
	}
	a.fresh = append(a.fresh, messageRow{id: m.ID, pos: m.pos, queue: m.queue, enqueued: cmp.Or(lifecycle.Nanos(given.EnqueuedAt), a.now),
		given: given})
	if given.Origin != nil {
		sent := a.earlier[given.Origin.Earlier]
		a.ends(sent.letter, lifecycle.Elsewhere(sent.Operation, l, true)...)
	}
	a.touch(m)
	for _, on := range store.Adoption(l.Status) {
		a.record(q.n, a.actor, on, id, a.reason)
	}
	return nixie.Receipt{ID: id}, nil
}

// known finds the message that a letter from elsewhere is about, if it was taken in before.
func (a *adopting) known(l *nixie.Letter) (*message, error) {
	if has := a.letters[l.ID]; !l.ID.IsZero() && has != nil {
		if id := l.Message.ID; !id.IsZero() && id != has.m.ID {
			return nil, nixie.Errorf(nixie.CodeConflict, "letter %s is here and belongs to message %s: it cannot be that of %s", l.ID,
				has.m.ID, id)
		}
		return has.m, nil
	}
	if m := a.byID[l.Message.ID]; !l.Message.ID.IsZero() && m != nil {
		if m.letter != nil && !l.ID.IsZero() {
			return nil, nixie.Errorf(nixie.CodeConflict, "message %s is here and has letter %s: it cannot have %s", m.ID, m.letter.ID, l.ID)
		}
		return m, nil
	}
	for _, origin := range store.OriginTexts(l.Message.Origin) {
		if m := a.byOrigin[origin]; m != nil {
			return m, nil
		}
	}
	return nil, nil
}

// history keeps the failures under ordinals that leave a gap for those that were dropped.
func (a *adopting) history(m *message, l *nixie.Letter) {
	for i := range l.History {
		f := &l.History[i]
		m.ordinal = int64(i) + 1
		if i > 0 || len(l.History) == 1 {
			m.ordinal += int64(l.HistoryDropped)
		}
		a.keepFailure(m, f, f.Steps, m.ordinal, lifecycle.Nanos(f.FailedAt), f.Decision)
		m.reason = string(f.Reason)
	}
}

func (a *adopting) adoptLetter(m *message, given *nixie.Letter) nixie.ID {
	l := &letterRow{pos: m.pos, m: m, letterKind: letterKind{queue: m.queue, Letter: lifecycle.Letter{
		ID: given.ID, Status: given.Status, Revision: max(given.Revision, 1), Cause: given.Cause, Class: given.Class, Reason: given.Reason,
		Signature: given.Signature, Fingerprint: given.Fingerprint, Redrivable: given.Redrivable, NeedsReview: given.NeedsReview,
		Rule: given.Rule, Note: given.Note,
		Operation: given.Operation, Died: lifecycle.Nanos(given.DiedAt), Text: m.last.Text,
		FirstFailed: lifecycle.Nanos(given.FirstFailedAt), LastFailed: lifecycle.Nanos(given.LastFailedAt),
	}}}
	if l.ID.IsZero() {
		l.ID, l.numbered = a.newID(l.pos)
	}
	m.letter, a.letters[l.ID] = l, l
	if len(given.Notes) > 0 {
		noted := *given
		noted.ID = l.ID
		a.noted = append(a.noted, &noted)
	}
	a.touchLetter(l)
	return l.ID
}
