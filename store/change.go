package store

import (
	"time"

	"github.com/nixie-go/nixie"
)

// Change tells [Queue.Amend] what to do to messages.
type Change struct {
	Verb   ChangeVerb
	Actor  string // required
	Reason string // for the audit; required for Hold

	At     time.Time      // of Reschedule: the new NotBefore; the past means now
	Queue  string         // of Move: the destination, which need not exist
	Hold   *nixie.Failure // of Hold: entry for the history; the store adds generation, attempt and decision
	Burial *nixie.Burial  // of Hold: for the letter, with the status review
	Free   bool           // of Hold: followers in the stream do not wait
}

// ChangeVerb is the action of a [Change].
type ChangeVerb string

// The changes. All but Cancel need a message that is queued.
const (
	Cancel        ChangeVerb = "cancel"         // end it, also if it is leased: the lease is void
	Hold          ChangeVerb = "hold"           // bury it for review
	RetryNow      ChangeVerb = "retry-now"      // make it due now
	ResetAttempts ChangeVerb = "reset-attempts" // set attempts, deliveries and crashes to 0
	Reschedule    ChangeVerb = "reschedule"     // make it due at At
	Move          ChangeVerb = "move"           // move it to the end of Queue, whose settings apply from then on
	MayPass       ChangeVerb = "may-pass"       // mark it; in a strict stream only
)

// ChangeVerbs lists every change once.
func ChangeVerbs() []ChangeVerb {
	return []ChangeVerb{Cancel, Hold, RetryNow, ResetAttempts, Reschedule, Move, MayPass}
}

// Check says what is wrong with the change.
func (c *Change) Check() error {
	if err := checkBy(c.Actor, c.Reason); err != nil {
		return err
	}
	switch c.Verb {
	case Cancel, RetryNow, ResetAttempts, MayPass:
	case Reschedule:
		if c.At.IsZero() {
			return nixie.Errorf(nixie.CodeInvalid, "time is missing: say when the message is due")
		}
	case Move:
		if c.Queue == "" {
			return nixie.Errorf(nixie.CodeInvalid, "queue is empty: say where the message goes")
		}
		return nixie.CheckName("queue", c.Queue)
	case Hold:
		switch {
		case c.Reason == "":
			return nixie.Errorf(nixie.CodeInvalid, "reason is empty: say why the message is held")
		case c.Burial == nil || c.Hold == nil:
			return nixie.Errorf(nixie.CodeInvalid, "hold has no failure or no burial: say what the letter shows")
		}
	default:
		return nixie.Errorf(nixie.CodeInvalid, "change %q is not one of %v", c.Verb, ChangeVerbs())
	}
	return nil
}

// Settlement returns the settlement that a Hold applies.
func (c *Change) Settlement() *nixie.Settlement {
	return &nixie.Settlement{Verb: nixie.Hold, Failure: c.Hold, Burial: c.Burial, Note: By(c.Actor, c.Reason)}
}

// Event returns the event of the audit entry.
func (c *Change) Event() Event {
	if c.Verb == Cancel {
		return OnCancel
	}
	return OnAmend
}

// Note returns the reason of the audit entry: the verb, unless the event says it, and the actor's
// reason.
func (c *Change) Note() string {
	note := string(c.Verb)
	switch c.Verb {
	case Cancel:
		return c.Reason
	case Reschedule:
		note += " to " + c.At.UTC().Format(time.RFC3339)
	case Move:
		note += " to " + c.Queue
	}
	if c.Reason != "" {
		note += ": " + c.Reason
	}
	return note
}
