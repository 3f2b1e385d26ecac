package engine

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Resolve implements store.DeadLetters.
func (e *Engine) Resolve(ctx context.Context, resolutions []store.Resolution) []error {
	errs := make([]error, len(resolutions))
	if len(resolutions) == 0 {
		return errs
	}
	if err := store.CheckResolutions(resolutions); err != nil {
		return all(errs, err)
	}
	want := wantedBy(resolutions)
	err := e.driver.Update(ctx, How{Letters: len(resolutions)}, func(tx Tx) error {
		facts, err := tx.Load(want)
		if err != nil {
			return err
		}
		r := resolving{call{Facts: facts}}
		for i := range resolutions {
			errs[i] = r.resolve(&resolutions[i])
		}
		return tx.Write(&r.changes)
	})
	if err != nil {
		return all(errs, err)
	}
	return errs
}

// wantedBy returns the facts from which resolutions are decided.
func wantedBy(resolutions []store.Resolution) *Want {
	w := &Want{}
	seen := map[nixie.ID]bool{}
	for i := range resolutions {
		by := &resolutions[i]
		w.Letters = append(w.Letters, by.Letter)
		if op := by.Operation; !op.IsZero() && !seen[op] {
			seen[op] = true
			w.Operations = append(w.Operations, op)
		}
		w.Notes = w.Notes || by.Event == store.OnNote
		w.Headers = w.Headers || by.Edit != nil
		w.Rejoins = w.Rejoins || by.Event == store.OnRestore
	}
	return w
}

// resolving is one call of Resolve.
type resolving struct{ call }

// resolve applies one resolution. It answers before it changes anything but the item of its
// operation, which the refusal decides.
func (r *resolving) resolve(by *store.Resolution) error {
	if err := by.Check(); err != nil {
		return err
	}
	l := r.Letters[by.Letter]
	if l == nil {
		return nixie.Errorf(nixie.CodeNotFound, "no letter %s", by.Letter)
	}
	it, err := r.item(by)
	if err != nil {
		return err
	}
	if err = r.allow(l, by, it); err == nil {
		err = r.apply(l, by)
	}
	if it == nil {
		return err
	}
	it.State = lifecycle.ItemOf(by, err)
	decided := ItemChange{ItemKey: ItemKey{by.Operation, by.Letter}, Letter: l.Pos, State: it.State, Group: by.Group}
	if err != nil {
		decided.Error = err.Error()
	}
	r.changes.Decided = append(r.changes.Decided, decided)
	return err
}

// item finds the item that a resolution is about to decide, nil if it belongs to none.
func (r *resolving) item(by *store.Resolution) (*Item, error) {
	if by.Operation.IsZero() {
		return nil, nil
	}
	event, known := r.Operations[by.Operation]
	if !known {
		return nil, store.NoOperation(by.Operation)
	}
	it := r.Items[ItemKey{by.Operation, by.Letter}]
	if it == nil {
		it = &Item{} // not in the operation
	}
	return it, it.State.Open(by, event)
}

// allow returns why a resolution cannot be applied.
func (r *resolving) allow(l *Letter, by *store.Resolution, it *Item) error {
	m := l.Message
	switch {
	case m == nil:
		return nixie.Errorf(nixie.CodeInternal, "letter %s has no message: run nixie verify", l.ID)
	case l.Damage != nil:
		return l.Damage
	case m.Damage != nil && moves(by.Event):
		return m.Damage
	case m.Unread != nil && by.Edit != nil:
		return m.Unread
	}
	facts := lifecycle.Facts{
		ID: l.ID, Status: l.Status, Dead: m.State == lifecycle.Dead, Redrivable: l.Redrivable, NeedsReview: l.NeedsReview,
		Redrives: m.Redrives, Notes: l.Notes, Revision: l.Revision, Cause: l.Cause, Expired: lifecycle.Past(m.Expires, r.Wall),
		BodyAt: m.BodyAt,
	}
	if it != nil {
		facts.Planned = it.Planned
	}
	if _, taken := r.holder(m, m.Queue); taken && lifecycle.NeedsKey(by.Event, m.Queue.Settings.DedupeScope) {
		facts.TakenKey = m.Dedupe
	}
	return lifecycle.Refuse(facts, by)
}

// moves reports whether an event of a letter may move its message, too.
func moves(on store.Event) bool {
	return on == store.OnRedrive || on == store.OnConfirm || on == store.OnRestore
}

// brokerTook is the note of a message that was confirmed.
const brokerTook = "a broker took it"

// apply does what allow found possible.
func (r *resolving) apply(l *Letter, by *store.Resolution) error {
	m := l.Message
	if by.Event == store.OnPurge {
		r.purge(l, by)
		return nil
	}
	was, operation := l.Status, l.Operation
	appends, err := l.Resolve(m.Message, by, m.ordered(), r.Now)
	if err != nil {
		return nixie.Errorf(nixie.CodeInternal, "letter %s: %w: run nixie verify", l.ID, err)
	}
	r.touchLetter(l)
	takes := lifecycle.NeedsKey(by.Event, m.Queue.Settings.DedupeScope)
	switch by.Event {
	case store.OnNote:
		l.Notes++
		r.changes.Notes = append(r.changes.Notes, Note{l, by.Actor, by.Reason})
	case store.OnRedrive:
		r.redrive(m, by, appends)
	case store.OnConfirm:
		if was == nixie.StatusRedriving {
			r.changes.Ends = append(r.changes.Ends, ItemEnd{lifecycle.Ending{Operation: operation, On: lifecycle.Overtaken(by)}, l.Pos})
		}
		m.Ordered, m.Note = false, brokerTook
		r.touch(m)
		r.release(m, true)
	case store.OnDiscard:
		r.release(m, true)
	}
	if takes {
		r.take(m)
	}
	r.recordResolved(l.Queue, by, by.Event, by.Reason)
	return nil
}

// redrive queues a dead message again.
func (r *resolving) redrive(m *Message, by *store.Resolution, appends bool) {
	m.Note = ""
	if appends {
		m.Rank = LastRank
	}
	r.touch(m)
	r.edit(m, by)
}

// edit gives a redriven message its new expiry and what an operator changed.
func (r *resolving) edit(m *Message, by *store.Resolution) {
	if at, what := lifecycle.Prolonged(m.Expires, by, r.Wall); what != "" {
		m.Expires = at
		r.changes.Renewed = append(r.changes.Renewed, m)
		r.recordResolved(m.Queue.Number, by, store.OnAmend, what)
	}
	if by.Edit == nil {
		return
	}
	what := lifecycle.Edited(m.Hash, m.Headers, by.Edit)
	if what == "" {
		return
	}
	m.Hash, m.Headers = nixie.HashBody(by.Edit.Body), by.Edit.Headers
	r.changes.Edits = append(r.changes.Edits, Edit{m, by.Actor, by.Edit.Body})
	r.recordResolved(m.Queue.Number, by, store.OnAmend, what)
}

// purge removes a letter for good.
func (r *resolving) purge(l *Letter, by *store.Resolution) {
	r.changes.Removed = append(r.changes.Removed, Removal{l, by.Operation})
	delete(r.Letters, l.ID)
	if m := l.Message; r.Keys[m.key()].Pos == m.Pos {
		delete(r.Keys, m.key())
		delete(r.changes.Taken, m.key())
	}
	r.recordResolved(l.Queue, by, by.Event, by.Reason)
}

// recordResolved adds an entry about what an operator did to a letter.
func (r *resolving) recordResolved(queue int64, by *store.Resolution, on store.Event, reason string) {
	r.record(queue, store.AuditEntry{Actor: by.Actor, Event: on, Subject: by.Letter, Reason: reason, Operation: by.Operation})
}
