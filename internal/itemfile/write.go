package itemfile

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// Item is a letter in the layout of a dead letter item of MapReduce, made by
// [ItemOf].
//
// A letter that was such an item comes out as it came in, with fields that
// Nixie does not know and values in the form they had, except for what has
// changed since: another failure is one more entry in its history. A letter
// that never was one says as much as the layout has room for.
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

// ItemOf makes an item of a letter that was read whole. With an error the item
// says what the letter's own fields do, without what was kept of an earlier
// item and is damaged.
func ItemOf(l *nixie.Letter) (Item, error) {
	now, err := itemOf(l)
	if err != nil || len(l.History) == 0 {
		return Item{now}, err
	}
	data := whole(l.History[0].Attachments, keptItem)
	if data == nil {
		return Item{now}, nil
	}
	var kept keptOfItem
	if err := json.Unmarshal(data, &kept); err != nil {
		return Item{now}, damaged(keptItem, err)
	}
	return Item{now}, kept.apply(now, l)
}

// apply writes what was kept where it still holds.
func (k *keptOfItem) apply(now object, l *nixie.Letter) error {
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

// itemOf is the item that our fields make.
func itemOf(l *nixie.Letter) (object, error) {
	m := &l.Message
	history, damage := historyOf(l.History, nil)
	o, err := objectOf([]field{
		{"item_id", ID(l)},
		{"item_data", dataOf(m.Body)},
		{"first_attempt", moment(l.FirstFailedAt)},
		{"last_attempt", moment(l.LastFailedAt)},
		{"failure_count", len(l.History) + l.HistoryDropped},
		{"failure_history", history},
		{"error_signature", l.Signature},
		{"reprocess_eligible", l.Redrivable},
		{"manual_review_required", l.NeedsReview},
		{"worktree_artifacts", artifactsOf(l.History)},
	})
	return o, errors.Join(damage, err)
}

// field is a field of an item; a nil value is left out.
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

// dataOf is a body as JSON: itself, or its text, or its bytes in base64.
func dataOf(body []byte) any {
	switch {
	case utf8.Valid(body) && json.Valid(body):
		return json.RawMessage(body)
	case utf8.Valid(body):
		return string(body)
	}
	return map[string]string{"body_base64": base64.StdEncoding.EncodeToString(body)}
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// historyOf is the list of failures, with dropped ones after the first.
func historyOf(history []nixie.Failure, dropped []json.RawMessage) (json.RawMessage, error) {
	list, damage := []json.RawMessage{}, error(nil)
	for i := range history {
		f := &history[i]
		if f.Type == typeUnrecorded {
			continue
		}
		entry, err := failureOf(f)
		if err != nil {
			return nil, err
		}
		if data := whole(f.Attachments, keptFailure); data != nil {
			var kept changes
			if err := json.Unmarshal(data, &kept); err != nil {
				damage = damaged(keptFailure, err)
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
	return objectOf([]field{
		{"attempt_number", f.Attempt},
		{"timestamp", moment(f.FailedAt)},
		{"error_type", errorTypeOf(f)},
		{"error_message", f.Text},
		{"error_context", orNone(f.Context, len(f.Context) == 0)},
		{"stack_trace", orNone(f.Stack, f.Stack == "")},
		{"agent_id", f.Worker},
		{"step_failed", stepOf(f)},
		{"duration_ms", f.Took.Milliseconds()},
		{"json_log_location", orNone(f.LogLocation, f.LogLocation == "")},
	})
}

func orNone(v any, none bool) any {
	if none {
		return nil
	}
	return v
}

// stepOf is what failed, which the layout always names.
func stepOf(f *nixie.Failure) string {
	switch {
	case f.Step != "":
		return f.Step
	case ofCommand(f):
		return "command"
	}
	return "handler"
}

// ofCommand reports whether a command failed.
func ofCommand(f *nixie.Failure) bool {
	return f.ExitCode != nil || f.Reason == nixie.ReasonCommandFailed
}

// itemIsWrong is the exit code by which a command says so, EX_DATAERR of sysexits.h.
const itemIsWrong = 65

// errorTypeOf is the error type of a failure: that of its reason, if the layout has one.
// Else, and if the exit code alone gave the reason, it is that of commands, which has room
// for the code. A command that was ended by a signal has none; the layout's word for that
// is −1.
func errorTypeOf(f *nixie.Failure) any {
	byCode := f.Reason == nixie.ReasonCommandFailed || f.ExitCode != nil && *f.ExitCode == itemIsWrong
	for _, t := range errorTypes {
		if t.reason == f.Reason && !byCode {
			return t.name
		}
	}
	if ofCommand(f) {
		code := -1
		if f.ExitCode != nil {
			code = *f.ExitCode
		}
		return map[string]any{"CommandFailed": map[string]int{"exit_code": code}}
	}
	return "Unknown"
}

// artifactsOf is the worktree of the newest failure that left one.
func artifactsOf(history []nixie.Failure) any {
	for i := len(history) - 1; i >= 0; i-- {
		var found artifactsDoc
		for at, into := range [...]**string{&found.Path, &found.Branch, &found.Changes, &found.Logs} {
			if data := whole(history[i].Attachments, artifactNames[at]); data != nil {
				text := string(data)
				*into = &text
			}
		}
		if found != (artifactsDoc{}) {
			return found
		}
	}
	return nil
}
