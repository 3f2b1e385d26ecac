package lifecycle

import (
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// The states of a message by number, as stores keep them. Behind is Queued but for claims:
// others of its stream go first.
const (
	Queued = iota
	Leased
	Succeeded
	Discarded
	Canceled
	Dead
	Behind
)

var states = [...]nixie.State{nixie.Queued, nixie.Leased, nixie.Succeeded, nixie.Discarded, nixie.Canceled, nixie.Dead, nixie.Queued}

// State is the state with a number as the outside knows it, "" if there is none.
func State(number int) nixie.State {
	if number < 0 || number >= len(states) {
		return ""
	}
	return states[number]
}

// Number is the number of a state, -1 if there is none.
func Number(state nixie.State) int { return slices.Index(states[:], state) }

// Message is the part of a message that its way through the queue changes. A store fills it
// from what it has read and locked, a method changes it, and the store writes what changed.
// Moments are nanoseconds since 1970, and 0 is none.
type Message struct {
	ID    nixie.ID
	State int   // by its number
	Due   int64 // nobody gets it before

	Attempts, Deliveries, Crashes int // in this life; crashes are those in a row
	Generation, Redrives          int // which life it is, and how many of them began with a redrive

	Number           int64  // of the newest lease; 0 before the first
	Owner            int64  // whose that is, while it lasts: a number of the store
	Claimed, Until   int64  // when it began, and when it ends
	Received, Ended  int64  // when the first lease began, and when the message ended
	Abandoned        string // who vanished with it: the next claim is there to judge; "" is nobody
	Alone            bool   // it was alone with its last two holders
	Steps            []string
	Ordered, MayPass bool  // it is part of an ordered stream, and may pass the head of that
	Gap              bool  // others of its stream passed it
	Rank             int64 // its place there
}

// Public is the state as the outside knows it.
func (m *Message) Public() nixie.State { return State(m.State) }

// OnItsWay reports whether the message has not ended.
func (m *Message) OnItsWay() bool { return m.State <= Leased || m.State == Behind }

// Move changes the state by the table of moves, which guards every change.
func (m *Message) Move(on store.Event) error {
	next, ok := store.NextState(m.Public(), on)
	if !ok {
		return nixie.Errorf(nixie.CodeConflict, "message %s is %s: %s is not possible", m.ID, m.Public(), on)
	}
	m.State = Number(next)
	return nil
}

// Fresh is a message that nobody has claimed.
func Fresh(due int64) Message { return Message{Generation: 1, Due: due} }

// Member is a message in its first lease, which it has in common with others.
func Member(owner, until, claimed int64) Message {
	m := Fresh(claimed)
	m.State = Leased
	m.lease(owner, until, claimed)
	return m
}

// Claim gives a lease on a message that is due. A claim of an abandoned one is there to be
// judged and costs no attempt.
func (m *Message) Claim(owner, until, now int64) error {
	if err := m.Move(store.OnClaim); err != nil {
		return err
	}
	m.lease(owner, until, now)
	return nil
}

func (m *Message) lease(owner, until, now int64) {
	m.Owner, m.Claimed, m.Until, m.MayPass = owner, now, until, false
	m.Number++
	m.Deliveries++
	if m.Abandoned == "" {
		m.Attempts++
	}
	if m.Received == 0 {
		m.Received = now
	}
}

// Abandon ends a lease whose holder vanished without an answer. The attempt is given back,
// as a crash spends none, but for who was there to judge: that one ran nothing.
func (m *Message) Abandon(by string, now int64) error {
	if err := m.Move(store.OnAbandon); err != nil {
		return err
	}
	m.wait(now)
	if m.Abandoned == "" {
		m.Crashes++
		m.Attempts--
		m.Abandoned = by
	}
	return nil
}

// Settle does what a settlement asks for, but for the letter of a message that ends. Steps
// are those of [Learn].
func (m *Message) Settle(st *nixie.Settlement, set *nixie.QueueSettings, steps []string, now int64) error {
	if err := m.Move(store.EventOf(st.Verb)); err != nil {
		return err
	}
	m.Steps = steps
	switch st.Verb {
	case nixie.Retry:
		m.retry()
	case nixie.Release:
		m.release()
	default:
		m.over(now)
		return nil
	}
	m.wait(now + int64(st.Delay))
	m.MayPass = st.MayPass && st.Verb == nixie.Release && m.Ordered && set.Order == nixie.OrderStrict
	return nil
}

// retry is what a failed attempt leaves. A holder of its own survived it; one who was there
// to judge has judged.
func (m *Message) retry() {
	if m.Abandoned == "" {
		m.Crashes, m.Alone = 0, false
	}
	m.Abandoned = ""
}

// release takes the attempt back. Who was there to judge took none, and leaves the message
// to be judged by the next.
func (m *Message) release() {
	if m.Abandoned == "" {
		m.Attempts--
	}
}

// wait ends a lease, if there is one, and lets the message be due.
func (m *Message) wait(due int64) { m.Due, m.Owner, m.Claimed, m.Until = due, 0, 0, 0 }

// End ends a message without a settlement: by an operator, or as its holder noted.
func (m *Message) End(on store.Event, now int64) error {
	if err := m.Move(on); err != nil {
		return err
	}
	m.over(now)
	return nil
}

// over is what is left of a message that has ended.
func (m *Message) over(now int64) {
	m.Owner, m.Claimed, m.Until = 0, 0, 0
	m.Abandoned, m.MayPass, m.Ended = "", false, now
}

// Live begins the next life of a dead message, by a redrive.
func (m *Message) Live(now int64) error {
	if err := m.Move(store.OnRedrive); err != nil {
		return err
	}
	m.Generation++
	m.Redrives++
	m.Attempts, m.Deliveries, m.Crashes, m.Alone, m.Ended = 0, 0, 0, false, 0
	m.wait(now)
	return nil
}

// DieElsewhere is the end of a later life that a letter tells of. Each of its deliveries was
// a lease there, where our order of streams does not hold.
func (m *Message) DieElsewhere(l *nixie.Letter) {
	died := &l.Message
	m.State, m.Generation, m.Redrives = Dead, died.Generation, died.Redrives
	m.Attempts, m.Deliveries, m.Crashes = died.Attempts, died.Deliveries, died.Crashes
	m.Number, m.Ordered = max(m.Number, int64(died.Deliveries)), false
	if m.Received == 0 {
		m.Received = Nanos(died.FirstReceivedAt)
	}
	if m.Ended = Nanos(died.EndedAt); m.Ended == 0 {
		m.Ended = Nanos(l.DiedAt)
	}
}

// Amend does what a change asks for that leaves a queued message in its queue.
func (m *Message) Amend(c *store.Change, set *nixie.QueueSettings, now int64) error {
	switch c.Verb {
	case store.RetryNow:
		m.Due = min(m.Due, now)
	case store.Reschedule:
		m.Due = max(Nanos(c.At), now)
	case store.ResetAttempts:
		m.Attempts, m.Deliveries, m.Crashes, m.Abandoned, m.Alone = 0, 0, 0, "", false
	case store.MayPass:
		if !m.Ordered || set.Order != nixie.OrderStrict {
			return nixie.Errorf(nixie.CodeConflict, "message %s is not in a strict stream: nothing keeps it waiting that it could pass", m.ID)
		}
		m.MayPass = true
	}
	return nil
}

// MayLeave says why a message cannot go from a queue to another, nil if it can. Letter is the
// one that it has from an earlier life, zero if none.
func MayLeave(message, letter nixie.ID, from, to string) error {
	switch {
	case from == to:
		return nixie.Errorf(nixie.CodeConflict, "message %s is in queue %s already: name another one", message, to)
	case !letter.IsZero():
		return nixie.Errorf(nixie.CodeConflict, "message %s was redriven: its letter %s belongs to queue %s", message, letter, from)
	}
	return nil
}
