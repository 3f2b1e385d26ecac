// Package lifecycle decides how messages and letters change, which events a letter allows, and what
// the audit records. Its functions are pure. A store gives them facts that it has read and locked,
// and writes the changes. The office gives them the letters that it has listed, so a preview and
// the run after it follow one rule.
package lifecycle

import (
	"fmt"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Facts are the facts about a letter from which [Refuse] decides.
type Facts struct {
	ID          nixie.ID
	Status      nixie.Status
	Dead        bool // the message is dead
	Redrivable  bool
	NeedsReview bool
	Redrives    int
	Notes       int // number of notes
	Revision    int64
	Planned     int64 // revision at the dry run; 0: any revision will do
	Cause       nixie.Cause
	Expired     bool   // the message is past its expiry; see [Past]
	BodyAt      string // where the body lies that the message does not have; see [nixie.Origin]
	TakenKey    string // dedupe key that the letter needs, see [NeedsKey], and another message holds
}

// Of returns the facts of a listed letter at a moment. The caller sets Planned and TakenKey.
func Of(l *nixie.Letter, now time.Time) Facts {
	f := Facts{
		ID: l.ID, Status: l.Status, Dead: l.Message.State == nixie.Dead, Redrivable: l.Redrivable, NeedsReview: l.NeedsReview,
		Redrives: l.Message.Redrives, Notes: len(l.Notes), Cause: l.Cause, Expired: Past(Nanos(l.Message.ExpiresAt), Nanos(now)),
	}
	if o := l.Message.Origin; o != nil {
		f.BodyAt = o.BodyAt
	}
	return f
}

// Past reports whether the moment at which a message expires has come.
func Past(expires, now int64) bool { return expires != 0 && expires <= now }

// Prolonged returns the expiry of a message after a redrive, and the reason of the audit entry for
// a new one; see [store.Resolution.ExpiresIn].
func Prolonged(expires int64, r *store.Resolution, now int64) (int64, string) {
	if r.ExpiresIn == 0 || expires == 0 {
		return expires, ""
	}
	expires = now + int64(r.ExpiresIn)
	return expires, "expires at " + Moment(expires).UTC().Format(time.RFC3339Nano)
}

// NeedsKey reports whether an event makes the message of a letter take its dedupe key: a redrive
// does, unless a claim has freed the key for good, and a restore in a scope in which dead messages
// hold their keys.
func NeedsKey(on store.Event, scope nixie.DedupeScope) bool {
	return on == store.OnRedrive && !FreesClaimed(scope) || on == store.OnRestore && KeepsDead(scope)
}

// FreesClaimed reports whether the first claim of a message frees its dedupe key in a scope. The
// message never takes it again.
func FreesClaimed(scope nixie.DedupeScope) bool { return scope == nixie.DedupeQueued }

// TakesKey reports whether a message on its way takes its dedupe key when it comes to a queue of a
// scope. The number is that of its newest lease, 0 before the first claim.
func TakesKey(scope nixie.DedupeScope, number int64) bool { return !FreesClaimed(scope) || number == 0 }

// KeepsDead reports whether dead messages hold their keys in a scope.
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

// Why returns the code and the text of [Refuse] without the letter's name, or "" if the resolution
// can be applied.
func Why(l Facts, r *store.Resolution) (nixie.Code, string) {
	switch {
	case l.Planned > 0 && l.Planned != l.Revision:
		return nixie.CodeConflict, fmt.Sprintf("has changed since the dry run: it was at revision %d and is at %d",
			l.Planned, l.Revision)
	case r.Edit != nil && r.Edit.Revision != l.Revision:
		return nixie.CodeConflict, fmt.Sprintf(
			"has changed since it was read to be edited: it was at revision %d and is at %d; edit it again", r.Edit.Revision, l.Revision)
	case !May(l.Status, r.Event):
		return nixie.CodeConflict, fmt.Sprintf("is %s: %s is not possible", l.Status, r.Event)
	case r.Event == store.OnRestore && !l.Dead:
		return nixie.CodeConflict, "has a message that is not dead: there is nothing to restore"
	case r.Event == store.OnNote && l.Notes >= nixie.MaxNotes:
		return nixie.CodeLimit, fmt.Sprintf("has %d notes, the limit: keep long stories elsewhere and note where", l.Notes)
	case r.Event == store.OnPurge && !r.Purges(l.Status):
		return nixie.CodeConflict, fmt.Sprintf("is %s: the purge is not for such letters", l.Status)
	case r.Event == store.OnRedrive && l.BodyAt != "":
		return nixie.CodeConflict, "has no body, which lay at " + l.BodyAt + " and could not be fetched: " +
			"a redrive from the topic of its letters looks once more, else discard it"
	case r.Event == store.OnRedrive && l.Expired && r.ExpiresIn == 0:
		return nixie.CodeConflict, "has expired: redrive it with a new expiry (--expires-in)"
	case r.Event == store.OnRedrive && !r.Force && l.NeedsReview:
		return nixie.CodeConflict, "needs review: look at it, then use force"
	case r.Event == store.OnRedrive && !r.Force && !l.Redrivable && (l.Cause != nixie.CauseExpired || r.ExpiresIn == 0):
		return nixie.CodeConflict, "is not redrivable: fix its cause, then use force"
	case r.Event == store.OnRedrive && r.MaxRedrives > 0 && l.Redrives >= r.MaxRedrives:
		return nixie.CodeConflict, fmt.Sprintf("has been redriven %d times, the cap is %d: fix the cause, then raise the cap",
			l.Redrives, r.MaxRedrives)
	case l.TakenKey != "":
		return nixie.CodeConflict, fmt.Sprintf("has dedupe key %q, which another message holds: wait for that, or discard the letter",
			l.TakenKey)
	}
	return "", ""
}

// May reports whether the status of a letter allows an event of an operator. A letter that is
// redriving cannot be held by an operator; only the next death of its message can do that.
func May(status nixie.Status, on store.Event) bool {
	if on == store.OnNote {
		return true
	}
	_, ok := store.NextStatus(status, on)
	return ok && (on != store.OnHold || status != nixie.StatusRedriving)
}
