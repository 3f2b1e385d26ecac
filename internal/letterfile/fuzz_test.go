package letterfile_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/internal/letterfile"
	"github.com/nixie-go/nixie/store/memory"
)

// hostile lists texts that must not break a parser.
var hostile = []string{
	"", "{", "[", "{}", "[]", "null", `"`, "\x00", "\xff\xfe", "\ufeff{}", `{"a":1}{"b":2}`,
	strings.Repeat("[", 99), strings.Repeat(`{"item_data":`, 9),
	`{"item_id":"a","item_id":"b","item_data":1,"item_data":2,"last_attempt":"2025-01-11T10:30:00Z"}`,
	`{"ITEM_ID":"a","item_data":1,"last_attempt":"2025-01-11T10:30:00Z"}`,
	`{"item_id":"../../x","item_data":1e999,"last_attempt":"0001-01-01T00:00:00Z"}`,
	`{"item_id":"a\u0000b","item_data":1,"last_attempt":"2025-01-11T10:30:00Z"}`,
	`{"item_id":"a","item_data":"\ud800","last_attempt":"2025-01-11T10:30:00Z","failure_count":99999999999999999999}`,
	`{"item_id":"a","item_data":1,"last_attempt":"9999-12-31T23:59:59Z"}`,
	`{"item_id":null,"item_data":null,"failure_history":{"a":1},"worktree_artifacts":[]}`,
	`{"item_id":"a","item_data":1,"last_attempt":"2025-01-11T10:30:00Z",` +
		`"failure_history":[{"timestamp":"2025-01-11T10:30:00Z","error_type":{"A":{},"B":{}}}]}`,
	`{"item_id":"a","item_data":1,"last_attempt":"2025-01-11T10:30:00Z","failure_history":[` +
		`{"timestamp":"1970-01-01T00:00:01Z","duration_ms":18446744073709551615,` +
		`"error_type":{"CommandFailed":{"exit_code":99999999999}}}]}`,
	`{"message":{"queue":"q"},"status":"open","cause":"adopted","died_at":"2026-01-01T00:00:00Z"}`,
	`{"message":{"queue":"q","attempts":1e30,"body_base64":"%%%"},"status":"open"}`,
	`{"message":{"queue":"q","sha256":"00"},"status":"open","cause":"adopted","died_at":"2026-01-01T00:00:00Z"}`,
	`{"message":{"queue":"q"},"history":[{"duration_ms":1e300}],"status":"open"}`,
	"status,queue,cause,died_at,body\nopen,q,adopted,2026-01-01T00:00:00Z,'\"\\u001b\"\n",
	"status,queue,cause,died_at,body,body_base64,steps\nopen,q,adopted,2026-01-01T00:00:00Z,'=1,eA==,\"[\"\"a\"\"]\"\n",
	"status,status\na,b\n", "status\n\"open", "status,x\nopen,'\"\n", "id\nx\n",
}

// fuzzRead reads a text and adopts its letters: a store accepts each letter that a reader returns.
func fuzzRead(t *testing.T, text string, format items.Format) []nixie.Letter {
	t.Helper()
	letters, bad, err := readAll(t, text, letterfile.Options{Format: format, Queue: "q"})
	for _, wrong := range append(bad, err) {
		if code := nixie.CodeOf(wrong); wrong != nil && code != nixie.CodeInvalid && code != nixie.CodeLimit {
			t.Fatalf("%q: %v (code %s)", text, wrong, code)
		}
	}
	st := memory.New(memory.Options{})
	for i := range letters {
		receipts, errs := st.Adopt(t.Context(), letters[i:i+1], "ann", "fuzz")
		if errs[0] != nil && nixie.CodeOf(errs[0]) != nixie.CodeConflict || errs[0] == nil && receipts[0].ID.IsZero() {
			t.Fatalf("%q: the store says %v, %v", text, receipts, errs)
		}
	}
	if report, err := st.Check(t.Context()); err != nil || len(report.Violations) > 0 {
		t.Fatalf("%q: %v %v", text, report.Violations, err)
	}
	return letters
}

// TestDeepNesting is not among the seeds, because seeds should be small.
func TestDeepNesting(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("[", 200_000), strings.Repeat(`{"item_data":`, 200_000),
		`{"item_id":"a","item_data":` + strings.Repeat("[", 200_000) + strings.Repeat("]",
			200_000) + `,"last_attempt":"2025-01-11T10:30:00Z"}`,
	} {
		for _, format := range []items.Format{items.JSON, items.JSONL} {
			if got := fuzzRead(t, text, format); len(got) > 0 {
				t.Errorf("%.40q… became a letter", text)
			}
		}
	}
	deep := `{"item_id":"a","item_data":` + strings.Repeat("[", 9_000) + strings.Repeat("]",
		9_000) + `,"last_attempt":"2025-01-11T10:30:00Z"}`
	if got := fuzzRead(t, deep, items.JSON); len(got) != 1 || len(got[0].Message.Body) != 18_000 {
		t.Errorf("data that nests within the limit: %d letters", len(got))
	}
}

// FuzzItem reads items, writes them, and compares the bytes.
func FuzzItem(f *testing.F) {
	for _, text := range append(hostile, sample(f)) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, `\u`) || !json.Valid([]byte(text)) || strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "[") {
			fuzzRead(t, text, items.JSON) // halves of a pair of surrogates mean nothing to compare
			return
		}
		for _, l := range fuzzRead(t, text, items.JSON) {
			if l.Cause != nixie.CauseAdopted || l.Rule != itemfile.System || l.Message.Origin == nil {
				continue
			}
			sameJSON(t, itemText(t, &l), text)
			compareFast(t, &l, text)
		}
	})
}

// compareFast compares ReadFast with Read, which differ only in the attachments of an item.
func compareFast(t *testing.T, read *nixie.Letter, text string) {
	t.Helper()
	l, err := itemfile.ReadFast([]byte(text), read.Message.Queue, read.Message.Origin.Channel)
	if err != nil {
		t.Fatal(err)
	}
	for _, history := range [][]nixie.Failure{l.History, read.History} {
		for i := range history {
			f := &history[i]
			f.Attachments = slices.DeleteFunc(f.Attachments,
				func(a nixie.Attachment) bool { return strings.HasPrefix(a.Name, "mapreduce.") })
			if len(f.Attachments) == 0 {
				f.Attachments = nil
			}
		}
	}
	if !reflect.DeepEqual(&l, read) {
		t.Errorf("a glance sees\n%+v\nand reading\n%+v", &l, read)
	}
}

func FuzzStory(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { fuzzRead(t, text, items.JSONL) })
}

func FuzzTable(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { fuzzRead(t, text, items.CSV) })
}
