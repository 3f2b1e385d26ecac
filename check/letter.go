// Package check says what is wrong with a letter that comes from elsewhere: from a file, from a
// broker or from another store. The errors name field, limit and fix.
package check

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// Bounds of a letter that comes from elsewhere.
const (
	MaxCount = 1<<31 - 1 // attempts, deliveries and other numbers of a message
	maxNote  = 64 << 10  // bytes of a text that has no other limit: note, rule, step, worker …

	// Stores keep moments as nanoseconds since 1970 in 64 bits, and 0 is no moment: the last year
	// is 2261.
	secondsOf2262 = 9_214_646_400
)

// Letter says what is wrong with a letter from elsewhere that is to be adopted, by the names
// that the fields have in an export.
func Letter(l *nixie.Letter) error {
	if len(l.Damage) > 0 {
		return nixie.Errorf(nixie.CodeInvalid,
			"damage: the letter could not be read whole where it came from (%s): export it again once that is fixed, "+
				"or remove this field and what is damaged", strings.Join(l.Damage, "; "))
	}
	switch l.Status {
	case nixie.StatusOpen, nixie.StatusReview, nixie.StatusQuarantined:
	default:
		return nixie.Errorf(nixie.CodeInvalid,
			"status is %q: only letters that are open, in review or quarantined can be taken in", l.Status)
	}
	if !slices.Contains(nixie.Causes(), l.Cause) {
		return nixie.Errorf(nixie.CodeInvalid, "cause is %q: give one of %q", l.Cause, nixie.Causes())
	}
	if len(l.History) > 0 || l.Class != "" || l.Reason != "" {
		if err := checkKind(l.Class, l.Reason); err != nil {
			return err
		}
	}
	if err := cmp.Or(l.Message.Check(), checkPast(&l.Message), checkCounts(l), checkTimes(l), checkTexts(l), checkNotes(l)); err != nil {
		return err
	}
	for i := range l.History {
		if err := checkFailure(&l.History[i]); err != nil {
			return nixie.Errorf(nixie.CodeOf(err), "history[%d]: %w", i, err)
		}
	}
	return nil
}

func checkKind(class nixie.Class, reason nixie.Reason) error {
	if !slices.Contains(nixie.Classes(), class) {
		return nixie.Errorf(nixie.CodeInvalid, "class is %q: give one of %q", class, nixie.Classes())
	}
	if !slices.Contains(nixie.Reasons(), reason) {
		return nixie.Errorf(nixie.CodeInvalid, "reason is %q: give one of %q", reason, nixie.Reasons())
	}
	return nil
}

// checkPast checks the fields that a message has only after its first delivery.
func checkPast(m *nixie.Message) error {
	if m.Hash != (nixie.Hash{}) && m.Hash != nixie.HashBody(m.Body) {
		return nixie.Errorf(nixie.CodeInvalid,
			"sha256 is not that of the body: the body was changed after it was accepted; remove sha256 if that was on purpose")
	}
	if len(m.Steps) > nixie.MaxSteps {
		return nixie.Errorf(nixie.CodeLimit, "steps has %d names, the limit is %d", len(m.Steps), nixie.MaxSteps)
	}
	if o := m.Origin; o != nil {
		for _, f := range [...]struct{ what, value string }{
			{"origin.system", o.System}, {"origin.channel", o.Channel}, {"origin.message_id", o.MessageID},
			{"origin.server", o.Server}, {"origin.database", o.Database}, {"origin.prefix", o.Prefix}, {"origin.body_at", o.BodyAt},
		} {
			if err := nixie.CheckName(f.what, f.value); err != nil {
				return err
			}
		}
		if o.BodyAt != "" && len(m.Body) > 0 {
			return nixie.Errorf(nixie.CodeInvalid, "origin.body_at says that the body lies at %s, and there is one: keep one of them",
				o.BodyAt)
		}
		if n := len(o.BodyHash); n != 0 && n != len(m.Hash) {
			return nixie.Errorf(nixie.CodeInvalid, "origin.body_hash has %d bytes: give the %d of a SHA-256 sum, or none", n, len(m.Hash))
		}
		if len(o.Key) > nixie.MaxHeaders {
			return nixie.Errorf(nixie.CodeLimit, "origin.key has %d bytes, the limit is %d", len(o.Key), nixie.MaxHeaders)
		}
	}
	for _, step := range m.Steps {
		if err := checkText("steps", step); err != nil {
			return err
		}
	}
	return nil
}

func checkCounts(l *nixie.Letter) error {
	m := &l.Message
	for _, n := range [...]struct {
		what  string
		value int64
	}{
		{"attempts", int64(m.Attempts)}, {"deliveries", int64(m.Deliveries)}, {"crashes", int64(m.Crashes)},
		{"generation", int64(m.Generation)}, {"redrives", int64(m.Redrives)},
		{"revision", l.Revision}, {"history_dropped", int64(l.HistoryDropped)},
	} {
		if n.value < 0 || n.value > MaxCount {
			return nixie.Errorf(nixie.CodeInvalid, "%s is %d: give a number from 0 to %d", n.what, n.value, MaxCount)
		}
	}
	switch {
	case m.Attempts > m.Deliveries || m.Crashes > m.Deliveries:
		return nixie.Errorf(nixie.CodeInvalid,
			"attempts is %d and crashes %d of %d deliveries: neither can be more than deliveries", m.Attempts, m.Crashes, m.Deliveries)
	case max(m.Generation, 1) != m.Redrives+1:
		return nixie.Errorf(nixie.CodeInvalid, "generation is %d after %d redrives: it is redrives + 1", m.Generation, m.Redrives)
	case len(l.History) > nixie.MaxHistory:
		return nixie.Errorf(nixie.CodeLimit,
			"history has %d failures, the limit is %d: remove some after the first and add their number to history_dropped",
			len(l.History), nixie.MaxHistory)
	case len(l.History) == 0 && l.HistoryDropped > 0:
		return nixie.Errorf(nixie.CodeInvalid,
			"history_dropped is %d without a history: the first failure is never dropped", l.HistoryDropped)
	}
	return nil
}

func checkTimes(l *nixie.Letter) error {
	if l.DiedAt.IsZero() {
		return nixie.Errorf(nixie.CodeInvalid, "died_at is missing: say when it died")
	}
	m := &l.Message
	return checkMoments([]named[time.Time]{
		{"died_at", l.DiedAt}, {"first_failed_at", l.FirstFailedAt}, {"last_failed_at", l.LastFailedAt},
		{"enqueued_at", m.EnqueuedAt}, {"redriven_at", m.RedrivenAt}, {"expires_at", m.ExpiresAt},
		{"first_received_at", m.FirstReceivedAt}, {"ended_at", m.EndedAt},
	})
}

func checkTexts(l *nixie.Letter) error {
	return checkShort([]named[string]{
		{"signature", l.Signature}, {"fingerprint", l.Fingerprint}, {"rule", l.Rule}, {"note", l.Note},
	})
}

func checkNotes(l *nixie.Letter) error {
	if len(l.Notes) > nixie.MaxNotes {
		return nixie.Errorf(nixie.CodeLimit, "notes has %d entries, the limit is %d: remove some", len(l.Notes), nixie.MaxNotes)
	}
	for i := range l.Notes {
		n := &l.Notes[i]
		if len(n.Text) > nixie.MaxReason {
			return nixie.Errorf(nixie.CodeLimit, "text of a note has %d bytes, the limit is %d: shorten it", len(n.Text), nixie.MaxReason)
		}
		if err := checkShort([]named[string]{{"author of a note", n.By}, {"text of a note", n.Text}}); err != nil {
			return err
		}
		if err := checkMoments([]named[time.Time]{{"time of a note", n.At}}); err != nil {
			return err
		}
	}
	return nil
}

// named is a field with its name for an error text.
type named[T any] struct {
	what  string
	value T
}

func checkMoments(list []named[time.Time]) error {
	for _, t := range list {
		at := t.value
		if !at.IsZero() && (at.Unix() < 0 || at.Unix() >= secondsOf2262 || at.UnixNano() == 0) {
			return nixie.Errorf(nixie.CodeInvalid, "%s is %s: give a moment from 1970 to 2261", t.what, at.Format(time.RFC3339Nano))
		}
	}
	return nil
}

func checkShort(list []named[string]) error {
	for _, f := range list {
		if len(f.value) > maxNote {
			return nixie.Errorf(nixie.CodeLimit, "%s has %d bytes, the limit is %d: shorten it", f.what, len(f.value), maxNote)
		}
		if err := checkText(f.what, f.value); err != nil {
			return err
		}
	}
	return nil
}

// checkText refuses text that some stores cannot keep.
func checkText(what, text string) error {
	if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
		return nixie.Errorf(nixie.CodeInvalid, "%s: it has to be valid UTF-8 without NUL", what)
	}
	return nil
}

func checkFailure(f *nixie.Failure) error {
	if err := checkKind(f.Class, f.Reason); err != nil {
		return err
	}
	switch {
	case f.Generation < 0 || f.Generation > MaxCount || f.Attempt < 0 || f.Attempt > MaxCount:
		return nixie.Errorf(nixie.CodeInvalid,
			"generation is %d and attempt %d: give numbers from 0 to %d", f.Generation, f.Attempt, MaxCount)
	case f.Took < 0:
		return nixie.Errorf(nixie.CodeInvalid, "duration_ms is negative: give 0 or more")
	case f.FailedAt.IsZero():
		return nixie.Errorf(nixie.CodeInvalid, "failed_at is missing: say when it failed")
	case len(f.Text) > nixie.MaxFailureText:
		return nixie.Errorf(nixie.CodeLimit,
			"message has %d bytes, the limit is %d: shorten it, or attach the whole", len(f.Text), nixie.MaxFailureText)
	case len(f.Stack) > nixie.MaxStack:
		return nixie.Errorf(nixie.CodeLimit,
			"stack has %d bytes, the limit is %d: shorten it, or attach the whole", len(f.Stack), nixie.MaxStack)
	case len(f.Context) > nixie.MaxContext:
		return nixie.Errorf(nixie.CodeLimit, "context has %d lines, the limit is %d", len(f.Context), nixie.MaxContext)
	case len(f.Steps) > nixie.MaxSteps:
		return nixie.Errorf(nixie.CodeLimit, "steps has %d names, the limit is %d", len(f.Steps), nixie.MaxSteps)
	}
	if err := checkMoments([]named[time.Time]{{"started_at", f.StartedAt}, {"failed_at", f.FailedAt}, {"next_at", f.NextAt}}); err != nil {
		return err
	}
	for i := range f.Attachments {
		a := &f.Attachments[i]
		if len(a.Data) > nixie.MaxAttachment {
			return nixie.Errorf(nixie.CodeLimit,
				"attachment %q has %d bytes, the limit is %d: cut it into several of one name",
				clip(a.Name, 40), len(a.Data), nixie.MaxAttachment)
		}
		if a.Truncated < 0 {
			return nixie.Errorf(nixie.CodeInvalid, "attachment %q: truncated is %d: give 0 or more", clip(a.Name, 40), a.Truncated)
		}
		if err := checkShort([]named[string]{{"name of an attachment", a.Name}}); err != nil {
			return err
		}
	}
	texts := []named[string]{
		{"type", f.Type}, {"message", f.Text}, {"stack", f.Stack}, {"step", f.Step}, {"group", f.Group}, {"worker", f.Worker},
		{"node", f.Node}, {"log_location", f.LogLocation}, {"decision", string(f.Decision)},
	}
	for _, line := range f.Context {
		texts = append(texts, named[string]{"context", line})
	}
	for _, step := range f.Steps {
		texts = append(texts, named[string]{"steps", step})
	}
	return checkShort(texts)
}

// clip shortens s to at most n bytes for use inside an error text.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
