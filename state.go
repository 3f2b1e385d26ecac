package nixie

import "slices"

// State is where a message is. Scheduled and waiting for a retry are queued:
// the difference is NotBefore. Blocked is derived from the stream.
type State string

// The states of a message.
const (
	Queued    State = "queued"
	Leased    State = "leased"
	Succeeded State = "succeeded"
	Discarded State = "discarded"
	Canceled  State = "canceled"
	Dead      State = "dead" // its letter has the rest of the story
)

// States lists every state once.
func States() []State { return []State{Queued, Leased, Succeeded, Discarded, Canceled, Dead} }

// Event is what happens to a message or a letter.
type Event string

// The events. Those that end a lease are named like the verbs.
const (
	OnEnqueue   Event = "enqueue"
	OnClaim     Event = "claim"
	OnComplete  Event = "complete"
	OnRetry     Event = "retry"
	OnRelease   Event = "release"
	OnDiscard   Event = "discard"
	OnBury      Event = "bury" // also hold and halt
	OnAbandon   Event = "abandon"
	OnCancel    Event = "cancel"
	OnRedrive   Event = "redrive"
	OnHold      Event = "hold"
	OnUnhold    Event = "unhold"
	OnSuccess   Event = "success"   // a redriven message succeeded
	OnDieAgain  Event = "die-again" // a redriven message died
	OnExceed    Event = "exceed"    // it died once more than redrives are allowed
	OnConfirm   Event = "confirm"   // a foreign broker took it
	OnRequalify Event = "requalify" // an operator lets a quarantined letter go on
	OnRestore   Event = "restore"   // an operator takes a discard back
	OnConfigure Event = "configure" // of a queue, in the audit only
	OnAmend     Event = "amend"     // of a message that goes on, in the audit only
	OnUnblock   Event = "unblock"   // of a stream or a letter that held it up, in the audit only
	OnGone      Event = "gone"      // a redriven message was cancelled or discarded
	OnAdopt     Event = "adopt"     // it died elsewhere and was taken in
	OnNote      Event = "note"      // somebody wrote a note on a letter; its status stays
	OnPurge     Event = "purge"     // a letter is removed for good, with its message; of a queue: what was queued is canceled
	OnPrune     Event = "prune"     // the oldest entries of an audit went by its retention
)

// MessageMove is one row of the table of what can happen to a message.
type MessageMove struct {
	From State // empty: it did not exist
	On   Event
	To   State
}

// MessageMoves is the table of all moves of a message; what is not in it cannot
// happen.
func MessageMoves() []MessageMove { return slices.Clone(messageMoves) }

var messageMoves = []MessageMove{
	{"", OnEnqueue, Queued},
	{"", OnAdopt, Dead},
	{Queued, OnClaim, Leased},
	{Queued, OnCancel, Canceled},
	{Queued, OnHold, Dead},
	{Leased, OnComplete, Succeeded},
	{Leased, OnRetry, Queued},
	{Leased, OnRelease, Queued},
	{Leased, OnAbandon, Queued},
	{Leased, OnDiscard, Discarded},
	{Leased, OnBury, Dead},
	{Leased, OnCancel, Canceled},
	{Dead, OnRedrive, Queued},
}

// NextState looks a move of a message up.
func NextState(from State, on Event) (State, bool) {
	for _, m := range messageMoves {
		if m.From == from && m.On == on {
			return m.To, true
		}
	}
	return "", false
}

// LetterMove is one row of the table of what can happen to a letter.
type LetterMove struct {
	From Status // empty: it did not exist
	On   Event
	To   Status // empty: it does not exist any more
}

// LetterMoves is the table of all moves of a letter. One that is adopted in
// review or quarantined makes that move at once, so that its audit leads there.
func LetterMoves() []LetterMove { return slices.Clone(letterMoves) }

var letterMoves = []LetterMove{
	{"", OnBury, StatusOpen},
	{"", OnHold, StatusReview},
	{"", OnAdopt, StatusOpen},
	{StatusOpen, OnHold, StatusReview},
	{StatusOpen, OnExceed, StatusQuarantined},
	{StatusReview, OnUnhold, StatusOpen},
	{StatusOpen, OnRedrive, StatusRedriving},
	{StatusReview, OnRedrive, StatusRedriving},
	{StatusRedriving, OnSuccess, StatusResolved},
	{StatusRedriving, OnConfirm, StatusResolved},
	{StatusOpen, OnConfirm, StatusResolved},
	{StatusReview, OnConfirm, StatusResolved},
	{StatusRedriving, OnGone, StatusDiscarded},
	{StatusRedriving, OnDieAgain, StatusOpen},
	{StatusResolved, OnDieAgain, StatusOpen}, // where a foreign broker had it
	{StatusRedriving, OnHold, StatusReview},
	{StatusRedriving, OnExceed, StatusQuarantined},
	{StatusQuarantined, OnRequalify, StatusOpen},
	{StatusOpen, OnDiscard, StatusDiscarded},
	{StatusReview, OnDiscard, StatusDiscarded},
	{StatusQuarantined, OnDiscard, StatusDiscarded},
	{StatusDiscarded, OnRestore, StatusOpen},
	{StatusResolved, OnPurge, ""},
	{StatusDiscarded, OnPurge, ""},
	{StatusOpen, OnPurge, ""},
	{StatusReview, OnPurge, ""},
	{StatusQuarantined, OnPurge, ""},
}

// NextStatus looks a move of a letter up.
func NextStatus(from Status, on Event) (Status, bool) {
	for _, m := range letterMoves {
		if m.From == from && m.On == on {
			return m.To, true
		}
	}
	return "", false
}

// Adoption is the way from nothing to the status of a letter that is taken in
// from elsewhere: none if it cannot be, because nothing is left to be done or
// its message is on its way there.
func Adoption(to Status) []Event {
	switch to {
	case StatusOpen:
		return []Event{OnAdopt}
	case StatusReview:
		return []Event{OnAdopt, OnHold}
	case StatusQuarantined:
		return []Event{OnAdopt, OnExceed}
	}
	return nil
}

// Comeback is the way of a letter whose message died again with a foreign broker: what
// has to be made up for first, the death, and where that leads. None: it cannot be,
// because its message is on its way here, or because no letter can be taken in as that.
func Comeback(from, to Status) []Event {
	var way []Event
	after := Adoption(to)
	if after == nil {
		return nil
	}
	switch from {
	case StatusResolved:
	case StatusOpen, StatusReview:
		way = []Event{OnConfirm}
	case StatusQuarantined:
		way = []Event{OnRequalify, OnConfirm}
	case StatusDiscarded:
		way = []Event{OnRestore, OnConfirm}
	default:
		return nil
	}
	return append(append(way, OnDieAgain), after[1:]...)
}
