package store

import "github.com/nixie-go/nixie"

// Event names a change of a message or a letter, as the audit records it.
type Event string

// The events. An event that ends a lease has the name of its verb.
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
	OnExceed    Event = "exceed"    // a message died after its last redrive that is allowed
	OnConfirm   Event = "confirm"   // a foreign broker took the message
	OnRequalify Event = "requalify" // an operator opened a quarantined letter again
	OnRestore   Event = "restore"   // an operator took a discard back
	OnConfigure Event = "configure" // settings of a queue changed; in the audit only
	OnAmend     Event = "amend"     // a message changed and goes on; in the audit only
	OnUnblock   Event = "unblock"   // a stream was unblocked; in the audit only
	OnGone      Event = "gone"      // a redriven message was canceled or discarded
	OnAdopt     Event = "adopt"     // a letter from elsewhere was adopted
	OnNote      Event = "note"      // an operator wrote a note on a letter; its status stays
	OnPurge     Event = "purge"     // a letter was removed with its message; of a queue: its queued messages were canceled
	OnPrune     Event = "prune"     // retention removed the oldest entries of an audit
	OnTry       Event = "try"       // an operator tried a command on copies of letters; in the audit only
	OnWrite     Event = "write"     // an operator wrote documents; in the audit only
	OnRegroup   Event = "regroup"   // an operator moved letters of earlier builds to today's groups; in the audit only
)

// Events lists every event once.
func Events() []Event {
	return []Event{
		OnEnqueue, OnClaim, OnComplete, OnRetry, OnRelease, OnDiscard, OnBury, OnAbandon, OnCancel, OnRedrive, OnHold, OnUnhold,
		OnSuccess, OnDieAgain, OnExceed, OnConfirm, OnRequalify, OnRestore, OnConfigure, OnAmend, OnUnblock, OnPurge, OnGone, OnAdopt,
		OnNote, OnPrune, OnTry, OnWrite, OnRegroup,
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
