package engine

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// ending is a call in which messages may end or die.
type ending struct {
	call
	tx      Tx
	follows []follow
}

// follow has the message of which the queue to gets a notice, or the settlement whose messages are
// enqueued after it.
type follow struct {
	dead *Message
	st   *nixie.Settlement
	to   string
	then []nixie.Message
}

// apply does what a settlement asks for, if that is allowed. Steps are those of the message, with
// those of the settlement.
func (e *ending) apply(m *Message, st *nixie.Settlement, steps []string) error {
	on := lifecycle.Settled(st, m.Letter != nil)
	if on.Event != "" && m.Letter != nil { // it follows
		if err := m.Letter.Damage; err != nil {
			return err
		}
	}
	if store.EventOf(st.Verb) == store.OnBury {
		if err := m.mayFollow(on); err != nil {
			return err
		}
	}
	if err := m.Settle(st, m.Queue.Settings, steps, e.Now); err != nil {
		return err
	}
	for _, f := range [...]*nixie.Failure{st.Failure, st.Second} {
		if f != nil {
			e.fail(m, *f, st.Verb)
		}
	}
	switch m.State {
	case lifecycle.Queued:
		e.again(m)
		return nil
	case lifecycle.Dead:
		return e.bury(m, st, on)
	}
	e.end(m, on)
	return nil
}

// again queues a message again whose lease has ended.
func (e *ending) again(m *Message) {
	if m.Ordered {
		m.State = lifecycle.Behind
	}
	e.touch(m)
}

// cancel ends a message and voids its lease.
func (e *ending) cancel(m *Message, by *store.Change) error {
	if err := m.End(store.OnCancel, e.Now); err != nil {
		return err
	}
	e.record(m.Queue.Number, store.AuditEntry{Actor: by.Actor, Event: by.Event(), Subject: m.ID, Reason: by.Note()})
	e.end(m, lifecycle.Changed(by, m.Letter != nil))
	return nil
}

// end notes how a message ended that leaves nothing to do. A letter that was redriven follows it.
func (e *ending) end(m *Message, on lifecycle.End) {
	if l := m.Letter; l != nil && l.Follow(on, e.Now) == nil {
		e.touchLetter(l)
		e.ends(l.Pos, lifecycle.Ending{Operation: l.Operation, On: on.Event})
		e.recordLetter(l, on)
	}
	m.Ordered, m.Note = false, on.Note
	e.touch(m)
	e.release(m, true)
}

// fail appends a failure to the history of a message, with the decision about it. Its letter shows
// the newest failure, also while the message is on its way.
func (e *ending) fail(m *Message, f nixie.Failure, decision nixie.Verb) {
	f.Decision, f.Steps = decision, lifecycle.StepsOf(&f, m.Steps)
	e.changes.Failures = append(e.changes.Failures, Failure{m, f})
	m.Last = &lifecycle.Failure{At: lifecycle.Nanos(f.FailedAt), Class: f.Class, Reason: f.Reason, Text: f.Text}
	if m.First == nil {
		m.First = m.Last
	}
	if l := m.Letter; l != nil && l.Damage == nil {
		l.Text = f.Text
		e.touchLetter(l)
	}
}

// bury makes the letter of a message that has ended as dead, or moves on the one that it has.
func (e *ending) bury(m *Message, st *nixie.Settlement, on lifecycle.End) error {
	l := m.Letter
	if l == nil {
		both := &struct {
			letter Letter
			fields lifecycle.Letter
		}{} // one allocation
		both.fields.ID = e.tx.NewID(m.Pos)
		l = &both.letter
		l.Letter, l.Pos, l.Queue, l.Message = &both.fields, m.Pos, m.Queue.Number, m
	}
	if err := l.Die(m.Message, on, st.Burial, m.Queue.Settings, m.First, m.Last, e.Now); err != nil {
		return err
	}
	m.Letter, l.Dies, m.Ordered = l, true, false
	e.touch(m)
	e.touchLetter(l)
	e.release(m, false)
	e.ends(l.Pos, lifecycle.Ending{Operation: l.Operation, On: on.Event, Fingerprint: l.Fingerprint})
	e.recordLetter(l, on)
	if to := m.Queue.Settings.DeadLetterTo; to != "" {
		e.follows = append(e.follows, follow{dead: m, st: st, to: to})
	}
	if st.Verb == nixie.Halt {
		m.Queue.Settings.Paused, m.Queue.Settings.PausedNote = true, "halted by message "+m.ID.String()
		e.changes.Halted = append(e.changes.Halted, m.Queue)
	}
	return nil
}

// mayFollow returns why the letter of a message, if it has one, cannot follow its end.
func (m *Message) mayFollow(on lifecycle.End) error {
	if m.Letter == nil {
		return nil
	}
	return m.Letter.Follows(on)
}

// ends notes the outcome of the item by which a redrive moved the letter at a position.
func (e *ending) ends(letter int64, how lifecycle.Ending) {
	if !how.Operation.IsZero() {
		e.changes.Ends = append(e.changes.Ends, ItemEnd{how, letter})
	}
}

// recordLetter adds an entry about what the end of a message did to its letter.
func (e *ending) recordLetter(l *Letter, on lifecycle.End) {
	e.record(l.Queue, store.AuditEntry{Actor: on.Actor, Event: on.Event, Subject: l.ID, Reason: on.Reason})
}

// write writes what was decided, and then takes in what follows.
func (e *ending) write() error {
	if err := e.tx.Write(&e.changes); err != nil || len(e.follows) == 0 {
		return err
	}
	var dead []*Message
	for i := range e.follows {
		if m := e.follows[i].dead; m != nil {
			dead = append(dead, m)
		}
	}
	var sent []nixie.Message
	if len(dead) > 0 {
		var err error
		if sent, err = e.tx.Sent(dead); err != nil {
			return err
		}
	}
	var list []nixie.Message
	for _, f := range e.follows {
		if m := f.dead; m != nil {
			sent[0].Queue = m.Queue.Name
			list = append(list, m.Notice(sent[0], f.st, m.Last, f.to, e.Now))
			sent = sent[1:]
		}
		list = append(list, f.then...)
	}
	_, err := enqueue(e.tx, list, hashesOf(list))
	return err
}
