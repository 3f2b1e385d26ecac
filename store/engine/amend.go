package engine

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Amend implements store.Queue.
func (e *Engine) Amend(ctx context.Context, ids []nixie.ID, change store.Change) []error {
	errs := make([]error, len(ids))
	if len(ids) == 0 {
		return errs
	}
	if err := store.CheckCall(len(ids)); err != nil {
		return all(errs, err)
	}
	if err := change.Check(); err != nil {
		return all(errs, err)
	}
	want := &Want{Messages: ids, Failures: change.Verb == store.Hold}
	if change.Verb == store.Move {
		want.Into = change.Queue
	}
	err := e.driver.Update(ctx, How{}, func(tx Tx) error {
		facts, err := tx.Load(want)
		if err != nil {
			return err
		}
		a := amending{ending{call: call{Facts: facts}, tx: tx}, &change}
		for i, id := range ids {
			errs[i] = a.amend(id)
		}
		return a.write()
	})
	if err != nil {
		return all(errs, err)
	}
	return errs
}

// amending is one call of Amend.
type amending struct {
	ending
	by *store.Change
}

// amend changes one message. It answers before it changes anything.
func (a *amending) amend(id nixie.ID) error {
	m := a.Messages[id]
	switch {
	case m == nil:
		return nixie.Errorf(nixie.CodeNotFound, "no message %s", id)
	case m.damage() != nil:
		return m.damage()
	case a.by.Verb == store.Cancel:
		return a.cancel(m, a.by)
	case m.Public() != nixie.Queued:
		return nixie.Errorf(nixie.CodeConflict, "message %s is %s: %s is not possible", id, m.Public(), a.by.Verb)
	}
	from := m.Queue.Number
	if err := a.change(m); err != nil || a.by.Verb == store.Hold {
		return err // the audit has a hold as what it does to the letter
	}
	a.touch(m)
	a.record(from, store.AuditEntry{Actor: a.by.Actor, Event: a.by.Event(), Subject: id, Reason: a.by.Note()})
	return nil
}

// change does to a queued message what the verb says.
func (a *amending) change(m *Message) error {
	switch a.by.Verb {
	case store.Hold:
		return a.hold(m)
	case store.Move:
		return a.transfer(m, a.Queues[a.by.Queue])
	}
	own := *a.by
	if own.Verb == store.Reschedule { // by the machine's clock, as expiries
		own.At = lifecycle.Moment(a.Due(lifecycle.Nanos(own.At)))
	}
	return m.Amend(&own, m.Queue.Settings, a.Now)
}

// hold buries a queued message for review.
func (a *amending) hold(m *Message) error {
	e := lifecycle.Changed(a.by, m.Letter != nil)
	if err := m.mayFollow(e); err != nil {
		return err
	}
	if err := m.End(store.OnHold, a.Now); err != nil {
		return err
	}
	f := *a.by.Hold
	f.Generation, f.Attempt = m.Generation, m.Attempts
	a.fail(m, f, nixie.Hold)
	return a.bury(m, a.by.Settlement(), e)
}

// transfer appends a message to another queue.
func (a *amending) transfer(m *Message, to *Queue) error {
	var letter nixie.ID
	if m.Letter != nil {
		letter = m.Letter.ID
	}
	if err := lifecycle.MayLeave(m.ID, letter, m.Queue.Name, to.Name); err != nil {
		return err
	}
	if err := lifecycle.Admits(to.Settings, to.Name); err != nil {
		return err
	}
	if err := to.room(); err != nil {
		return err
	}
	takes := lifecycle.TakesKey(to.Settings.DedupeScope, m.Number)
	if by, taken := a.holder(m, to); takes && taken {
		return &nixie.DuplicateError{Key: m.Dedupe, Existing: by.ID}
	}
	a.free(m)
	to.Taken++
	m.Queue, m.MayPass, m.State, m.Rank = to, false, lifecycle.Queued, 0
	if m.Ordered = m.ordered(); m.Ordered {
		m.State, m.Rank = lifecycle.Behind, LastRank
	}
	if takes {
		a.take(m)
	}
	return nil
}
