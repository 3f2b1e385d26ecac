package engine

import (
	"cmp"
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Adopt implements store.DeadLetters.
func (e *Engine) Adopt(ctx context.Context, letters []nixie.Letter, actor, reason string) ([]nixie.Receipt, []error) {
	receipts, errs := make([]nixie.Receipt, len(letters)), make([]error, len(letters))
	if len(letters) == 0 {
		return receipts, errs
	}
	size, refused, err := store.CheckAdoption(letters, actor, reason)
	if err != nil {
		return receipts, all(errs, err)
	}
	want := &Want{}
	for i := range letters {
		if refused[i] == nil {
			want.Given = append(want.Given, &letters[i])
		}
	}
	if len(want.Given) == 0 {
		return receipts, refused
	}
	err = e.driver.Update(ctx, How{Letters: len(letters), Bytes: max(size, 1)}, func(tx Tx) error {
		clear(receipts)
		copy(errs, refused)
		facts, err := tx.Load(want)
		if err != nil {
			return err
		}
		a := adopting{ending{call: call{Facts: facts}, tx: tx}, e.ids, actor, reason}
		for i := range letters {
			if errs[i] == nil {
				receipts[i], errs[i] = a.adopt(&letters[i])
			}
		}
		return a.write()
	})
	if err != nil {
		return receipts, all(errs, err)
	}
	return receipts, errs
}

// adopting is one call of Adopt.
type adopting struct {
	ending
	ids           *store.IDs
	actor, reason string
}

// adopt takes one letter in, or answers with the one that exists. It answers before it changes
// anything.
func (a *adopting) adopt(given *nixie.Letter) (nixie.Receipt, error) {
	there, err := a.known(given)
	if err != nil {
		return nixie.Receipt{}, err
	}
	if l := a.Letters[given.ID]; there != nil && l != nil && cameBack(l, given) {
		return nixie.Receipt{ID: given.ID}, a.dieAgain(l, given)
	}
	hash := nixie.HashBody(given.Message.Body)
	if there != nil {
		return nixie.Receipt{ID: cmp.Or(there.Letter, there.Message), Duplicate: true, Different: there.Hash != hash}, nil
	}
	q := a.Queues[given.Message.Queue]
	m := &Message{Message: &lifecycle.Message{}, Queue: q, Stream: given.Message.Stream, Dedupe: given.Message.DedupeKey, Hash: hash}
	if err := q.room(); err != nil {
		return nixie.Receipt{}, err
	}
	if err := a.refuseKey(m); err != nil {
		return nixie.Receipt{}, err
	}
	now := lifecycle.Moment(a.Now)
	*m.Message = lifecycle.Adopted(given)
	if m.ID.IsZero() {
		m.ID = a.ids.New(now)
	}
	q.Taken++
	m.Pos = a.tx.Append(q)
	a.takeDead(m) // by its position, which it has now
	l := &Letter{Letter: lifecycle.AdoptedLetter(given), Pos: m.Pos, Queue: q.Number, Message: m}
	if l.ID.IsZero() {
		l.ID = a.tx.NewID(m.Pos)
	}
	m.Letter = l
	a.changes.Adopted = append(a.changes.Adopted, Adopted{l, given})
	a.know(&Known{l.ID, m.ID, hash}, given)
	if o := given.Message.Origin; o != nil {
		if before, here := a.Earlier[o.Earlier]; here {
			for _, how := range lifecycle.Elsewhere(before.Operation, given, true) {
				a.ends(before.Letter, how)
			}
		}
	}
	for _, on := range store.Adoption(l.Status) {
		a.recordAdopted(l, on)
	}
	return nixie.Receipt{ID: l.ID}, nil
}

// known finds the message that a letter from elsewhere is about, if it is here.
func (a *adopting) known(given *nixie.Letter) (*Known, error) {
	id := given.Message.ID
	if has := a.ByLetter[given.ID]; has != nil {
		if !id.IsZero() && id != has.Message {
			return nil, nixie.Errorf(nixie.CodeConflict, "letter %s is here and belongs to message %s: it cannot be that of %s", given.ID,
				has.Message, id)
		}
		return has, nil
	}
	if has := a.ByMessage[id]; has != nil {
		if !has.Letter.IsZero() && !given.ID.IsZero() {
			return nil, nixie.Errorf(nixie.CodeConflict, "message %s is here and has letter %s: it cannot have %s", has.Message, has.Letter,
				given.ID)
		}
		return has, nil
	}
	for _, origin := range store.OriginTexts(given.Message.Origin) {
		if has := a.ByOrigin[origin]; has != nil {
			return has, nil
		}
	}
	return nil, nil
}

// know lets later letters of the call meet one that was taken in.
func (a *adopting) know(k *Known, given *nixie.Letter) {
	a.ByLetter[k.Letter], a.ByMessage[k.Message] = k, k
	if given.Message.Origin != nil {
		a.ByOrigin[store.OriginText(given.Message.Origin)] = k
	}
}

// cameBack reports whether a letter from elsewhere is a later death of a message that is not on its
// way here.
func cameBack(l *Letter, given *nixie.Letter) bool {
	m := l.Message
	return m != nil && lifecycle.CameBack(l.Status, m.Public(), m.Generation, given)
}

// refuseKey returns an error if another message has the dedupe key that a dead one is to have.
func (a *adopting) refuseKey(m *Message) error {
	if by, taken := a.holder(m, m.Queue); taken && lifecycle.KeepsDead(m.Queue.Settings.DedupeScope) {
		return &nixie.DuplicateError{Key: m.Dedupe, Existing: by.ID}
	}
	return nil
}

// takeDead gives a dead message its dedupe key, if the scope says so.
func (a *adopting) takeDead(m *Message) {
	if lifecycle.KeepsDead(m.Queue.Settings.DedupeScope) {
		a.take(m)
	}
}

// dieAgain moves on the letter of a message that died again at a foreign broker.
func (a *adopting) dieAgain(l *Letter, given *nixie.Letter) error {
	m := l.Message
	if l.Damage != nil {
		return l.Damage
	}
	if err := a.refuseKey(m); err != nil {
		return err
	}
	way, sent, lived := store.Comeback(l.Status, given.Status), l.Operation, m.Lived
	if err := l.DieElsewhere(given, a.Now); err != nil {
		return err
	}
	a.takeDead(m)
	for i := range given.History {
		if f := &given.History[i]; f.Generation > lived {
			a.changes.Failures = append(a.changes.Failures, Failure{m, *f})
			l.Text, m.Lived = f.Text, max(m.Lived, f.Generation)
		}
	}
	m.DieElsewhere(given)
	l.Dies, m.Note = true, ""
	a.touch(m)
	a.touchLetter(l)
	for _, how := range lifecycle.Elsewhere(sent, given, false) {
		a.ends(l.Pos, how)
	}
	for _, on := range way {
		a.recordAdopted(l, on)
	}
	return nil
}

func (a *adopting) recordAdopted(l *Letter, on store.Event) {
	a.record(l.Queue, store.AuditEntry{Actor: a.actor, Event: on, Subject: l.ID, Reason: a.reason})
}
