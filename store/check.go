package store

import (
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/check"
)

// CheckCall refuses a call of more than [nixie.MaxBatch] parts.
func CheckCall(parts int) error {
	if parts > nixie.MaxBatch {
		return nixie.Errorf(nixie.CodeLimit, "call has %d parts, the limit is %d: split it", parts, nixie.MaxBatch)
	}
	return nil
}

// checkBytes refuses a call whose bodies are more than [nixie.MaxBatchBytes] together.
func checkBytes(what string, size int) error {
	if size > nixie.MaxBatchBytes {
		return nixie.Errorf(nixie.CodeLimit, "%s of the call have %d bytes, the limit is %d: split it", what, size, nixie.MaxBatchBytes)
	}
	return nil
}

// CheckMessages refuses messages that cannot be enqueued in one call, and returns the size of their
// bodies.
func CheckMessages(messages []nixie.Message) (size int, err error) {
	if err := CheckCall(len(messages)); err != nil {
		return 0, err
	}
	for i := range messages {
		if err := messages[i].Check(); err != nil {
			return 0, inBatch(i, len(messages), err)
		}
		size += len(messages[i].Body)
	}
	return size, checkBytes("bodies", size)
}

// inBatch adds the number of the message to an error about one of several.
func inBatch(i, n int, err error) error {
	var ours *nixie.Error
	if n == 1 || !errors.As(err, &ours) {
		return err
	}
	return nixie.Errorf(ours.Code, "message %d of %d: %w", i+1, n, err)
}

// CheckAdoption refuses a call of Adopt that is wrong as a whole. It returns the size of the
// bodies, and the errors of letters that are refused alone.
func CheckAdoption(letters []nixie.Letter, actor, reason string) (size int, refused []error, err error) {
	if err := CheckCall(len(letters)); err != nil {
		return 0, nil, err
	}
	if err := checkBy(actor, reason); err != nil {
		return 0, nil, err
	}
	refused = make([]error, len(letters))
	for i := range letters {
		size += len(letters[i].Message.Body)
		refused[i] = check.Letter(&letters[i])
	}
	return size, refused, checkBytes("bodies", size)
}

// CheckWant refuses an invalid claim, and brings Max into its bounds.
func CheckWant(queue string, want *nixie.Want) error {
	want.Max = min(max(want.Max, 1), nixie.MaxBatch)
	if want.Lease != 0 {
		if err := CheckLease(want.Lease); err != nil {
			return err
		}
	}
	return nixie.CheckName("queue", queue)
}

// CheckLease refuses a lease that is too short or too long.
func CheckLease(lease time.Duration) error {
	if lease < nixie.MinLease || lease > nixie.MaxLease {
		return nixie.Errorf(nixie.CodeInvalid, "lease is %s: give one from %s to %s", lease, nixie.MinLease, nixie.MaxLease)
	}
	return nil
}

// CheckOperator refuses an action on a queue without an actor or without a queue. The reason has no
// limit here, because the store adds the changed settings to it.
func CheckOperator(queue, actor, reason string) error {
	if queue == "" {
		return nixie.Errorf(nixie.CodeInvalid, "queue is empty: name the queue")
	}
	if err := checkTexts(actor, reason); err != nil {
		return err
	}
	return nixie.CheckName("queue", queue)
}

// CheckPlan refuses an operation without an actor, with an event that [CheckEvent] refuses, or with
// a negative limit.
func CheckPlan(op *Operation, limit int) error {
	if err := checkBy(op.Actor, op.Reason); err != nil {
		return err
	}
	if limit < 0 {
		return nixie.Errorf(nixie.CodeInvalid, "operation is limited to %d letters: give 0 for all or a positive number", limit)
	}
	return CheckEvent(op.Event)
}

// checkBy refuses an actor or a reason that the audit cannot hold.
func checkBy(actor, reason string) error {
	if len(reason) > nixie.MaxReason {
		return nixie.Errorf(nixie.CodeLimit, "reason has %d bytes, the limit is %d: shorten it", len(reason), nixie.MaxReason)
	}
	return checkTexts(actor, reason)
}

func checkTexts(actor, reason string) error {
	if actor == "" {
		return nixie.Errorf(nixie.CodeInvalid, "actor is empty: say who does it")
	}
	for _, f := range [...]struct{ what, value string }{{"actor", actor}, {"reason", reason}} {
		if !utf8.ValidString(f.value) || strings.ContainsRune(f.value, 0) {
			return nixie.Errorf(nixie.CodeInvalid, "%s %q is no text: take out NUL and what is not UTF-8", f.what, f.value)
		}
	}
	return nil
}

// waives has the verb of each waiver.
var waives = map[nixie.Waiver]nixie.Verb{
	nixie.WaiveSnooze: nixie.Release, nixie.WaiveUnknown: nixie.Release, nixie.WaiveUntried: nixie.Release,
	nixie.WaiveStopping: nixie.Release, nixie.WaiveTry: nixie.Retry,
}

// CheckSettlement refuses a settlement that is wrong for any message.
func CheckSettlement(st *nixie.Settlement) error {
	switch {
	case st.Delivery == nil:
		return nixie.Errorf(nixie.CodeInvalid, "settlement has no delivery: give the one that was received")
	case st.Delay < 0 || st.Delay > nixie.MaxDelay:
		return nixie.Errorf(nixie.CodeInvalid, "delay is %s: give one from 0 to %s", st.Delay, nixie.MaxDelay)
	}
	switch EventOf(st.Verb) {
	case "":
		return nixie.Errorf(nixie.CodeInvalid, "verb %q is not one of complete, retry, release, discard, bury, hold, halt", st.Verb)
	case OnBury:
		if st.Burial == nil {
			return nixie.Errorf(nixie.CodeInvalid, "verb %s has no burial: say cause, status and group of the letter", st.Verb)
		}
	}
	if st.Waiver != nixie.NoWaiver && waives[st.Waiver] != st.Verb {
		return nixie.Errorf(nixie.CodeInvalid, "waiver %q does not go with verb %s: give a retry try or none, "+
			"a release snooze, unknown-type, untried, stopping or none", st.Waiver, st.Verb)
	}
	if st.Second != nil && EventOf(st.Verb) != OnBury {
		return nixie.Errorf(nixie.CodeInvalid,
			"verb %s has a second failure: only what is buried can have one, give the one by which the attempt failed", st.Verb)
	}
	if len(st.Then) > 0 && st.Verb == nixie.Release {
		return nixie.Errorf(nixie.CodeInvalid, "%d messages follow a release: only an outcome is followed, leave them out", len(st.Then))
	}
	return nixie.CheckThen(st.Then)
}

// CheckSettlements refuses a call that is wrong as a whole. It returns the bytes of the bodies that
// follow.
func CheckSettlements(settlements []nixie.Settlement) (size int, err error) {
	for i := range settlements {
		for j := range settlements[i].Then {
			size += len(settlements[i].Then[j].Body)
		}
	}
	if err := checkBytes("messages that follow the settlements", size); err != nil {
		return size, err
	}
	return size, CheckCall(len(settlements))
}

// Check refuses a resolution without an actor, without a reason that its event needs, or with an
// event that [CheckEvent] refuses.
func (r *Resolution) Check() error {
	if err := checkBy(r.Actor, r.Reason); err != nil {
		return err
	}
	if r.Reason == "" && r.NeedsReason() {
		return nixie.Errorf(nixie.CodeInvalid, "reason is empty: say why, %s is recorded with its reason", r.Event)
	}
	if r.ExpiresIn < 0 || r.ExpiresIn > nixie.MaxDelay || r.ExpiresIn > 0 && r.Event != OnRedrive {
		return nixie.Errorf(nixie.CodeInvalid, "new expiry of letter %s is %s, by %s: give a redrive one up to %s, or 0 for none", r.Letter,
			r.ExpiresIn, r.Event, nixie.MaxDelay)
	}
	if r.Edit != nil {
		if r.Event != OnRedrive {
			return nixie.Errorf(nixie.CodeInvalid,
				"letter %s has an edit and is to be moved by %s: edit what is redriven", r.Letter, r.Event)
		}
		if err := r.Edit.Check(); err != nil {
			return nixie.Errorf(nixie.CodeOf(err), "letter %s: %w", r.Letter, err)
		}
	}
	return CheckEvent(r.Event)
}

// CheckEvent refuses events that no operator applies to a letter.
func CheckEvent(e Event) error {
	switch e {
	case OnRedrive, OnDiscard, OnHold, OnUnhold, OnRequalify, OnRestore, OnConfirm, OnNote, OnPurge:
		return nil
	}
	return nixie.Errorf(nixie.CodeInvalid, "event %q: use redrive, discard, hold, unhold, requalify, restore, confirm, note or purge", e)
}
