package letterfile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/internal/letterfile"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/memory"
	"github.com/nixie-go/nixie/store/sqlite"
)

// sample is the item in the documentation of MapReduce.
func sample(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "item.json"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(data), "$HOME", "/Users"+"/user")
}

// readAll reads records from text.
func readAll(t testing.TB, text string, opts letterfile.Options) (letters []nixie.Letter, bad []error, err error) {
	t.Helper()
	opts.Path, opts.Stdin, opts.TempDir = "-", strings.NewReader(text), t.TempDir()
	return drain(t, opts)
}

func drain(t testing.TB, opts letterfile.Options) (letters []nixie.Letter, bad []error, err error) {
	t.Helper()
	r, err := letterfile.Open(opts)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		rec, err := r.Next()
		switch {
		case err == io.EOF:
			return letters, bad, nil
		case err != nil:
			return letters, bad, err
		case rec.Err != nil:
			bad = append(bad, rec.Err)
		default:
			letters = append(letters, rec.Letter)
		}
	}
}

// readOne reads the only letter of a text.
func readOne(t testing.TB, text string, opts letterfile.Options) nixie.Letter {
	t.Helper()
	letters, bad, err := readAll(t, text, opts)
	if err != nil || len(bad) > 0 || len(letters) != 1 {
		t.Fatalf("%d letters, bad %v, error %v", len(letters), bad, err)
	}
	return letters[0]
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func stores(t testing.TB) map[string]store.Store {
	t.Helper()
	now := func() time.Time { return noon }
	file, err := sqlite.Open(filepath.Join(t.TempDir(), "s.db"), sqlite.Options{Clock: now, Owner: "test", Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return map[string]store.Store{"memory": memory.New(memory.Options{Clock: now}), "sqlite": file}
}

// through adopts letters into a store and reads them again.
func through(t testing.TB, st store.Store, letters ...nixie.Letter) []nixie.Letter {
	t.Helper()
	_, errs := st.Adopt(context.Background(), letters, "ann", "test")
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return stored(t, st)
}

func stored(t testing.TB, st store.Store) []nixie.Letter {
	t.Helper()
	all, next, err := st.Letters(context.Background(), nixie.Filter{}, store.Page{Limit: 1000, Whole: true})
	if err != nil || next != "" {
		t.Fatal(err, next)
	}
	return all
}

// sameJSON compares the values of two texts, and numbers by their text.
func sameJSON(t testing.TB, got, want string) {
	t.Helper()
	if !reflect.DeepEqual(valueOf(t, got), valueOf(t, want)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func valueOf(t testing.TB, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

func itemText(t testing.TB, l *nixie.Letter) string {
	t.Helper()
	item, err := itemfile.ItemOf(l)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// edit changes one field of the sample, or of its only failure.
func edit(t testing.TB, where, name, value string) string {
	t.Helper()
	doc := valueOf(t, sample(t)).(map[string]any)
	in := doc
	switch where {
	case "failure":
		in = doc["failure_history"].([]any)[0].(map[string]any)
	case "artifacts":
		in = doc["worktree_artifacts"].(map[string]any)
	}
	if delete(in, name); value != "" {
		in[name] = json.RawMessage(value)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestR20_ItemsComeOutAsTheyCameIn(t *testing.T) {
	long := `"` + strings.Repeat("ü\\u0000\\n", 60_000) + `"`
	entry := `{"attempt_number":%d,"timestamp":"2025-01-11T10:%02d:%02dZ","error_type":"Timeout",` +
		`"error_message":"m","agent_id":"a","step_failed":"s","duration_ms":%d}`
	var entries []string
	for i := range nixie.MaxHistory + 50 {
		entries = append(entries, fmt.Sprintf(entry, i+1, i/60, i%60, i))
	}
	for name, text := range map[string]string{
		"the sample": sample(t),
		"second sample": edit(t, "failure", "error_context", `["Processing work item item-123",`+
			`"Executing agent commands","Running shell command: cargo test"]`),
		"error type by name":    edit(t, "failure", "error_type", `"Timeout"`),
		"error type unknown":    edit(t, "failure", "error_type", `{"Novel":{"a":[1,2.50]}}`),
		"with more in it":       edit(t, "failure", "error_type", `{"CommandFailed":{"exit_code":1,"signal":9}}`),
		"of a name with more":   edit(t, "failure", "error_type", `{"CommitValidationFailed":{"agent_id":"a","command":"c"}}`),
		"command by name":       edit(t, "failure", "error_type", `"CommandFailed"`),
		"no error type":         edit(t, "failure", "error_type", ""),
		"exit code below zero":  edit(t, "failure", "error_type", `{"CommandFailed":{"exit_code":-2147483648}}`),
		"null for nothing":      edit(t, "failure", "stack_trace", "null"),
		"no stack":              edit(t, "failure", "stack_trace", ""),
		"empty context":         edit(t, "failure", "error_context", "[]"),
		"long context":          edit(t, "failure", "error_context", "["+strings.Repeat(`"x",`, 99)+`"y"]`),
		"long message":          edit(t, "failure", "error_message", long),
		"long stack":            edit(t, "failure", "stack_trace", long),
		"long step":             edit(t, "failure", "step_failed", long),
		"long agent":            edit(t, "failure", "agent_id", long),
		"long location":         edit(t, "failure", "json_log_location", long),
		"longest duration":      edit(t, "failure", "duration_ms", "18446744073709551615"),
		"highest attempt":       edit(t, "failure", "attempt_number", "4294967295"),
		"trailing zeros":        edit(t, "failure", "timestamp", `"2025-01-11T10:30:00.100Z"`),
		"another zone":          edit(t, "item", "last_attempt", `"2025-01-11T12:30:00+02:00"`),
		"field of the future":   edit(t, "item", "retry_budget", `{"left":1e400}`),
		"of the failure":        edit(t, "failure", "backtrace", `["x"]`),
		"of the worktree":       edit(t, "artifacts", "commits", `["x"]`),
		"no worktree":           edit(t, "item", "worktree_artifacts", ""),
		"null worktree":         edit(t, "item", "worktree_artifacts", "null"),
		"empty worktree":        edit(t, "item", "worktree_artifacts", "{}"),
		"strange worktree":      edit(t, "item", "worktree_artifacts", `{"x":1}`),
		"null changes":          edit(t, "artifacts", "uncommitted_changes", "null"),
		"empty changes":         edit(t, "artifacts", "uncommitted_changes", `""`),
		"long logs":             edit(t, "artifacts", "error_logs", long),
		"no history":            edit(t, "item", "failure_history", "[]"),
		"missing history":       edit(t, "item", "failure_history", ""),
		"null history":          edit(t, "item", "failure_history", "null"),
		"long history":          edit(t, "item", "failure_history", "["+strings.Join(entries, ",")+"]"),
		"counted none":          edit(t, "item", "failure_count", "0"),
		"counted most":          edit(t, "item", "failure_count", "4294967295"),
		"no count":              edit(t, "item", "failure_count", ""),
		"no first attempt":      edit(t, "item", "first_attempt", ""),
		"no signature":          edit(t, "item", "error_signature", ""),
		"long signature":        edit(t, "item", "error_signature", long),
		"data is text":          edit(t, "item", "item_data", `"plain"`),
		"data is null":          edit(t, "item", "item_data", `null`),
		"data has huge numbers": edit(t, "item", "item_data", `{"a":123456789012345678901234567890,"b":1e999}`),
		"data with markup":      edit(t, "item", "item_data", `"<script>&\u2028\u001b"`),
		"needs review":          edit(t, "item", "manual_review_required", "true"),
	} {
		t.Run(name, func(t *testing.T) {
			l := readOne(t, text, letterfile.Options{Queue: "mapreduce/job"})
			sameJSON(t, itemText(t, &l), text)
			for kind, st := range stores(t) {
				got := through(t, st, l)
				sameJSON(t, itemText(t, &got[0]), text)
				if report, err := st.Features().Check(context.Background()); err != nil || len(report.Violations) > 0 {
					t.Errorf("%s: %v %v", kind, report.Violations, err)
				}
			}
		})
	}
}

func TestItemBecomesALetter(t *testing.T) {
	l := readOne(t, sample(t), letterfile.Options{Queue: "mapreduce/job"})
	m, f := &l.Message, &l.History[0]
	at := time.Date(2025, 1, 11, 10, 30, 0, 0, time.UTC)
	for what, ok := range map[string]bool{
		"key":  m.Key == "item-123" && m.DedupeKey == m.Key && m.Queue == "mapreduce/job" && m.Type == "item",
		"body": string(m.Body) == `{"file":"src/main.rs","priority":5}`,
		"origin": m.Origin.Same(&nixie.Origin{
			System: "mapreduce", Channel: "mapreduce/job", Partition: -1, Offset: -1, MessageID: "item-123"}),
		"signature": m.Header("legacy-signature") == "CommandFailed::cargo test failed with exit" &&
			strings.HasPrefix(l.Signature, "command-failed[step shell: cargo test, exit 101]"),
		"counts": l.HistoryDropped == 2 && m.Attempts == 3 && m.Deliveries == 3,
		"flags":  l.Redrivable && !l.NeedsReview && l.Status == nixie.StatusOpen && l.Cause == nixie.CauseAdopted,
		"times":  l.FirstFailedAt.Equal(at.Add(-5*time.Minute)) && l.LastFailedAt.Equal(at) && l.DiedAt.Equal(at),
		"failure": f.Reason == nixie.ReasonCommandFailed && *f.ExitCode == 101 && f.Took == 45*time.Second &&
			f.StartedAt.Equal(at.Add(-45*time.Second)) &&
			f.Worker == "agent-1" && f.Step == "shell: cargo test" && strings.HasSuffix(f.LogLocation, "session-abc123.json") &&
			f.Decision == nixie.Bury,
		"artifacts": f.Attachments[1].Name == "branch_name" && string(f.Attachments[1].Data) == "agent-1",
	} {
		if !ok {
			t.Errorf("%s: %+v", what, l)
		}
	}
}

// The layout has one error type with an exit code. The code is kept for every reason, and each
// failure has a step.
func TestExitCodesAndStepsAreKept(t *testing.T) {
	code := func(n int) *int { return &n }
	for _, c := range []struct {
		f    nixie.Failure
		want string
	}{
		{nixie.Failure{Reason: nixie.ReasonDependency, ExitCode: code(69)},
			`"error_type":{"CommandFailed":{"exit_code":69}},"error_message":"","agent_id":"","step_failed":"command"`},
		{nixie.Failure{Reason: nixie.ReasonHandler, ExitCode: code(75), Step: "pay"},
			`"error_type":{"CommandFailed":{"exit_code":75}},"error_message":"","agent_id":"","step_failed":"pay"`},
		{nixie.Failure{Reason: nixie.ReasonCommandFailed},
			`"error_type":{"CommandFailed":{"exit_code":-1}},"error_message":"","agent_id":"","step_failed":"command"`},
		{nixie.Failure{Reason: nixie.ReasonTimeout}, `"error_type":"Timeout","error_message":"","agent_id":"","step_failed":"handler"`},
	} {
		if got := itemText(t, &nixie.Letter{History: []nixie.Failure{c.f}}); !strings.Contains(got, c.want) {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// A history that is too long loses entries after the first, and counts them.
func TestLongHistoryIsCut(t *testing.T) {
	var entries []string
	for i := range nixie.MaxHistory + 50 {
		entries = append(entries, fmt.Sprintf(`{"attempt_number":%d,"timestamp":"2025-01-11T10:30:00Z"}`, i+1))
	}
	l := readOne(t, edit(t, "item", "failure_history", "["+strings.Join(entries, ",")+"]"), letterfile.Options{Queue: "q"})
	if len(l.History) != nixie.MaxHistory || l.HistoryDropped != 50 || l.History[0].Attempt != 1 || l.History[1].Attempt != 52 {
		t.Errorf("%d failures, %d dropped, attempts %d, %d …", len(l.History), l.HistoryDropped, l.History[0].Attempt, l.History[1].Attempt)
	}
}

// The item shows the changes of its letter; unchanged fields come out as they came in.
func TestItemAfterAnotherDeath(t *testing.T) {
	text := edit(t, "failure", "timestamp", `"2025-01-11T10:30:00.100Z"`)
	for kind, st := range stores(t) {
		ctx := context.Background()
		l := through(t, st, readOne(t, text, letterfile.Options{Queue: "q"}))[0]
		errs := st.Resolve(ctx, []store.Resolution{{Letter: l.ID, Event: store.OnRedrive, Actor: "ann"}})
		ds, err := st.Claim(ctx, "q", nixie.Want{Max: 1})
		if err = errors.Join(append(errs, err)...); err != nil || len(ds) != 1 {
			t.Fatal(kind, err, len(ds))
		}
		f := nixie.Failure{Generation: 2, Attempt: 1, StartedAt: noon, FailedAt: noon, Class: nixie.ClassTransient,
			Reason: nixie.ReasonTimeout, Text: "slow"}
		errs = st.Settle(ctx,
			[]nixie.Settlement{{Delivery: ds[0], Verb: nixie.Bury, Failure: &f,
				Burial: &nixie.Burial{Cause: nixie.CauseExhausted, Status: nixie.StatusOpen, Signature: "timeout: slow"}}})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(kind, err)
		}
		got := valueOf(t, itemText(t, &stored(t, st)[0])).(map[string]any)
		want := valueOf(t, text).(map[string]any)
		want["failure_count"], want["last_attempt"], want["error_signature"], want["reprocess_eligible"] = json.Number("4"),
			"2026-05-04T12:00:00Z", "timeout: slow", false
		want["failure_history"] = append(want["failure_history"].([]any),
			valueOf(t, `{"attempt_number":1,"timestamp":"2026-05-04T12:00:00Z","error_type":"Timeout",`+
				`"error_message":"slow","agent_id":"","step_failed":"handler","duration_ms":0}`))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got  %v\nwant %v", kind, got, want)
		}
	}
}
