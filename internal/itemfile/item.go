// Package itemfile reads and writes the dead letter items of MapReduce jobs: a file with a JSON
// object each, in the folders of those jobs. The parts of an item for which a letter has no field
// are kept with the letter and written again, see [Item].
package itemfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/check"
	"github.com/nixie-go/nixie/policy"
)

// System is the Origin.System of letters that were items.
const System = "mapreduce"

// QueueOf returns the queue of the items of a job.
func QueueOf(job string) string { return System + "/" + job }

// JobOf returns the job whose items are in a queue.
func JobOf(queue string) string { return strings.TrimPrefix(queue, System+"/") }

// ItemID returns the item ID of a letter.
func ItemID(l *nixie.Letter) string { return cmp.Or(l.Message.Key, l.Message.ID.String()) }

// headerSignature holds the group that an item's own system gave it, cut to the limit of a header.
const headerSignature = "legacy-signature"

// typeNoHistory is the type of the failure of an item with an empty history.
const typeNoHistory = "unrecorded"

// itemDoc is the JSON form of an item. A missing or null field is zero.
type itemDoc struct {
	ID        *string           `json:"item_id"`
	Data      json.RawMessage   `json:"item_data"`
	First     *time.Time        `json:"first_attempt"`
	Last      *time.Time        `json:"last_attempt"`
	Count     uint32            `json:"failure_count"`
	History   []json.RawMessage `json:"failure_history"`
	Signature string            `json:"error_signature"`
	Eligible  bool              `json:"reprocess_eligible"`
	Review    bool              `json:"manual_review_required"`
	Artifacts *artifactsDoc     `json:"worktree_artifacts"`
}

type artifactsDoc struct {
	Path    *string `json:"worktree_path,omitempty"`
	Branch  *string `json:"branch_name,omitempty"`
	Changes *string `json:"uncommitted_changes,omitempty"`
	Logs    *string `json:"error_logs,omitempty"`
}

type failureDoc struct {
	Attempt  uint32          `json:"attempt_number"`
	At       *time.Time      `json:"timestamp"`
	Type     json.RawMessage `json:"error_type"`
	Text     string          `json:"error_message"`
	Context  []string        `json:"error_context"`
	Stack    string          `json:"stack_trace"`
	Agent    string          `json:"agent_id"`
	Step     string          `json:"step_failed"`
	Duration uint64          `json:"duration_ms"`
	Log      string          `json:"json_log_location"`
}

// errorTypes maps the error types of an item to reasons.
var errorTypes = [...]struct {
	name   string
	reason nixie.Reason
}{
	{"Timeout", nixie.ReasonTimeout},
	{"CommandFailed", nixie.ReasonCommandFailed},
	{"ValidationFailed", nixie.ReasonValidation},
	{"WorktreeError", nixie.ReasonWorktree},
	{"MergeConflict", nixie.ReasonMergeConflict},
	{"CommitValidationFailed", nixie.ReasonNoCommit},
	{"ResourceExhausted", nixie.ReasonResource},
	{"Unknown", nixie.ReasonUnknown},
}

// Read makes a letter of the JSON of an item. The letter gets the queue, and the channel as origin.
func Read(raw []byte, queue, channel string) (nixie.Letter, error) {
	l, dropped, err := read(raw, queue, channel, readFailure)
	if err != nil {
		return l, err
	}
	var theirs object
	if err := Decode(raw, &theirs, false); err != nil {
		return l, err
	}
	kept, err := itemAttachments(&l, theirs, dropped)
	if err != nil {
		return l, err
	}
	l.History[0].Attachments = append(l.History[0].Attachments, kept...)
	return l, nil
}

// ReadFast reads an item for listings. It leaves out the parts for which a letter has no field, and
// costs a third of Read.
func ReadFast(raw []byte, queue, channel string) (nixie.Letter, error) {
	l, _, err := read(raw, queue, channel, readFailureFast)
	return l, err
}

func read(raw []byte, queue, channel string, entry func(json.RawMessage) (nixie.Failure, error)) (l nixie.Letter, dropped []json.RawMessage,
	err error) {
	var doc itemDoc
	if err := Decode(raw, &doc, false); err != nil {
		return l, nil, err
	}
	switch {
	case doc.ID == nil || *doc.ID == "":
		return l, nil, nixie.Errorf(nixie.CodeInvalid, "item_id is empty: give the item its ID")
	case doc.Data == nil:
		return l, nil, nixie.Errorf(nixie.CodeInvalid, "item_data is missing: without it a redrive has nothing to do")
	case doc.Last == nil:
		return l, nil, nixie.Errorf(nixie.CodeInvalid, "last_attempt is missing: say when it failed last")
	}
	if l, err = doc.letter(queue, channel); err != nil {
		return l, nil, err
	}
	failures, dropped, err := doc.failures(entry)
	if err != nil {
		return l, nil, err
	}
	l.History = failures
	l.HistoryDropped = max(int(min(doc.Count, check.MaxCount))-len(failures), len(dropped))
	last := &l.History[len(l.History)-1]
	last.Decision = nixie.Bury
	last.Attachments = append(last.Attachments, doc.Artifacts.attachments()...)
	l.Class, l.Reason = last.Class, last.Reason
	l.Signature, l.Fingerprint = policy.SignatureOf(last, &l.Message)
	return l, dropped, nil
}

// letter makes the fields of a letter that do not come from the history.
func (d *itemDoc) letter(queue, channel string) (nixie.Letter, error) {
	first, last := orTime(d.First, *d.Last).UTC(), d.Last.UTC()
	var body bytes.Buffer
	if err := json.Compact(&body, d.Data); err != nil {
		return nixie.Letter{}, nixie.Errorf(nixie.CodeInvalid, "item_data: %w", err)
	}
	tried := int(min(max(int64(d.Count), int64(len(d.History))), check.MaxCount))
	var headers []nixie.Header
	if d.Signature != "" {
		headers = []nixie.Header{{Name: headerSignature, Value: cut(d.Signature, nixie.MaxName)}}
	}
	return nixie.Letter{
		Message: nixie.Message{
			Queue: queue, Type: "item", Key: *d.ID, DedupeKey: *d.ID, Body: body.Bytes(), Headers: headers,
			Origin:   &nixie.Origin{System: System, Channel: channel, Partition: -1, Offset: -1, MessageID: *d.ID},
			Attempts: tried, Deliveries: tried, EnqueuedAt: first, FirstReceivedAt: first,
		},
		Cause: nixie.CauseAdopted, Status: nixie.StatusOpen, Redrivable: d.Eligible, NeedsReview: d.Review, Rule: System,
		FirstFailedAt: first, LastFailedAt: last, DiedAt: last,
	}, nil
}

// failures reads the history. It also returns the entries after the first that exceed the history
// of a letter.
func (d *itemDoc) failures(entry func(json.RawMessage) (nixie.Failure, error)) (list []nixie.Failure, dropped []json.RawMessage,
	err error) {
	if len(d.History) == 0 {
		f := nixie.Failure{
			Generation: 1, Attempt: int(min(d.Count, check.MaxCount)), FailedAt: d.Last.UTC(),
			Class: classOf(nixie.ReasonUnknown), Reason: nixie.ReasonUnknown, Type: typeNoHistory,
			Text: cut(d.Signature, nixie.MaxFailureText),
		}
		return []nixie.Failure{f}, nil, nil
	}
	over := max(len(d.History)-nixie.MaxHistory, 0)
	for i, raw := range d.History {
		f, err := entry(raw)
		if err != nil {
			return nil, nil, nixie.Errorf(nixie.CodeInvalid, "failure_history[%d]: %w", i, err)
		}
		if i > 0 && i <= over {
			dropped = append(dropped, raw)
			continue
		}
		list = append(list, f)
	}
	return list, dropped, nil
}

func readFailure(raw json.RawMessage) (nixie.Failure, error) {
	f, err := readFailureFast(raw)
	if err != nil {
		return f, err
	}
	var theirs object
	if err := Decode(raw, &theirs, false); err != nil {
		return f, err
	}
	f.Attachments, err = failureAttachments(&f, theirs)
	return f, err
}

func readFailureFast(raw json.RawMessage) (nixie.Failure, error) {
	var d failureDoc
	if err := Decode(raw, &d, false); err != nil {
		return nixie.Failure{}, err
	}
	if d.At == nil {
		return nixie.Failure{}, nixie.Errorf(nixie.CodeInvalid, "timestamp is missing: say when it failed")
	}
	name, code, err := readErrorType(d.Type)
	if err != nil {
		return nixie.Failure{}, err
	}
	took := time.Duration(min(d.Duration, uint64(nixie.MaxDelay/time.Millisecond))) * time.Millisecond
	f := nixie.Failure{
		Generation: 1, Attempt: int(min(d.Attempt, check.MaxCount)), FailedAt: d.At.UTC(), Took: took,
		Reason: reasonOf(name), Type: cut(name, nixie.MaxName), Text: cut(d.Text, nixie.MaxFailureText),
		Stack: cut(d.Stack, nixie.MaxStack),
		Step:  cut(d.Step, nixie.MaxFailureText), Worker: cut(d.Agent, nixie.MaxFailureText), ExitCode: code,
		LogLocation: cut(d.Log, nixie.MaxFailureText), Decision: nixie.Retry,
	}
	if f.StartedAt = f.FailedAt.Add(-took); f.StartedAt.Unix() <= 0 {
		f.StartedAt = f.FailedAt
	}
	f.Class = classOf(f.Reason)
	for _, line := range d.Context[:min(len(d.Context), nixie.MaxContext)] {
		f.Context = append(f.Context, cut(line, nixie.MaxFailureText))
	}
	return f, nil
}

// readErrorType reads both forms: a name, or an object with the name and its data.
func readErrorType(raw json.RawMessage) (name string, code *int, err error) {
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &name) == nil {
		return name, nil, nil
	}
	var variant map[string]json.RawMessage
	if err := json.Unmarshal(raw, &variant); err != nil || len(variant) != 1 {
		return "", nil,
			nixie.Errorf(nixie.CodeInvalid,
				`error_type is neither a name, such as "Timeout", nor an object with one, such as {"CommandFailed":{"exit_code":101}}`)
	}
	var payload struct {
		ExitCode *int32 `json:"exit_code"`
	}
	for name, rest := range variant {
		if json.Unmarshal(rest, &payload) == nil && payload.ExitCode != nil {
			exit := int(*payload.ExitCode)
			return name, &exit, nil
		}
		return name, nil, nil
	}
	return "", nil, nil
}

func reasonOf(errorType string) nixie.Reason {
	for _, t := range errorTypes {
		if t.name == errorType {
			return t.reason
		}
	}
	return nixie.ReasonUnknown
}

func classOf(r nixie.Reason) nixie.Class {
	table := policy.Triages()
	i := slices.IndexFunc(table, func(t policy.Triage) bool { return t.Reason == r })
	return table[max(i, 0)].Class
}

func orTime(t *time.Time, otherwise time.Time) time.Time {
	if t == nil {
		return otherwise
	}
	return *t
}

// cut returns at most limit bytes of s, in a form that every store can keep. The whole text is kept
// in an attachment.
func cut(s string, limit int) string {
	s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// The attachments of a failure that describe the worktree of an item.
const (
	ArtifactPath    = "worktree_path"
	ArtifactBranch  = "branch_name"
	ArtifactChanges = "uncommitted_changes"
	ArtifactLogs    = "error_logs"
)

var artifactNames = [...]string{ArtifactPath, ArtifactBranch, ArtifactChanges, ArtifactLogs}

func (d *artifactsDoc) attachments() []nixie.Attachment {
	if d == nil {
		return nil
	}
	var list []nixie.Attachment
	for i, value := range [...]*string{d.Path, d.Branch, d.Changes, d.Logs} {
		if value != nil {
			list = append(list, split(artifactNames[i], []byte(*value))...)
		}
	}
	return list
}

// split makes attachments of one name from data of any size.
func split(name string, data []byte) []nixie.Attachment {
	var list []nixie.Attachment
	for {
		n := min(len(data), nixie.MaxAttachment)
		list = append(list, nixie.Attachment{Name: name, Data: data[:n:n]})
		if data = data[n:]; len(data) == 0 {
			return list
		}
	}
}

// joinPieces joins the attachments of a name; it returns nil when there are none.
func joinPieces(list []nixie.Attachment, name string) []byte {
	var data []byte
	for _, a := range list {
		if a.Name == name {
			if data == nil {
				data = []byte{}
			}
			data = append(data, a.Data...)
		}
	}
	return data
}
