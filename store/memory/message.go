package memory

import (
	"bytes"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// message is a message with what the store knows of it beyond its public part.
type message struct {
	nixie.Message
	position int64 // in order of acceptance, over all queues; new after a move
	born     int64 // the position that it had first

	due time.Time // not handed out before

	ordered bool  // it is part of an ordered stream
	rank    int64 // its place there

	number      int64       // of its newest lease
	holder      *Store      // while leased
	stage       nixie.Stage // that it noted
	abandoned   bool        // the next claim is there to judge
	abandonedBy string
	alone       bool // twice with its last holder
	holdsKey    bool

	history []nixie.Failure
	dropped int
	letter  *letter // nil before its first death
}

// show is a copy for the outside.
func (m *message) show(whole bool) nixie.Message {
	shown := m.Message
	shown.Body = nil
	if whole {
		shown.Body = bytes.Clone(m.Body)
	}
	shown.Headers = slices.Clone(m.Headers)
	shown.Steps = slices.Clone(m.Steps)
	if m.Origin != nil {
		origin := *m.Origin
		origin.Key = bytes.Clone(origin.Key)
		shown.Origin = &origin
	}
	return shown
}

// move changes the state by the table of moves, which guards every change.
func (m *message) move(on nixie.Event) error {
	next, ok := nixie.NextState(m.State, on)
	if !ok {
		return nixie.Errorf(nixie.CodeConflict, "message %s is %s, which does not allow %s", m.ID, m.State, on)
	}
	m.State = next
	return nil
}

// leave ends the lease, if there is one.
func (m *message) leave() {
	m.holder, m.LeaseOwner, m.LeasedAt, m.LeaseExpiresAt = nil, "", time.Time{}, time.Time{}
}

// wait queues the message until due.
func (m *message) wait(due time.Time) {
	m.leave()
	m.due, m.NotBefore = due, due
}

// fail appends to the history a failure of a holder, with what was decided.
func (m *message) fail(f nixie.Failure, decision nixie.Verb) {
	f.Decision, f.Steps = decision, lifecycle.StepsOf(&f, m.Steps)
	m.keep(f)
}

// keep appends a failure to the history. Of a long one the first and the newest are kept.
func (m *message) keep(f nixie.Failure) {
	f.Err = nil
	f.Context, f.Steps = slices.Clone(f.Context), slices.Clone(f.Steps)
	f.Attachments = slices.Clone(f.Attachments)
	for i := range f.Attachments {
		f.Attachments[i].Data = bytes.Clone(f.Attachments[i].Data)
	}
	m.history = append(m.history, f)
	if len(m.history) > nixie.MaxHistory {
		m.history = slices.Delete(m.history, 1, 2)
		m.dropped++
	}
	m.LastFailure, m.LastReason = f.Text, f.Reason
}
