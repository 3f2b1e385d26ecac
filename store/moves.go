package store

import (
	"slices"

	"github.com/nixie-go/nixie"
)

// MessageMove is one row of the table of what can happen to a message.
type MessageMove struct {
	From nixie.State // empty: it did not exist
	On   Event
	To   nixie.State
}

// MessageMoves is the table of all moves of a message; what is not in it cannot
// happen.
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

// NextState looks a move of a message up.
func NextState(from nixie.State, on Event) (nixie.State, bool) {
	for _, m := range messageMoves {
		if m.From == from && m.On == on {
			return m.To, true
		}
	}
	return "", false
}

// LetterMove is one row of the table of what can happen to a letter.
type LetterMove struct {
	From nixie.Status // empty: it did not exist
	On   Event
	To   nixie.Status // empty: it does not exist any more
}

// LetterMoves is the table of all moves of a letter. One that is adopted in
// review or quarantined makes that move at once, so that its audit leads there.
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
	{nixie.StatusResolved, OnDieAgain, nixie.StatusOpen}, // where a foreign broker had it
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

// NextStatus looks a move of a letter up.
func NextStatus(from nixie.Status, on Event) (nixie.Status, bool) {
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

// Comeback is the way of a letter whose message died again with a foreign broker: what
// has to be made up for first, the death, and where that leads. None: it cannot be,
// because its message is on its way here, or because no letter can be taken in as that.
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
