package store

import "github.com/nixie-go/nixie"

// CheckCall refuses a call of more than [nixie.MaxBatch] parts.
func CheckCall(parts int) error {
	if parts > nixie.MaxBatch {
		return nixie.Errorf(nixie.CodeLimit, "call has %d parts, the limit is %d: split it", parts, nixie.MaxBatch)
	}
	return nil
}

// CheckSettlement refuses what could not be applied whole, whatever the store knows
// of the message.
func CheckSettlement(st *nixie.Settlement) error {
	switch {
	case st.Delivery == nil:
		return nixie.Errorf(nixie.CodeInvalid, "settlement has no delivery: give the one that was received")
	case st.Delay < 0 || st.Delay > nixie.MaxDelay:
		return nixie.Errorf(nixie.CodeInvalid, "delay is %s: give one from 0 to %s", st.Delay, nixie.MaxDelay)
	}
	switch st.Verb.Event() {
	case "":
		return nixie.Errorf(nixie.CodeInvalid, "verb %q is not one of complete, retry, release, discard, bury, hold, halt", st.Verb)
	case nixie.OnBury:
		if st.Burial == nil {
			return nixie.Errorf(nixie.CodeInvalid, "verb %s has no burial: say cause, status and group of the letter", st.Verb)
		}
	}
	return nil
}

// Check refuses a resolution that names nobody, lacks a reason that its event needs,
// or has an event that [CheckEvent] refuses.
func (r *Resolution) Check() error {
	switch {
	case r.Actor == "":
		return nixie.Errorf(nixie.CodeInvalid, "actor is empty: say who resolves letter %s", r.Letter)
	case r.Reason == "" && r.NeedsReason():
		return nixie.Errorf(nixie.CodeInvalid, "reason is empty: say why, %s is recorded with its reason", r.Event)
	case len(r.Reason) > nixie.MaxReason:
		return nixie.Errorf(nixie.CodeLimit, "reason has %d bytes, the limit is %d: shorten it", len(r.Reason), nixie.MaxReason)
	}
	if r.Edit != nil {
		if r.Event != nixie.OnRedrive {
			return nixie.Errorf(nixie.CodeInvalid, "letter %s has an edit and is to be moved by %s: edit what is redriven", r.Letter, r.Event)
		}
		if err := r.Edit.Check(); err != nil {
			return nixie.Errorf(nixie.CodeOf(err), "letter %s: %w", r.Letter, err)
		}
	}
	return CheckEvent(r.Event)
}

// CheckEvent refuses what nobody can do to a letter by hand.
func CheckEvent(e nixie.Event) error {
	switch e {
	case nixie.OnRedrive, nixie.OnDiscard, nixie.OnHold, nixie.OnUnhold, nixie.OnRequalify, nixie.OnRestore, nixie.OnConfirm, nixie.OnNote, nixie.OnPurge:
		return nil
	}
	return nixie.Errorf(nixie.CodeInvalid, "event %q: use redrive, discard, hold, unhold, requalify, restore, confirm, note or purge", e)
}
