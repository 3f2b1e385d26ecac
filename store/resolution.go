package store

import (
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// Resolution applies an event to a letter. An operator, or an engine for one, gives actor and
// reason.
//
// OnRedrive queues the message again, due now: Generation + 1, Redrives + 1, Attempts, Deliveries
// and Crashes 0; history, steps and first times stay. The message takes its dedupe key again if the
// scope released it; a key that another message holds is a CodeConflict. A message that was
// redriven [Resolution.MaxRedrives] times is refused with CodeConflict.
//
// With an [Edit] the message is queued with another body and other headers, in the same commit. The
// store keeps the first body in [nixie.Letter.Original], and an audit entry of [OnAmend] has the
// hashes before and after.
//
// OnConfirm resolves the letter because a foreign broker took the message, and cancels the message
// here. If the letter was not redriving, it counts as a redrive too: Generation, Redrives and the
// counts change as for OnRedrive. Force, MaxRedrives and a dedupe key that another message holds do
// not matter then.
//
// OnNote appends the reason to the notes of the letter, in any status. A letter with
// [nixie.MaxNotes] notes refuses more with CodeLimit.
//
// OnPurge removes the letter for good, with message, history, attachments and dedupe key. Its audit
// and a number in [QueueInfo] stay. Pending items of operations on the letter are skipped. An
// unresolved letter is purged only if Statuses names its status, and never while it is redriving.
type Resolution struct {
	Letter      nixie.ID
	Event       Event    // OnRedrive, OnDiscard, OnHold, OnUnhold, OnRequalify, OnRestore, OnConfirm, OnNote or OnPurge
	Actor       string   // required
	Reason      string   // required for OnDiscard, OnRequalify, OnNote and OnPurge; at most [nixie.MaxReason] bytes
	Operation   nixie.ID // operation of which this is an item; the item is marked in the same transaction
	Group       string   // fingerprint by which the outcome of the item tells the same failure; empty: as planned
	Force       bool     // redrive a letter that is not redrivable or needs review, too
	MaxRedrives int      // for OnRedrive; 0 is no cap

	// ExpiresIn is for OnRedrive: a message that has an ExpiresAt gets a new one, so long after the
	// redrive. Without it a message past its ExpiresAt is refused with CodeConflict, also with
	// Force. With it a letter that died of that needs no Force. 0 is none.
	ExpiresIn time.Duration

	Reviewed bool // for OnUnhold: a person allows redrives of the letter without force

	Edit *Edit // for OnRedrive: new body and headers; nil leaves them

	Statuses []nixie.Status // for OnPurge: other statuses are a CodeConflict; none: resolved and discarded letters

	// Skip leaves the letter as it is, in any status: the item of the operation is skipped, and the
	// answer is a CodeConflict with this text.
	Skip string
}

// Reviewed replaces the rule of policy in a letter that a person has reviewed.
const Reviewed = "reviewed"

// NeedsReason reports whether the event needs a reason.
func (r *Resolution) NeedsReason() bool {
	switch r.Event {
	case OnDiscard, OnRequalify, OnNote, OnPurge:
		return true
	}
	return false
}

// Note returns the note that the letter has afterwards: a discard and a hold leave one.
func (r *Resolution) Note() string {
	if r.Event == OnDiscard || r.Event == OnHold {
		return By(r.Actor, r.Reason)
	}
	return ""
}

// By makes a note from an operator's action: "actor: reason", or the actor alone.
func By(actor, reason string) string {
	if reason == "" {
		return actor
	}
	return actor + ": " + reason
}

// Purges reports whether the resolution purges letters of a status.
func (r *Resolution) Purges(status nixie.Status) bool {
	if len(r.Statuses) == 0 {
		return !status.Unresolved()
	}
	return slices.Contains(r.Statuses, status)
}

// Edit gives a message a new body and new headers when it is redriven. An edit without a difference
// is not recorded.
type Edit struct {
	Body    []byte         // at most [nixie.MaxBody] bytes
	Headers []nixie.Header // all of them; at most [nixie.MaxHeaders] bytes

	// Revision is the revision of the letter that was edited. If the letter has another by now, the
	// edit is a CodeConflict: another operator may have edited it too.
	Revision int64
}

// Check says what is wrong with the edit. It has the limits of a message.
func (e *Edit) Check() error {
	edited := nixie.Message{Queue: "any", Body: e.Body, Headers: e.Headers}
	if err := edited.Check(); err != nil {
		return nixie.Errorf(nixie.CodeOf(err), "edited %w", err)
	}
	return nil
}

// CheckResolutions refuses a call that is too large.
func CheckResolutions(resolutions []Resolution) error {
	size := 0
	for i := range resolutions {
		if e := resolutions[i].Edit; e != nil {
			size += len(e.Body)
		}
	}
	if err := checkBytes("edited bodies", size); err != nil {
		return err
	}
	return CheckCall(len(resolutions))
}
