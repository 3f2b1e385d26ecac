package itemfile

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

// Item is a letter in the layout of a dead letter item of MapReduce, made by
// [ItemOf].
//
// A letter that was such an item comes out as it came in, with unknown fields and values in their
// old form. Only changed fields differ: another failure is one more entry in its history. Of
// another letter it has the fields that the layout has.
type Item struct{ fields object }

// MarshalJSON writes the fields in the order of the layout, then unknown ones by
// name.
func (i Item) MarshalJSON() ([]byte, error) { return i.fields.write(itemFields[:]) }

var (
	itemFields = [...]string{"item_id", "item_data", "first_attempt", "last_attempt", "failure_count", "failure_history",
		"error_signature", "reprocess_eligible", "manual_review_required", "worktree_artifacts"}
	failureFields = [...]string{"attempt_number", "timestamp", "error_type", "error_message", "error_context", "stack_trace",
		"agent_id", "step_failed", "duration_ms", "json_log_location"}
)

func (o object) write(known []string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, name := range o.sorted(known) {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := Marshal(name)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(o[name])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// ItemOf makes an item of a letter that was read whole. With an error, the kept parts of an earlier
// item are damaged, and the item has only the letter's own fields.
func ItemOf(l *nixie.Letter) (Item, error) {
	now, err := itemOf(l)
	if err != nil || len(l.History) == 0 {
		return Item{now}, err
	}
	data := joinPieces(l.History[0].Attachments, attachmentItem)
	if data == nil {
		return Item{now}, nil
	}
	var kept itemDifferences
	if err := json.Unmarshal(data, &kept); err != nil {
		return Item{now}, damaged(attachmentItem, err)
	}
	return Item{now}, kept.apply(now, l)
}

// apply restores the kept parts that have not changed since.
func (k *itemDifferences) apply(now object, l *nixie.Letter) error {
	if len(k.Artifacts) > 0 {
		var artifacts object
		if raw := now["worktree_artifacts"]; raw != nil && json.Unmarshal(raw, &artifacts) == nil {
			k.Artifacts.apply(artifacts)
			written, err := artifacts.write(artifactNames[:])
			if err != nil {
				return err
			}
			now["worktree_artifacts"] = written
		}
	}
	k.Item.apply(now)
	if len(k.Dropped) == 0 {
		return nil
	}
	var err error
	now["failure_history"], err = historyOf(l.History, k.Dropped)
	return err
}

func damaged(attachment string, err error) error {
	return nixie.Errorf(nixie.CodeInternal, "attachment %s is damaged: %w", attachment, err)
}

// itemOf makes an item of a letter's own fields.
func itemOf(l *nixie.Letter) (object, error) {
	m := &l.Message
	history, damage := historyOf(l.History, nil)
	o, err := objectOf([]field{
		{"item_id", ItemID(l)},
		{"item_data", dataOf(m.Body)},
		{"first_attempt", timestamp(l.FirstFailedAt)},
		{"last_attempt", timestamp(l.LastFailedAt)},
		{"failure_count", len(l.History) + l.HistoryDropped},
		{"failure_history", history},
		{"error_signature", l.Signature},
		{"reprocess_eligible", l.Redrivable},
		{"manual_review_required", l.NeedsReview},
		{"worktree_artifacts", artifactsOf(l.History)},
	})
	return o, errors.Join(damage, err)
}

// field is a field of an item; a nil value leaves it out.
type field struct {
	name  string
	value any
}

func objectOf(fields []field) (object, error) {
	o := object{}
	for _, f := range fields {
		if f.value == nil {
			continue
		}
		raw, err := Marshal(f.value)
		if err != nil {
			return nil, err
		}
		o[f.name] = raw
	}
	return o, nil
}

// dataOf returns a body as JSON: the body itself, its text, or its bytes in base64.
func dataOf(body []byte) any {
	switch {
	case utf8.Valid(body) && json.Valid(body):
		return json.RawMessage(body)
	case utf8.Valid(body):
		return string(body)
	}
	return map[string]string{"body_base64": base64.StdEncoding.EncodeToString(body)}
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// historyOf returns the list of failures, with dropped ones after the first.
func historyOf(history []nixie.Failure, dropped []json.RawMessage) (json.RawMessage, error) {
	list, damage := []json.RawMessage{}, error(nil)
	for i := range history {
		f := &history[i]
		if f.Type == typeNoHistory {
			continue
		}
		entry, err := failureOf(f)
		if err != nil {
			return nil, err
		}
		if data := joinPieces(f.Attachments, attachmentFailure); data != nil {
			var kept differences
			if err := json.Unmarshal(data, &kept); err != nil {
				damage = damaged(attachmentFailure, err)
			}
			kept.apply(entry)
		}
		raw, err := entry.write(failureFields[:])
		if err != nil {
			return nil, err
		}
		if list = append(list, raw); i == 0 {
			list = append(list, dropped...)
		}
	}
	raw, err := Marshal(list)
	return raw, errors.Join(damage, err)
}

func failureOf(f *nixie.Failure) (object, error) {
	stack := f.Stack
	if stack == "" {
		stack = policy.StackIn(joinPieces(f.Attachments, stderr))
	}
	return objectOf([]field{
		{"attempt_number", f.Attempt},
		{"timestamp", timestamp(f.FailedAt)},
		{"error_type", errorTypeOf(f)},
		{"error_message", f.Text},
		{"error_context", nilIf(f.Context, len(f.Context) == 0)},
		{"stack_trace", nilIf(stack, stack == "")},
		{"agent_id", f.Worker},
		{"step_failed", stepOf(f)},
		{"duration_ms", f.Took.Milliseconds()},
		{"json_log_location", nilIf(f.LogLocation, f.LogLocation == "")},
	})
}

func nilIf(v any, none bool) any {
	if none {
		return nil
	}
	return v
}

// stepOf names the step that failed, which the layout requires.
func stepOf(f *nixie.Failure) string {
	switch {
	case f.Step != "":
		return f.Step
	case isCommandFailure(f):
		return "command"
	}
	return "handler"
}

// isCommandFailure reports whether the failure is that of a command.
func isCommandFailure(f *nixie.Failure) bool {
	return f.ExitCode != nil || f.Reason == nixie.ReasonCommandFailed
}

// exitDataError is the exit code of a command whose item is wrong: EX_DATAERR of sysexits.h.
const exitDataError = 65

// errorTypeOf returns the error type of a failure: that of its reason, if the layout has one. For
// other reasons, and when only the exit code gave the reason, it returns CommandFailed, which holds
// the code. A command that a signal ended has the code −1.
func errorTypeOf(f *nixie.Failure) any {
	byCode := f.Reason == nixie.ReasonCommandFailed || f.ExitCode != nil && *f.ExitCode == exitDataError
	for _, t := range errorTypes {
		if t.reason == f.Reason && !byCode {
			return t.name
		}
	}
	if isCommandFailure(f) {
		code := -1
		if f.ExitCode != nil {
			code = *f.ExitCode
		}
		return map[string]any{"CommandFailed": map[string]int{"exit_code": code}}
	}
	return "Unknown"
}

// stderr is the attachment that holds the standard error of a command.
const stderr = "stderr"

// artifactsOf returns the worktree of the newest failure that left one.
func artifactsOf(history []nixie.Failure) any {
	for i := len(history) - 1; i >= 0; i-- {
		var found artifactsDoc
		for at, into := range [...]**string{&found.Path, &found.Branch, &found.Changes, &found.Logs} {
			if data := joinPieces(history[i].Attachments, artifactNames[at]); data != nil {
				text := string(data)
				*into = &text
			}
		}
		if errors := joinPieces(history[i].Attachments, stderr); found.Path != nil && found.Logs == nil && errors != nil {
			text := string(errors)
			found.Logs = &text
		}
		if found != (artifactsDoc{}) {
			return found
		}
	}
	return nil
}
