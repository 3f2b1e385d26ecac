package lifecycle

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// System is the actor of events without an operator.
const System = store.System

// End tells how a message ends or dies.
type End struct {
	Event  store.Event // of the letter
	Actor  string      // for the audit
	Reason string      // for the audit
	Note   string      // for the letter
	Frees  bool        // the followers in the stream do not wait for the dead message
}

// Success returns the end of a message that succeeded.
func Success() End { return End{Event: store.OnSuccess, Actor: System} }

// Settled returns the end of a message by a settlement, and the zero End for a retry or release. A
// redriven message has a letter from an earlier generation.
func Settled(st *nixie.Settlement, redriven bool) End {
	switch st.Verb {
	case nixie.Retry, nixie.Release:
		return End{}
	case nixie.Complete:
		return Success()
	case nixie.Discard:
		return End{Event: store.OnGone, Actor: System, Reason: st.Note, Note: st.Note}
	}
	return End{Event: death(st, redriven), Actor: System, Reason: st.Burial.Rule, Note: st.Note}
}

// Changed returns the end of a message by an operator who cancels or holds it.
func Changed(c *store.Change, redriven bool) End {
	e := End{Event: store.OnGone, Actor: c.Actor, Reason: c.Reason, Note: store.By(c.Actor, c.Reason)}
	if c.Verb == store.Hold {
		e.Event, e.Frees = death(c.Settlement(), redriven), c.Free
	}
	return e
}

// death returns the event of the letter for a burial. Hold, or a burial with status review, sends
// the letter to review. Only the letter of a redriven message can be quarantined.
func death(st *nixie.Settlement, redriven bool) store.Event {
	switch {
	case st.Verb == nixie.Hold || st.Burial.Status == nixie.StatusReview:
		return store.OnHold
	case !redriven:
		return store.OnBury
	case st.Burial.Status == nixie.StatusQuarantined:
		return store.OnExceed
	}
	return store.OnDieAgain
}
