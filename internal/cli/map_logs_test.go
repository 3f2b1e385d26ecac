//go:build unix

package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// itemsOf reads the dead items of the job as MapReduce has them.
func (d *workspace) itemsOf(t *testing.T) (list []map[string]any) {
	t.Helper()
	out := d.nixie(0, "map", "dlq", "export", "--job", "j", "--layout", "mapreduce", "--format", "jsonl").out
	for line := range strings.Lines(out) {
		var item map[string]any
		if err := json.Unmarshal([]byte(line), &item); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		list = append(list, item)
	}
	return list
}

// Nine items fail in eight ways, each by an agent that leaves a log. Each path in each letter
// opens, before and after they died again. Each attempt has its own log. The worktree that is named
// is that of the last one, with the end of what it said. After the job is cleaned its letters say
// so.
func TestMapLogs(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.repository(10)
	d.write("agent", `#!/bin/sh
echo "thinking about $1, lease $NIXIE_LEASE" > "$NIXIE_LOG_FILE"
case $1 in
f0) echo first > shared; git add -A ;;
f1) exec sleep 60 ;;
f2) echo new > f2 ;;
f3) rm -rf "$PWD" ;;
f4) ;;
f5) git checkout -q --detach "$(git rev-list --max-parents=0 HEAD)"; echo "$NIXIE_LEASE" > shared; git add -A ;;
f6) kill -9 $$ ;;
f7) printf '{"outcome":"retry","message":"lost","stack_trace":"at pay (cart.js:3:7)","error_context":["paying"]}' > "$NIXIE_VERDICT"
    exit 1 ;;
f8) echo "no such API" >&2; exit 3 ;;
f9) cat "${0%/*}/traceback" >&2; exit 1 ;;
esac
`)
	d.write("traceback", `Traceback (most recent call last):
  File "/srv/shop/pay.py", line 2, in <module>
    pay("id")
  File "/srv/shop/pay.py", line 1, in pay
    def pay(x): return {}[x]
                       ~~^^^
KeyError: 'id'
`) // as Python 3.11 says it
	args := []string{"map", "run", "files.txt", "--repo", "repo", "--job", "j", "--no-output", "-p", "1", "--max-attempts", "2",
		"--backoff", "10ms", "--min-age", "none", "--timeout", "2s", "--step", "agent: " + d.path("agent") + " {line}",
		"--step", "commit shell: [ $NIXIE_FIELD_LINE = f4 ] || git commit -qam x", "--validate", "shell: [ $NIXIE_FIELD_LINE != f2 ]"}
	d.nixie(5, args...)
	before := d.itemsOf(t)
	checkItems(t, before, 1)

	d.nixie(5, "map", "dlq", "retry", "--job", "j", "--reason", "again", "--yes", "--force")
	checkItems(t, d.itemsOf(t), 2)
	if logs := d.nixie(0, "map", "logs", "f8", "--job", "j").out; strings.Count(logs, "thinking about f8, lease ") < 4 {
		t.Errorf("the log of each attempt is not shown:\n%s", logs)
	}
	letter := d.nixie(0, "dlq", "show", "f8", "--whole").out
	if strings.Count(letter, "worktree_path") != 1 || strings.Contains(letter, "not here") {
		t.Errorf("shown:\n%s", letter)
	}
	d.nixie(0, "map", "clean", "--job", "j", "--force")
	letter = d.nixie(0, "dlq", "show", "f8", "--whole").out
	if n := strings.Count(letter, "(not here: nixie map clean removed it"); n < 2 {
		t.Errorf("after the clean %d paths are said to be gone:\n%s", n, letter)
	}
}

// checkItems opens each path of each item, which has died that often after two attempts each.
func checkItems(t *testing.T, list []map[string]any, deaths int) {
	t.Helper()
	if len(list) != 9 {
		t.Fatalf("%d items, want 9", len(list))
	}
	var types []string
	for _, item := range list {
		id, history := item["item_id"].(string), item["failure_history"].([]any)
		seen := map[string]bool{}
		for _, each := range history {
			f := each.(map[string]any)
			log, _ := f["json_log_location"].(string)
			text, err := os.ReadFile(log)
			if err != nil || !strings.HasPrefix(string(text), "thinking about "+id+", lease ") || seen[log] {
				t.Errorf("%s: log %q: %v, %q", id, log, err, text)
			}
			seen[log] = true
			if c := f["error_context"].([]any); c[0] != "item "+id || id != "f5" && !strings.HasPrefix(c[1].(string), "step ") {
				t.Errorf("%s: context %q", id, c)
			}
		}
		last := history[len(history)-1].(map[string]any)
		if len(history) < deaths {
			t.Errorf("%s: %d failures", id, len(history))
		}
		kind, _ := json.Marshal(last["error_type"])
		types = append(types, string(kind))
		stack, _ := last["stack_trace"].(string)
		artifacts, _ := item["worktree_artifacts"].(map[string]any)
		switch id {
		case "f8":
			if artifacts["error_logs"] != "no such API\n" {
				t.Errorf("f8: artifacts %v", artifacts)
			}
		case "f7":
			if stack != "at pay (cart.js:3:7)" || len(last["error_context"].([]any)) != 3 {
				t.Errorf("f7: %v", last)
			}
		case "f9":
			if !strings.HasPrefix(stack, "Traceback (most recent call last):") || !strings.HasSuffix(stack, "KeyError: 'id'") {
				t.Errorf("f9: stack %q", stack)
			}
		}
		if path, is := artifacts["worktree_path"].(string); is {
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %v", id, err)
			}
			if filepath.Base(filepath.Dir(path)) != "kept" {
				t.Errorf("%s: worktree %s", id, path)
			}
		} else if id != "f3" {
			t.Errorf("%s has no worktree", id)
		}
	}
	slices.Sort(types)
	if types = slices.Compact(types); len(types) != 8 {
		t.Errorf("%d types of errors, want 8: %s", len(types), types)
	}
}
