package lifecycle

import (
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
)

// The states of a message by number, as stores keep them. Behind means queued behind others of its
// stream, so a claim does not see it.
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

// State returns the state with a number, "" if there is none.
func State(number int) nixie.State {
	if number < 0 || number >= len(states) {
		return ""
	}
	return states[number]
}

// Number returns the number of a state, -1 if there is none.
func Number(state nixie.State) int { return slices.Index(states[:], state) }

// Message has the fields of a message that change on its way. A store fills it with facts that it
// has read and locked, calls a method, and writes the changes. Moments are nanoseconds since 1970,
// and 0 is none.
type Message struct {
	ID    nixie.ID
	State int   // number of the state
	Due   int64 // not delivered before

	Attempts, Deliveries, Crashes int // in this generation; crashes in a row
	Generation, Redrives          int

	Number           int64  // of the newest lease; 0 before the first
	Owner            int64  // of the lease while it lasts: a number of the store
	Claimed, Until   int64  // begin and end of the lease
	Received, Ended  int64  // begin of the first lease, end of the message
	Redriven         int64  // begin of this generation; 0 in the first
	Abandoned        string // holder that vanished: the next claim judges the message; "" is none
	Alone            bool   // the last two holders had this message alone
	Patience         nixie.Patience
	Steps            []string
	Ordered, MayPass bool  // belongs to an ordered stream; may pass the head of it
	Gap              bool  // was delivered out of the order of its stream
	Rank             int64 // position in its stream
}

// Public returns the state as callers of a store see it.
func (m *Message) Public() nixie.State { return State(m.State) }

// OnItsWay reports whether the message has not ended.
func (m *Message) OnItsWay() bool { return m.State <= Leased || m.State == Behind }

// Move changes the state by the table of moves, or refuses.
func (m *Message) Move(on store.Event) error {
	next, ok := store.NextState(m.Public(), on)
	if !ok {
		return nixie.Errorf(nixie.CodeConflict, "message %s is %s: %s is not possible", m.ID, m.Public(), on)
	}
	m.State = Number(next)
	return nil
}

// Fresh returns a new message.
func Fresh(due int64) Message { return Message{Generation: 1, Due: due} }

// Member returns a message in its first lease, as a member of a batch.
func Member(owner, until, claimed int64) Message {
	m := Fresh(claimed)
	m.State = Leased
	m.lease(owner, until, claimed)
	return m
}

// Claim leases a message that is due. The claim of an abandoned message is for judging, and counts
// no attempt.
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

// Abandon ends a lease whose holder vanished. A crash spends no attempt, so the attempt is
// refunded. A holder that was to judge the message ran nothing: its end counts no crash. Told means
// that the holder was told to stop: then its end may be no crash, see [lease.Vanished].
func (m *Message) Abandon(by string, told bool, now int64) error {
	if err := m.Move(store.OnAbandon); err != nil {
		return err
	}
	m.wait(now)
	if m.Abandoned != "" {
		return nil
	}
	m.Attempts--
	crash := false
	if m.Patience, crash = lease.Vanished(m.Patience, by, told); crash {
		m.Crashes++
		m.Abandoned = by
	}
	return nil
}

// Settle applies a settlement to the message, not to its letter. Steps come from [Learn].
func (m *Message) Settle(st *nixie.Settlement, set *nixie.QueueSettings, steps []string, now int64) error {
	if err := m.Move(store.EventOf(st.Verb)); err != nil {
		return err
	}
	m.Steps = steps
	if st.Verb != nixie.Retry && st.Verb != nixie.Release {
		m.over(now)
		return nil
	}
	m.giveBack(st, now)
	m.wait(now + int64(st.Delay))
	m.MayPass = st.MayPass && st.Verb == nixie.Release && m.Ordered && set.Order == nixie.OrderStrict
	return nil
}

// giveBack records how a lease ended. A retry is the end of a row of crashes, because its holder
// survived. A holder that judged the message ran nothing: its retry leaves the row, and its release
// leaves the message to be judged by the next one.
func (m *Message) giveBack(st *nixie.Settlement, now int64) {
	judged := m.Abandoned != ""
	var refund int
	m.Patience, refund = lease.GivenBack(m.Patience, st, judged, Moment(now))
	m.Attempts -= refund
	if st.Verb == nixie.Release {
		return
	}
	if !judged {
		m.Crashes, m.Alone = 0, false
	}
	m.Abandoned = ""
}

// wait ends the lease, if there is one, and sets the moment at which the message is due.
func (m *Message) wait(due int64) { m.Due, m.Owner, m.Claimed, m.Until = due, 0, 0, 0 }

// End ends a message without a settlement: by an operator, or by the progress that its holder
// logged.
func (m *Message) End(on store.Event, now int64) error {
	if err := m.Move(on); err != nil {
		return err
	}
	m.over(now)
	return nil
}

// over clears the fields that an ended message does not have.
func (m *Message) over(now int64) {
	m.Owner, m.Claimed, m.Until = 0, 0, 0
	m.Abandoned, m.MayPass, m.Ended, m.Patience = "", false, now, nixie.Patience{}
}

// Redrive begins the next generation of a dead message.
func (m *Message) Redrive(now int64) error {
	if err := m.Move(store.OnRedrive); err != nil {
		return err
	}
	m.Generation++
	m.Redrives++
	m.Attempts, m.Deliveries, m.Crashes, m.Alone, m.Ended, m.Redriven = 0, 0, 0, false, 0, now
	m.Patience = nixie.Patience{}
	m.wait(now)
	return nil
}

// DieElsewhere records the end of a later generation with a foreign broker. Each delivery there
// counts as a lease. The broker does not keep the order of our streams, so the message leaves its
// stream.
func (m *Message) DieElsewhere(l *nixie.Letter) {
	died := &l.Message
	m.State, m.Generation, m.Redrives = Dead, died.Generation, died.Redrives
	m.Attempts, m.Deliveries, m.Crashes, m.Patience = died.Attempts, died.Deliveries, died.Crashes, nixie.Patience{}
	m.Number, m.Ordered = max(m.Number, int64(died.Deliveries)), false
	if m.Received == 0 {
		m.Received = Nanos(died.FirstReceivedAt)
	}
	if at := Nanos(died.RedrivenAt); at != 0 { // not all brokers say it, and we had sent it before
		m.Redriven = at
	}
	if m.Ended = Nanos(died.EndedAt); m.Ended == 0 {
		m.Ended = Nanos(l.DiedAt)
	}
}

// Amend applies a change that leaves a queued message in its queue.
func (m *Message) Amend(c *store.Change, set *nixie.QueueSettings, now int64) error {
	switch c.Verb {
	case store.RetryNow:
		m.Due = min(m.Due, now)
	case store.Reschedule:
		m.Due = max(Nanos(c.At), now)
	case store.ResetAttempts:
		m.Attempts, m.Deliveries, m.Crashes, m.Abandoned, m.Alone = 0, 0, 0, "", false
		m.Patience = nixie.Patience{}
	case store.MayPass:
		if !m.Ordered || set.Order != nixie.OrderStrict {
			return nixie.Errorf(nixie.CodeConflict, "message %s is not in a strict stream: there is no message that it could pass", m.ID)
		}
		m.MayPass = true
	}
	return nil
}

// MayLeave returns nil if a message may move to another queue, and otherwise the reason. A redriven
// message has the letter of an earlier generation, and stays in its queue.
func MayLeave(message, letter nixie.ID, from, to string) error {
	switch {
	case from == to:
		return nixie.Errorf(nixie.CodeConflict, "message %s is in queue %s already: name another one", message, to)
	case !letter.IsZero():
		return nixie.Errorf(nixie.CodeConflict, "message %s was redriven: its letter %s belongs to queue %s", message, letter, from)
	}
	return nil
}
