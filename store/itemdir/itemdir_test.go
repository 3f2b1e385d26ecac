package itemdir_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/internal/itemfile"
	"github.com/nixie-go/nixie/internal/letterfile"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/itemdir"
	"github.com/nixie-go/nixie/store/memory"
)

// noon is about the time at which the items died.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func clock() time.Time { return noon.Add(time.Hour) }

// job is a folder of items in its first layout.
func job(root, name string) string {
	return filepath.Join(root, "repo", name, "mapreduce", "dlq", name, itemfile.ItemsFolder)
}

// put writes an item that failed n times.
func put(t testing.TB, folder, id string, n int, more map[string]any) {
	t.Helper()
	kinds := []any{"Timeout", map[string]any{"CommandFailed": map[string]any{"exit_code": n}}, "MergeConflict"}
	died := noon.Add(-time.Duration(n) * time.Minute)
	item := map[string]any{
		"item_id": id, "item_data": map[string]any{"n": n}, "first_attempt": noon.Add(-time.Hour), "last_attempt": died, "failure_count": n,
		"failure_history": []any{map[string]any{
			"attempt_number": n, "timestamp": died, "error_type": kinds[n%len(kinds)], "error_message": fmt.Sprintf("broken %d times", n%4),
			"agent_id": "agent", "step_failed": "shell: make", "duration_ms": 5,
		}},
		"error_signature": "theirs", "reprocess_eligible": n%2 == 0, "manual_review_required": n%5 == 0, "cost": 0.25,
	}
	maps.Copy(item, more)
	raw, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, strings.ReplaceAll(id, "/", "_")+".json"), raw)
}

func write(t testing.TB, name string, raw []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	at := noon.Add(time.Duration(writes.Add(1)) * time.Microsecond) // long ago, and each at another time
	if err := os.Chtimes(name, at, at); err != nil {
		t.Fatal(err)
	}
}

// writes counts the files that tests have written.
var writes atomic.Int64

func open(t testing.TB, folder string) *itemdir.Store {
	t.Helper()
	s, err := itemdir.Open(folder, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// imported returns a store that has imported the folder.
func imported(t testing.TB, folder string) store.Store {
	t.Helper()
	from, err := letterfile.Open(letterfile.Options{Path: folder})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close() //nolint:errcheck // it was only read
	s := memory.New(memory.Options{Clock: clock})
	for {
		rec, err := from.Next()
		if err == io.EOF {
			return s
		}
		if err != nil || rec.Err != nil {
			t.Fatal(err, rec.Err)
		}
		if _, errs := s.Adopt(t.Context(), []nixie.Letter{rec.Letter}, "ann", "moved"); errs[0] != nil {
			t.Fatal(errs[0])
		}
	}
}

// filters returns filters that a folder answers without reading files, and others.
func filters() []nixie.Filter {
	yes, no, three, nine := true, false, int64(3), int64(9)
	return []nixie.Filter{
		{}, {Keys: []string{"item-7", "none"}}, {Queues: []string{"mapreduce/weekly"}}, {Statuses: []nixie.Status{nixie.StatusOpen}},
		{Statuses: []nixie.Status{nixie.StatusDiscarded}}, {Reasons: []nixie.Reason{nixie.ReasonTimeout}}, {Text: "BROKEN 3"},
		{Signature: "exit 4"}, {Redrivable: &yes}, {NeedsReview: &no, Reasons: []nixie.Reason{nixie.ReasonMergeConflict}},
		{Attempts: nixie.Range{Min: &three, Max: &nine}}, {Types: []string{"item"}, Causes: []nixie.Cause{nixie.CauseAdopted}},
		{Types: []string{"line"}}, {ErrorTypes: []string{"commandfailed", "zzz"}}, {Not: []nixie.Filter{{ErrorTypes: []string{"Command"}}}},
	}
}

// The folder gives the same answers as a store that imported it: letters in the same order, page by
// page, groups and counts.
func TestAnswersAsAfterAnImport(t *testing.T) {
	root := t.TempDir()
	for n := range 30 {
		put(t, job(root, "nightly"), fmt.Sprint("item-", n+1), n+1, nil)
	}
	for n := range 7 {
		put(t, filepath.Join(root, "weekly", itemfile.ItemsFolder), fmt.Sprint("week-", n), 40+n, nil)
	}
	ours, theirs := open(t, root), imported(t, root)
	for i, f := range filters() {
		t.Run(fmt.Sprint(i, " ", filter.Text(f)), func(t *testing.T) {
			for _, page := range []store.Page{{Limit: 4}, {Limit: 4, Whole: true}, {Limit: 100, Bodies: true}} {
				have, want := all(t, ours, f, page), all(t, theirs, f, page)
				if !reflect.DeepEqual(have, want) {
					t.Errorf("%+v:\nhave %+v\nwant %+v", page, have, want)
				}
			}
			for _, by := range []store.GroupBy{store.ByFingerprint, store.ByReason, store.ByClass, store.ByType, store.ByQueue,
				store.ByStatus, store.ByHour, store.ByRedrivable, store.ByAttempts, store.ByReview} {
				have, want := groups(t, ours, f, by), groups(t, theirs, f, by)
				if !reflect.DeepEqual(have, want) {
					t.Errorf("groups by %s: %+v, want %+v", by, have, want)
				}
			}
			have, _, err := ours.Count(t.Context(), f,
				store.Counting{By: []store.GroupBy{store.ByReason, store.ByQueue}, Scan: store.ScanAll})
			want, _, _ := theirs.Count(t.Context(), f,
				store.Counting{By: []store.GroupBy{store.ByReason, store.ByQueue}, Scan: store.ScanAll})
			if err != nil || !reflect.DeepEqual(have, want) {
				t.Errorf("counts %v, want %v: %v", have, want, err)
			}
		})
	}
}

// all reads a listing page by page, without fields that depend on the store.
func all(t testing.TB, s store.Store, f nixie.Filter, page store.Page) (list []nixie.Letter) {
	t.Helper()
	for {
		some, next, err := s.Letters(t.Context(), f, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range some {
			if l.ID.IsZero() || l.Message.ID.IsZero() {
				t.Error("a letter has no ID")
			}
			l.ID, l.Message.ID, l.Artifacts = nixie.ID{}, nixie.ID{}, nil
			list = append(list, l)
		}
		if page.Cursor = next; next == "" {
			slices.SortStableFunc(list, func(a, b nixie.Letter) int {
				return cmp.Or(b.DiedAt.Compare(a.DiedAt), cmp.Compare(a.Message.Key, b.Message.Key))
			})
			return list
		}
	}
}

func groups(t testing.TB, s store.Store, f nixie.Filter, by store.GroupBy) []store.Group {
	t.Helper()
	counted, _, err := s.Count(t.Context(), f, store.Counting{By: []store.GroupBy{by}, Scan: store.ScanAll, Described: true})
	if err != nil {
		t.Fatal(err)
	}
	list := counted[0]
	for i := range list {
		list[i].Examples = nil
	}
	return list
}

// The index may be missing, damaged or wrong.
func TestIndexDoesNotMatter(t *testing.T) {
	root := t.TempDir()
	put(t, job(root, "nightly"), "item-1", 1, nil)
	index := filepath.Join(filepath.Dir(job(root, "nightly")), itemfile.IndexFile)
	want := all(t, open(t, root), nixie.Filter{}, store.Page{Whole: true})
	for _, text := range []string{`{"job_id":"nightly","item_count":2,"item_ids":["item-1","gone"]}`, `{"item_ids":["ite`, "[]"} {
		write(t, index, []byte(text))
		if have := all(t, open(t, root), nixie.Filter{}, store.Page{Whole: true}); len(have) != 1 || !reflect.DeepEqual(have, want) {
			t.Errorf("with the index %s: %+v", text, have)
		}
	}
}

// A file that cannot be read becomes a letter that says so, and verify names it.
func TestUnreadableItemsAreShown(t *testing.T) {
	root := t.TempDir()
	folder := job(root, "nightly")
	put(t, folder, "fine", 1, nil)
	put(t, folder, "no-data", 2, map[string]any{"item_data": nil, "last_attempt": nil})
	write(t, filepath.Join(folder, "torn.json"), []byte("{\n\"item_id\":\"torn"))
	write(t, filepath.Join(folder, "bytes.json"), []byte("{\"item_id\":\"\xff\"}"))
	if err := os.Mkdir(filepath.Join(folder, "folder.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(folder, "outside.json")); err != nil {
		t.Fatal(err)
	}
	s := open(t, root)
	damage := map[string]string{}
	for _, l := range all(t, s, nixie.Filter{}, store.Page{Whole: true}) {
		damage[l.Message.Key] = strings.Join(l.Damage, "; ")
	}
	for key, says := range map[string]string{
		"fine": "", "no-data": "last_attempt is missing", "torn": "line 2 is not JSON", "bytes": "UTF-8",
		"folder": "not a regular file", "outside": "path escapes",
	} {
		if text, ok := damage[key]; !ok || !strings.Contains(text, says) || says == "" && text != "" {
			t.Errorf("%s: %q, want %q", key, text, says)
		}
	}
	report, err := s.Check(t.Context())
	if err != nil || report.Checked != 6 || len(report.Violations) != 5 {
		t.Errorf("verify: %+v %v", report, err)
	}
	if l, _, err := s.Letters(t.Context(), nixie.Filter{Text: "not JSON"}, store.Page{}); err != nil || len(l) != 1 ||
		l[0].Message.Key != "torn" {
		t.Errorf("search: %+v %v", l, err)
	}
}

// The program that runs the job removes items and adds others during a listing.
func TestOthersChangeTheFolder(t *testing.T) {
	root := t.TempDir()
	folder := job(root, "nightly")
	for n := range 10 {
		put(t, folder, fmt.Sprint("item-", n), n, nil)
	}
	s := open(t, root)
	first, next, err := s.Letters(t.Context(), nixie.Filter{}, store.Page{Limit: 3})
	if err != nil || len(first) != 3 {
		t.Fatal(first, err)
	}
	if err := os.Remove(filepath.Join(folder, "item-5.json")); err != nil {
		t.Fatal(err)
	}
	put(t, folder, "item-99", 99, nil)
	rest := all(t, s, nixie.Filter{}, store.Page{Limit: 3, Cursor: next})
	if len(rest) != 6 {
		t.Errorf("%d are left of the listing, want the 6 that are still there", len(rest))
	}
	if again := all(t, s, nixie.Filter{}, store.Page{}); len(again) != 10 {
		t.Errorf("a new listing has %d, want 10", len(again))
	}
	if _, _, err := s.Letters(t.Context(), nixie.Filter{}, store.Page{Cursor: "1.?"}); nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Errorf("bad cursor: %v", err)
	}
}

// Calls that concern queued or leased messages are refused, with the way out.
func TestRefusals(t *testing.T) {
	root := t.TempDir()
	put(t, job(root, "nightly"), "item-1", 1, nil)
	var s store.Store = open(t, root)
	ctx := t.Context()
	_, enqueue := s.Enqueue(ctx, nixie.Message{})
	_, claim := s.Claim(ctx, "q", nixie.Want{})
	_, plan := s.Plan(ctx, store.Operation{}, nixie.Filter{}, 1)
	_, bury := s.Adopt(ctx, make([]nixie.Letter, 1), "ann", "")
	_, prune := s.Prune(ctx, store.Pruning{})
	for _, err := range []error{enqueue, claim, plan, bury[0], prune, s.Resolve(ctx, make([]store.Resolution, 1))[0],
		s.Amend(ctx, make([]nixie.ID, 1), store.Change{})[0]} {
		if nixie.CodeOf(err) != nixie.CodeUnavailable || !strings.Contains(err.Error(), "nixie dlq import") {
			t.Errorf("%v", err)
		}
	}
	queues, err := s.Queues(ctx, store.QueueQuery{})
	if err != nil || len(queues) != 1 || queues[0].Name != "mapreduce/nightly" || queues[0].Dead != 1 || queues[0].Died != 0 {
		t.Errorf("queues: %+v %v", queues, err)
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	if _, _, err := s.Letters(stopped, nixie.Filter{}, store.Page{}); nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Errorf("after the end: %v", err)
	}
}

// A listing keeps little of each item in memory, however large the items are.
func TestListingIsSmall(t *testing.T) {
	root := t.TempDir()
	const items, most = 3000, 250
	text := strings.Repeat("long ", 1000)
	for n := range items {
		put(t, job(root, "nightly"), fmt.Sprint("item-", n), n, map[string]any{"item_data": text})
	}
	s := open(t, root)
	before := live()
	if _, next, err := s.Letters(t.Context(), nixie.Filter{}, store.Page{Limit: 1}); err != nil || next == "" {
		t.Fatal(next, err)
	}
	if each := (live() - before) / items; each > most {
		t.Errorf("%d bytes are remembered of an item, want at most %d", each, most)
	}
	runtime.KeepAlive(s)
}

func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
