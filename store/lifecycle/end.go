package lifecycle

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// System is the actor of what nobody did by hand: verdicts, replacements, prunes.
const System = "nixie"

// End is how a message ends or dies, as its letter and the audit say it.
type End struct {
	Event  store.Event // of the letter
	Actor  string      // of the audit
	Reason string      // of the audit
	Note   string      // of the letter
	Frees  bool        // others of its stream do not wait for it, dead as it is
}

// Success is the end of a message that succeeded.
func Success() End { return End{Event: store.OnSuccess, Actor: System} }

// Settled is the end that a settlement stands for that completes, discards or buries a
// message, and nothing for one that lets it go on; redriven is that it has a letter from an
// earlier life.
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

// Changed is the end that an operator's change stands for that cancels or holds a message.
func Changed(c *store.Change, redriven bool) End {
	e := End{Event: store.OnGone, Actor: c.Actor, Reason: c.Reason, Note: store.By(c.Actor, c.Reason)}
	if c.Verb == store.Hold {
		e.Event, e.Frees = death(c.Settlement(), redriven), c.Free
	}
	return e
}

// death is the move of the table of letters that a burial stands for. Hold and the
// burial's word review send the letter to review; only one that was redriven can be
// quarantined.
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
