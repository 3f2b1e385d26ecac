package store

import (
	"time"

	"github.com/nixie-go/nixie"
)

// Change is what [Queue.Amend] does to a message, by whom and why.
type Change struct {
	Verb   ChangeVerb
	Actor  string // required
	Reason string // for the audit; required for Hold

	At     time.Time      // of Reschedule: not handed out before; the past is now
	Queue  string         // of Move: where to; it need not exist
	Hold   *nixie.Failure // of Hold: what the history says of it; the store adds life, attempt and decision
	Burial *nixie.Burial  // of Hold: what becomes of the letter; its status is review
	Free   bool           // of Hold: followers in its stream do not wait for it
}

// ChangeVerb is what is done to a message.
type ChangeVerb string

// The changes. All but Cancel need a message that is queued.
const (
	Cancel        ChangeVerb = "cancel"         // also leased: it ends; a lease is void
	Hold          ChangeVerb = "hold"           // to the office, for review
	RetryNow      ChangeVerb = "retry-now"      // due now
	ResetAttempts ChangeVerb = "reset-attempts" // as in a new life: attempts, deliveries and crashes are 0
	Reschedule    ChangeVerb = "reschedule"     // due at At
	Move          ChangeVerb = "move"           // to the end of Queue, whose settings hold for it from then on
	MayPass       ChangeVerb = "may-pass"       // mark it; of a strict stream only
)

// ChangeVerbs lists every change once.
func ChangeVerbs() []ChangeVerb {
	return []ChangeVerb{Cancel, Hold, RetryNow, ResetAttempts, Reschedule, Move, MayPass}
}

// Check says what is wrong with a change.
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

// Settlement is the burial that a Hold stands for.
func (c *Change) Settlement() *nixie.Settlement {
	return &nixie.Settlement{Verb: nixie.Hold, Failure: c.Hold, Burial: c.Burial, Note: By(c.Actor, c.Reason)}
}

// Event is what the audit says of the change.
func (c *Change) Event() Event {
	if c.Verb == Cancel {
		return OnCancel
	}
	return OnAmend
}

// Note is what the audit says was the reason: the verb, where the event does
// not tell it, and what the caller said.
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
