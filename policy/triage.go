package policy

import (
	"slices"

	"github.com/nixie-go/nixie"
)

// Triage holds the defaults of a reason. Class is for a failure without a class; the other fields
// are for the letter of a message that died of it.
type Triage struct {
	Reason      nixie.Reason `json:"reason"`
	Class       nixie.Class  `json:"class"`
	Redrivable  bool         `json:"redrivable"`   // the same bytes may succeed once the cause is gone
	NeedsReview bool         `json:"needs_review"` // a person has to look first
}

// Triages returns the table of all reasons in the order of [nixie.Reasons].
func Triages() []Triage { return slices.Clone(triages) }

var triages = []Triage{
	{nixie.ReasonUnknown, nixie.ClassUnknown, true, false},
	{nixie.ReasonTransportUnavailable, nixie.ClassTransient, true, false},
	{nixie.ReasonHandler, nixie.ClassUnknown, true, false},
	{nixie.ReasonValidation, nixie.ClassPermanent, false, true},
	{nixie.ReasonTimeout, nixie.ClassTransient, true, false},
	{nixie.ReasonSerialization, nixie.ClassPermanent, false, true},
	{nixie.ReasonDependency, nixie.ClassTransient, true, false},
	{nixie.ReasonPoison, nixie.ClassPermanent, false, true},
	{nixie.ReasonCommandFailed, nixie.ClassUnknown, true, false},
	{nixie.ReasonWorktree, nixie.ClassTransient, true, false},
	{nixie.ReasonMergeConflict, nixie.ClassTransient, true, false},
	{nixie.ReasonNoCommit, nixie.ClassPermanent, true, true},
	{nixie.ReasonResource, nixie.ClassTransient, true, false},
	{nixie.ReasonThrottled, nixie.ClassTransient, true, false},
	{nixie.ReasonAuth, nixie.ClassPermanent, true, true},
	{nixie.ReasonPolicy, nixie.ClassPermanent, false, true},
	{nixie.ReasonLeaseExpired, nixie.ClassTransient, true, false},
	{nixie.ReasonPanic, nixie.ClassUnknown, true, false},
	{nixie.ReasonMaxAge, nixie.ClassPermanent, false, false},
	{nixie.ReasonCanceled, nixie.ClassTransient, true, false},
	{nixie.ReasonUnknownType, nixie.ClassPermanent, true, false},
}

// triageOf looks up a reason; one that is not in the table counts as unknown.
func triageOf(r nixie.Reason) Triage {
	i := slices.IndexFunc(triages, func(t Triage) bool { return t.Reason == r })
	return triages[max(i, 0)]
}

func knownReason(r nixie.Reason) bool { return triageOf(r).Reason == r }

func knownClass(c nixie.Class) bool {
	return c == nixie.ClassTransient || c == nixie.ClassPermanent || c == nixie.ClassUnknown
}

// triage decides whether a letter may be redriven and whether a person has to review it, and names
// the rule that decided. The cause of death outweighs the reason of the last failure.
func triage(verb nixie.Verb, cause nixie.Cause, r nixie.Reason) (redrivable, review bool, rule string) {
	byReason := triageOf(r)
	switch {
	case cause == nixie.CausePoison:
		return false, true, "cause:poison"
	case cause == nixie.CauseExpired:
		return false, false, "cause:expired" // a redrive needs a new expiry
	case verb == nixie.Hold:
		return byReason.Redrivable, true, "verb:hold"
	}
	return byReason.Redrivable, byReason.NeedsReview, "reason:" + string(byReason.Reason)
}
