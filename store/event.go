package store

import "github.com/nixie-go/nixie"

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

// Events lists every event once, as the audit may name them.
func Events() []Event {
	return []Event{
		OnEnqueue, OnClaim, OnComplete, OnRetry, OnRelease, OnDiscard, OnBury, OnAbandon, OnCancel, OnRedrive, OnHold, OnUnhold,
		OnSuccess, OnDieAgain, OnExceed, OnConfirm, OnRequalify, OnRestore, OnConfigure, OnAmend, OnUnblock, OnPurge, OnGone, OnAdopt, OnNote, OnPrune,
	}
}

// EventOf returns the event that a verb stands for, empty if v is not one of the verbs.
func EventOf(v nixie.Verb) Event {
	switch v {
	case nixie.Complete:
		return OnComplete
	case nixie.Retry:
		return OnRetry
	case nixie.Release:
		return OnRelease
	case nixie.Discard:
		return OnDiscard
	case nixie.Bury, nixie.Hold, nixie.Halt:
		return OnBury
	}
	return ""
}
