package memory

import (
	"bytes"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// message is a message with the private fields of the store.
type message struct {
	nixie.Message
	position int64 // in order of acceptance, over all queues; new after a move
	born     int64 // first position

	due time.Time // not delivered before

	ordered bool  // belongs to an ordered stream
	rank    int64 // position in that stream

	number    int64          // of its newest lease
	holder    *Store         // while leased
	progress  lease.Progress // logged by the holder
	abandoned string         // holder that vanished: the next claim judges the message
	alone     bool           // the last two holders had this message alone
	holdsKey  bool
	keyless   bool // its scope left it on its way without its dedupe key

	history []nixie.Failure
	dropped int
	letter  *letter // nil before its first death
}

// show copies the message for a caller.
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

// decide lets package lifecycle change the message. A refused change changes nothing.
func (m *message) decide(change func(*lifecycle.Message) error) error {
	l := lifecycle.Message{
		ID: m.ID, State: lifecycle.Number(m.State), Due: lifecycle.Nanos(m.due),
		Attempts: m.Attempts, Deliveries: m.Deliveries, Crashes: m.Crashes, Generation: m.Generation, Redrives: m.Redrives,
		Number: m.number, Claimed: lifecycle.Nanos(m.LeasedAt), Until: lifecycle.Nanos(m.LeaseExpiresAt),
		Received: lifecycle.Nanos(m.FirstReceivedAt), Ended: lifecycle.Nanos(m.EndedAt), Redriven: lifecycle.Nanos(m.RedrivenAt),
		Abandoned: m.abandoned, Alone: m.alone, Patience: m.Patience,
		Steps: m.Steps, Ordered: m.ordered, MayPass: m.MayPass, Gap: m.OrderGap, Rank: m.rank,
	}
	due := l.Due
	if err := change(&l); err != nil {
		return err
	}
	if l.Due != due {
		m.due = lifecycle.Moment(l.Due)
		m.NotBefore = m.due
	}
	if m.State = l.Public(); m.State != nixie.Leased {
		m.holder, m.LeaseOwner = nil, ""
	}
	m.Attempts, m.Deliveries, m.Crashes, m.Generation, m.Redrives = l.Attempts, l.Deliveries, l.Crashes, l.Generation, l.Redrives
	m.number, m.LeasedAt, m.LeaseExpiresAt = l.Number, lifecycle.Moment(l.Claimed), lifecycle.Moment(l.Until)
	m.FirstReceivedAt, m.EndedAt, m.RedrivenAt = lifecycle.Moment(l.Received), lifecycle.Moment(l.Ended), lifecycle.Moment(l.Redriven)
	m.abandoned, m.alone, m.Steps, m.ordered, m.MayPass = l.Abandoned, l.Alone, l.Steps, l.Ordered, l.MayPass
	m.rank, m.OrderGap, m.Patience = l.Rank, l.Gap, l.Patience
	return nil
}

// end ends the message without a settlement.
func (m *message) end(on store.Event, now time.Time) error {
	return m.decide(func(l *lifecycle.Message) error { return l.End(on, now.UnixNano()) })
}

// fail appends a failure to the history, with the decision about it.
func (m *message) fail(f nixie.Failure, decision nixie.Verb) {
	f.Decision, f.Steps = decision, lifecycle.StepsOf(&f, m.Steps)
	m.keep(f)
}

// keep appends a failure to the history. A long history keeps the first and the newest failures.
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
