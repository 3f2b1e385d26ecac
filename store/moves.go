package store

import (
	"slices"

	"github.com/nixie-go/nixie"
)

// MessageMove is one row of the table [MessageMoves].
type MessageMove struct {
	From nixie.State // empty: the message did not exist
	On   Event
	To   nixie.State
}

// MessageMoves returns the table of all moves of a message. Other moves do not happen.
func MessageMoves() []MessageMove { return slices.Clone(messageMoves) }

var messageMoves = []MessageMove{
	{"", OnEnqueue, nixie.Queued},
	{"", OnAdopt, nixie.Dead},
	{nixie.Queued, OnClaim, nixie.Leased},
	{nixie.Queued, OnCancel, nixie.Canceled},
	{nixie.Queued, OnHold, nixie.Dead},
	{nixie.Leased, OnComplete, nixie.Succeeded},
	{nixie.Leased, OnRetry, nixie.Queued},
	{nixie.Leased, OnRelease, nixie.Queued},
	{nixie.Leased, OnAbandon, nixie.Queued},
	{nixie.Leased, OnDiscard, nixie.Discarded},
	{nixie.Leased, OnBury, nixie.Dead},
	{nixie.Leased, OnCancel, nixie.Canceled},
	{nixie.Dead, OnRedrive, nixie.Queued},
}

// NextState returns the state of a message after an event, and whether the table has that move.
func NextState(from nixie.State, on Event) (nixie.State, bool) {
	for _, m := range messageMoves {
		if m.From == from && m.On == on {
			return m.To, true
		}
	}
	return "", false
}

// LetterMove is one row of the table [LetterMoves].
type LetterMove struct {
	From nixie.Status // empty: the letter did not exist
	On   Event
	To   nixie.Status // empty: the letter is removed
}

// LetterMoves returns the table of all moves of a letter. Other moves do not happen. A letter that
// is adopted in review or quarantined first is open, so that its audit follows the table.
func LetterMoves() []LetterMove { return slices.Clone(letterMoves) }

var letterMoves = []LetterMove{
	{"", OnBury, nixie.StatusOpen},
	{"", OnHold, nixie.StatusReview},
	{"", OnAdopt, nixie.StatusOpen},
	{nixie.StatusOpen, OnHold, nixie.StatusReview},
	{nixie.StatusOpen, OnExceed, nixie.StatusQuarantined},
	{nixie.StatusReview, OnUnhold, nixie.StatusOpen},
	{nixie.StatusOpen, OnRedrive, nixie.StatusRedriving},
	{nixie.StatusReview, OnRedrive, nixie.StatusRedriving},
	{nixie.StatusRedriving, OnSuccess, nixie.StatusResolved},
	{nixie.StatusRedriving, OnConfirm, nixie.StatusResolved},
	{nixie.StatusOpen, OnConfirm, nixie.StatusResolved},
	{nixie.StatusReview, OnConfirm, nixie.StatusResolved},
	{nixie.StatusRedriving, OnGone, nixie.StatusDiscarded},
	{nixie.StatusRedriving, OnDieAgain, nixie.StatusOpen},
	{nixie.StatusResolved, OnDieAgain, nixie.StatusOpen}, // with a foreign broker that had taken it
	{nixie.StatusRedriving, OnHold, nixie.StatusReview},
	{nixie.StatusRedriving, OnExceed, nixie.StatusQuarantined},
	{nixie.StatusQuarantined, OnRequalify, nixie.StatusOpen},
	{nixie.StatusOpen, OnDiscard, nixie.StatusDiscarded},
	{nixie.StatusReview, OnDiscard, nixie.StatusDiscarded},
	{nixie.StatusQuarantined, OnDiscard, nixie.StatusDiscarded},
	{nixie.StatusDiscarded, OnRestore, nixie.StatusOpen},
	{nixie.StatusResolved, OnPurge, ""},
	{nixie.StatusDiscarded, OnPurge, ""},
	{nixie.StatusOpen, OnPurge, ""},
	{nixie.StatusReview, OnPurge, ""},
	{nixie.StatusQuarantined, OnPurge, ""},
}

// NextStatus returns the status of a letter after an event, and whether the table has that move.
func NextStatus(from nixie.Status, on Event) (nixie.Status, bool) {
	for _, m := range letterMoves {
		if m.From == from && m.On == on {
			return m.To, true
		}
	}
	return "", false
}

// Adoption returns the events that adopt a letter with a status. It returns none for a status that
// cannot be adopted: the letter is resolved or discarded, or its message is on its way elsewhere.
func Adoption(to nixie.Status) []Event {
	switch to {
	case nixie.StatusOpen:
		return []Event{OnAdopt}
	case nixie.StatusReview:
		return []Event{OnAdopt, OnHold}
	case nixie.StatusQuarantined:
		return []Event{OnAdopt, OnExceed}
	}
	return nil
}

// Comeback returns the events of a letter whose message died again with a foreign broker: the
// events that the store has missed, the death, and the move to the given status. It returns none if
// the message is on its way here, or if the given status cannot be adopted.
func Comeback(from, to nixie.Status) []Event {
	var way []Event
	after := Adoption(to)
	if after == nil {
		return nil
	}
	switch from {
	case nixie.StatusResolved:
	case nixie.StatusOpen, nixie.StatusReview:
		way = []Event{OnConfirm}
	case nixie.StatusQuarantined:
		way = []Event{OnRequalify, OnConfirm}
	case nixie.StatusDiscarded:
		way = []Event{OnRestore, OnConfirm}
	default:
		return nil
	}
	return append(append(way, OnDieAgain), after[1:]...)
}
