// Package lifecycle decides what becomes of a message, what may happen to a letter, and what
// the audit says of it. Its functions are pure: a store gives them facts that it has read and
// locked, and writes what they changed; the office gives them what it has listed, so a
// preview and the run after it follow one rule.
package lifecycle

import (
	"fmt"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Facts are what the rule knows of a letter.
type Facts struct {
	ID          nixie.ID
	Status      nixie.Status
	Dead        bool // its message is
	Redrivable  bool
	NeedsReview bool
	Redrives    int
	Notes       int // how many it has
	Revision    int64
	Planned     int64  // its revision when a dry run chose it; 0: it was not, or any will do
	TakenKey    string // its dedupe key, if it needs that, see [NeedsKey], and another message holds it
}

// Of is what the rule knows of a letter that was listed; its key is up to the caller.
func Of(l *nixie.Letter) Facts {
	return Facts{
		ID: l.ID, Status: l.Status, Dead: l.Message.State == nixie.Dead, Redrivable: l.Redrivable, NeedsReview: l.NeedsReview,
		Redrives: l.Message.Redrives, Notes: len(l.Notes),
	}
}

// NeedsKey reports whether a letter needs the dedupe key of its message for an event:
// a redriven message takes it, and one that is restored where the dead hold theirs.
func NeedsKey(on store.Event, scope nixie.DedupeScope) bool {
	return on == store.OnRedrive || on == store.OnRestore && KeepsDead(scope)
}

// KeepsDead reports whether a scope lets dead messages hold their keys.
func KeepsDead(scope nixie.DedupeScope) bool {
	return scope == nixie.DedupeUnresolved || scope == nixie.DedupeEver
}

// Refuse says why a resolution cannot be applied to a letter, nil if it can.
func Refuse(l Facts, r *store.Resolution) error {
	if r.Skip != "" {
		return nixie.Errorf(nixie.CodeConflict, "%s", r.Skip)
	}
	code, why := Why(l, r)
	if why == "" {
		return nil
	}
	return nixie.Errorf(code, "letter %s %s", l.ID, why)
}

// Why is the reason of [Refuse] as what follows the name of the letter, "" if there is
// none, and its code.
func Why(l Facts, r *store.Resolution) (nixie.Code, string) {
	switch {
	case l.Planned > 0 && l.Planned != l.Revision:
		return nixie.CodeConflict, fmt.Sprintf("has changed since the dry run: it was at revision %d and is at %d", l.Planned, l.Revision)
	case r.Edit != nil && r.Edit.Revision != l.Revision:
		return nixie.CodeConflict, fmt.Sprintf("has changed since it was read to be edited: it was at revision %d and is at %d; edit it again", r.Edit.Revision, l.Revision)
	case !May(l.Status, r.Event):
		return nixie.CodeConflict, fmt.Sprintf("is %s: %s is not possible", l.Status, r.Event)
	case r.Event == store.OnRestore && !l.Dead:
		return nixie.CodeConflict, "has a message that is not dead: there is nothing to restore"
	case r.Event == store.OnNote && l.Notes >= nixie.MaxNotes:
		return nixie.CodeLimit, fmt.Sprintf("has %d notes, the limit: keep long stories elsewhere and note where", l.Notes)
	case r.Event == store.OnPurge && !r.Purges(l.Status):
		return nixie.CodeConflict, fmt.Sprintf("is %s: the purge is not for such letters", l.Status)
	case r.Event == store.OnRedrive && !r.Force && l.NeedsReview:
		return nixie.CodeConflict, "needs review: look at it, then use force"
	case r.Event == store.OnRedrive && !r.Force && !l.Redrivable:
		return nixie.CodeConflict, "is not redrivable: mend its cause, then use force"
	case r.Event == store.OnRedrive && r.MaxRedrives > 0 && l.Redrives >= r.MaxRedrives:
		return nixie.CodeConflict, fmt.Sprintf("has been redriven %d times, the cap is %d: mend the cause, then raise the cap", l.Redrives, r.MaxRedrives)
	case l.TakenKey != "":
		return nixie.CodeConflict, fmt.Sprintf("has dedupe key %q, which another message holds: wait for that, or discard the letter", l.TakenKey)
	}
	return "", ""
}

// May reports whether the status of a letter alone allows an event of an operator. A letter
// whose message is on its way is put on hold by its next death only.
func May(status nixie.Status, on store.Event) bool {
	if on == store.OnNote {
		return true
	}
	_, ok := store.NextStatus(status, on)
	return ok && (on != store.OnHold || status != nixie.StatusRedriving)
}
