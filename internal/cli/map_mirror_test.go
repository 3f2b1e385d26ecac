//go:build unix

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/proof"
)

// mirrored lists the items that have files in the folder of job j, and those of its index.
func (d *workspace) mirrored() (files, index string) {
	d.t.Helper()
	at := d.path("dlq/j/mapreduce/dlq/j")
	names, err := filepath.Glob(at + "/items/*.json")
	if err != nil {
		d.t.Fatal(err)
	}
	for i := range names {
		names[i] = strings.TrimSuffix(filepath.Base(names[i]), ".json")
	}
	text := d.read("dlq/j/mapreduce/dlq/j/index.json")
	_, list, _ := strings.Cut(text, `"item_ids":[`)
	list, _, _ = strings.Cut(list, "]")
	return strings.Join(names, " "), strings.ReplaceAll(strings.ReplaceAll(list, `"`, ""), ",", " ")
}

// The folder of a mirror follows each command that moves letters, at once and without a run: by the
// job and by the office. What dies again has its file again.
func TestMapMirror(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.repository(6)
	d.nixie(5, mapRun([]string{"-p", "1", "--max-attempts", "1", "--mirror", "itemdir:dlq"}, "echo broken >&2; exit 3")...)
	for _, step := range []struct {
		says string
		code int
		args []string
		left string
	}{
		{"", 0, nil, "f0 f1 f2 f3 f4 f5"},
		{"a note", 0, []string{"dlq", "note", "--all", "--text", "seen", "--yes"}, "f0 f1 f2 f3 f4 f5"},
		{"a dry run", 0, []string{"map", "dlq", "clear", "--dry-run"}, "f0 f1 f2 f3 f4 f5"},
		{"cleared", 0, []string{"map", "dlq", "clear", "f0", "--reason", "not needed", "--yes"}, "f1 f2 f3 f4 f5"},
		{"discarded", 0, []string{"dlq", "discard", "--filter", "key:f1", "--reason", "not needed", "--yes"}, "f2 f3 f4 f5"},
		{"restored", 0, []string{"dlq", "restore", "--filter", "key:f1", "--reason", "needed", "--yes"}, "f1 f2 f3 f4 f5"},
		{"redriven", 0, []string{"dlq", "redrive", "--filter", "key:f2", "--force", "--reason", "again", "--yes"}, "f1 f3 f4 f5"},
		{"purged", 0, []string{"dlq", "purge", "--filter", "key:f3", "--status", "open", "--older-than", "0s", "--reason", "old", "--yes"},
			"f1 f4 f5"},
		// The list still has what was purged, so it is run anew.
		{"died again", 5, []string{"map", "resume", "--job", "j"}, "f1 f2 f3 f4 f5"},
		{"retried", 5, []string{"map", "dlq", "retry", "f4", "--force", "--reason", "again", "--yes"}, "f1 f2 f3 f4 f5"},
		{"all cleared", 0, []string{"map", "dlq", "clear", "--reason", "done by hand", "--yes"}, ""},
	} {
		if step.args != nil {
			d.nixie(step.code, step.args...)
		}
		if files, index := d.mirrored(); files != step.left || index != step.left {
			t.Errorf("%s: files %q, index %q, want %q", step.says, files, index, step.left)
		}
	}
	audit := d.read("dlq/j/mapreduce/dlq/j/audit.jsonl")
	for _, want := range []string{
		`"item_id":"f0","action":"discarded","actor":"tester","reason":"not needed"`, `"item_id":"f2","action":"redriven"`,
		`"item_id":"f3","action":"purged"`, `"item_id":"f5","action":"discarded","actor":"tester","reason":"done by hand"`,
	} {
		if strings.Count(audit, want) != 1 {
			t.Errorf("no line %s in %s", want, audit)
		}
	}
	if n := strings.Count(audit, "\n"); n != 10 {
		t.Errorf("%d lines of audit, want 10: %s", n, audit)
	}
}

// In a folder of 20,000 items of another program an expression finds some within five seconds of
// processor time, and stats counts them within two. A small folder shows what they find; its time
// is not asked for, because a busy machine measures badly.
func TestMapMirrorLarge(t *testing.T) {
	t.Parallel()
	proof.Run(t, "map-items", func(t *testing.T, _ uint64) int {
		items := proof.Count("map-items")
		mapItems(t, items, proof.Current() >= proof.Long)
		return items
	})
}

func mapItems(t *testing.T, items int, measured bool) {
	d := newWorkspace(t)
	folder := d.path("theirs/j/mapreduce/dlq/j/items")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	died := time.Date(2026, 5, 1, 11, 0, 0, 0, time.UTC)
	for n := range items {
		text := fmt.Sprintf(`{"item_id":"item-%[1]d","item_data":{"file":"src/f%[1]d.rs","priority":%[2]d},`+
			`"first_attempt":"2026-05-01T10:00:00Z","last_attempt":"2026-05-01T11:00:00Z","failure_count":3,`+
			`"failure_history":[{"attempt_number":1,"timestamp":"2026-05-01T11:00:00Z",`+
			`"error_type":{"CommandFailed":{"exit_code":101}},"error_message":"cargo test failed: case %[2]d",`+
			`"stack_trace":"thread 'main' panicked at src/main.rs:42","agent_id":"agent-%[3]d","step_failed":"shell: cargo test",`+
			`"duration_ms":45000,"json_log_location":"/logs/session-%[1]d.json"}],"error_signature":"CommandFailed::cargo test failed",`+
			`"reprocess_eligible":true,"manual_review_required":false}`, n, n%10, n%7)
		file := filepath.Join(folder, fmt.Sprint("item-", n, ".json"))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, died, died); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args  []string
		most  time.Duration
		lines int
		says  string
	}{
		{[]string{"list", "--where", "item.priority == 7", "--limit", "0", "-o", "jsonl"}, 5 * time.Second, items / 10, `"key":"item-7"`},
		{[]string{"stats", "-o", "jsonl"}, 2 * time.Second, 1, fmt.Sprintf(`"open":%d,`, items)},
	} {
		args := append([]string{"map", "dlq", c.args[0], "--store", "itemdir:theirs"}, c.args[1:]...)
		took := time.Hour
		for range 3 {
			cmd := d.command("nixie", args...)
			r := d.finish(cmd)
			if r.code != 0 || strings.Count(r.out, "\n") != c.lines || !strings.Contains(r.out, c.says) {
				t.Fatalf("%q: exit %d: %s%.300s", args, r.code, r.err, r.out)
			}
			took = min(took, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		}
		t.Logf("%q: %s", args, took.Round(time.Millisecond))
		if measured && took > c.most {
			t.Errorf("%q takes %s of processor time, want %s", args, took, c.most)
		}
	}
}
