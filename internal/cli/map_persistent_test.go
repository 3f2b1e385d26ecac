//go:build linux

package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/proof"
)

// fixer is the beginning of a worker that fixes files of a repository: fix(m) changes the file of
// an item and commits that.
const fixer = loop + `
import shutil, subprocess
def fix(m):
    with open(os.path.join(m["folder"], m["key"]), "w") as f:
        f.write("new\n")
    subprocess.run(["git", "-C", m["folder"], "commit", "-qam", "fix " + m["key"]], check=True, stdin=subprocess.DEVNULL)
def once():
    if os.path.exists("once"):
        return False
    os.mkdir("once")
    return True
`

// mapLines is a map whose command stays.
func (d *workspace) mapLines(worker string, flags ...string) []string {
	d.t.Helper()
	d.write("worker.py", worker)
	args := append([]string{"map", "run", "files.txt", "--repo", "repo", "--job", "j", "--no-output", "--persistent"}, flags...)
	return append(args, "--", python(d.t), "-IS", "worker.py")
}

// badFixer keeps to the protocol and fixes its file, but for one item.
type badFixer struct {
	name, does   string // for that item
	reason, says string // of its letter; without a reason it succeeds
}

func badFixers() []badFixer {
	return []badFixer{
		{"answers for another item", `fix(m); say(id="x" if once() else m["id"])`, "", ""},
		{"answers twice", `fix(m); os.write(1, 2 * (json.dumps({"id": m["id"]}) + "\n").encode())`, "", ""},
		{"stays in its folder", `os.chdir(m["folder"]); fix(m); say(id=m["id"]); os.chdir(home)`, "", ""},
		{"ends after its commit", `fix(m); sys.exit("no disk")`, "command-failed", "no disk"},
		{"is killed after its commit", `fix(m); os.kill(os.getpid(), signal.SIGSEGV)`, "command-failed", "killed by signal 11"},
		{"does not answer", `fix(m); time.sleep(1000)`, "timeout", "timed out after 5s"},
		{"half a line and its end", `fix(m); os.write(1, b'{"id":'); sys.exit()`, "command-failed", "before the end of the line"},
		{"prints", `fix(m); print("hello", flush=True)`, "validation", `the line: "hello"`},
		{"commits nothing", `say(id=m["id"])`, "no-commit", "nothing was changed"},
		{"leaves its change", `open(os.path.join(m["folder"], m["key"]), "w").close(); say(id=m["id"])`, "no-commit",
			"files changed and not committed: 1"},
		{"removes its folder", `shutil.rmtree(m["folder"]); say(id=m["id"])`, "worktree", ""},
		{"does not pass", `fix(m); say(id=m["id"], result="bad")`, "validation", "it does not pass"},
		{"lets messages follow", `fix(m); say(id=m["id"], then=[{"queue": "r"}])`, "validation", "nixie map takes no field then"},
		{"has a result of 2 MB", `fix(m); say(id=m["id"], result="x" * (2 << 20))`, "validation", "more than 1048576 bytes"},
		{"has a verdict", `print("asking", file=sys.stderr, flush=True); say(id=m["id"], outcome="bury", message="no such API",
            reason="validation", stack_trace="at pay (cart.js:3:7)", error_context=["paying"])`, "validation", "no such API"},
	}
}

// TestPersistentMapBadWorkers has a worker that keeps to the protocol but for some items. What it
// does costs each of them its attempt, or none, and never the others.
func TestPersistentMapBadWorkers(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	rows := badFixers()
	d.repository(2*len(rows) + 1) // each second one is good
	worker := fixer + "home = os.getcwd()\ndef handle(m):\n    if False:\n        pass\n"
	for i, row := range rows {
		worker += fmt.Sprintf("    elif m[\"key\"] == \"f%d\":\n        %s\n", 2*i+1, row.does)
	}
	worker += `    else:
        print("log of good", file=sys.stderr, flush=True); note(m["key"]); fix(m); say(id=m["id"], result={"of": m["key"]})
main(handle)
`
	bad := fmt.Sprint("f", 2*slices.IndexFunc(rows, func(r badFixer) bool { return r.name == "does not pass" })+1)
	said := d.nixie(5, d.mapLines(worker, "-p", "2", "--max-attempts", "1", "--timeout", "5s", "--commit-required", "--validate",
		"shell: [ $NIXIE_FIELD_LINE != "+bad+" ] || { echo it does not pass >&2; exit 1; }")...)
	letters := map[string]letter{}
	for _, l := range d.letters("") {
		letters[l.Key] = d.letter(l.ID)
	}
	merged := strings.Split(d.git("log", "--first-parent", "--format=%s", "nixie/j"), "\n")
	dead := 0
	for i, row := range rows {
		key := fmt.Sprint("f", 2*i+1)
		l, died := letters[key]
		if died != (row.reason != "") || died && (l.Reason != row.reason || !strings.Contains(l.History[0].Message, row.says)) {
			t.Errorf("%s: dead is %t, with %s: %v\n%s", row.name, died, l.Reason, l.History, said.err)
			continue
		}
		want := 1
		if died {
			dead++
			want = 0
			for _, log := range l.History[0].Attachments {
				if strings.Contains(log.Text, "log of good") {
					t.Errorf("%s: its letter has the log of another item: %s", row.name, log.Text)
				}
			}
		}
		if n := len(slices.DeleteFunc(slices.Clone(merged), func(s string) bool { return s != "item "+key })); n != want {
			t.Errorf("%s: merged %d times, want %d", row.name, n, want)
		}
	}
	ran := times(d.ledger("ledger"))
	for i := range len(rows) + 1 {
		if good := fmt.Sprint("f", 2*i); ran[good] != 1 || !slices.Contains(merged, "item "+good) {
			t.Errorf("%s ran %d times", good, ran[good])
		}
	}
	if len(letters) != dead || d.git("status", "--porcelain") != "" {
		t.Errorf("%d letters, want %d\n%s", len(letters), dead, said.err)
	}
	results := d.nixie(0, "map", "results", "--job", "j", "-o", "csv").out
	if n := strings.Count(results, "\n"); n != 1+len(rows)+1 || !strings.Contains(results, `{""of"":""f0""}`) {
		t.Errorf("results: %s", results)
	}
	for _, item := range d.itemsOf(t) {
		last := item["failure_history"].([]any)[0].(map[string]any)
		context := fmt.Sprint(last["error_context"])
		if last["error_message"] == "no such API" && (last["stack_trace"] != "at pay (cart.js:3:7)" ||
			!strings.HasPrefix(context, "[item ") || !strings.Contains(context, "paying") ||
			item["worktree_artifacts"].(map[string]any)["error_logs"] != "asking\n") {
			t.Errorf("the item is %v", item)
		}
	}
	d.noProcess()
	d.verify()
}

// TestPersistentMapLines: what a process gets for an item, and what becomes of its answer. Each
// step that stays has its own processes, and others are commands.
func TestPersistentMapLines(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.repository(3)
	d.write("worker.py", loop+`
def handle(m):
    about = dict(m, argument=sys.argv[1], cwd=os.getcwd(), git=os.path.exists(os.path.join(m["folder"], ".git")),
        variables=[v for v in os.environ if v.startswith(("NIXIE_ITEM", "NIXIE_FIELD", "NIXIE_ATTEMPT", "NIXIE_RESULT"))])
    note(json.dumps(about))
    if sys.argv[1] == "fix":
        with open(os.path.join(m["folder"], m["key"]), "a") as f:
            f.write("new\n")
    fails = m["key"] == "f1" and not os.path.exists("fixed") or m["key"] == "f2" and m["attempt"] == 1
    say(id=m["id"], outcome="retry" if fails and sys.argv[1] == "check" else "complete", result=[m["key"], 1.50, sys.argv[1]])
main(handle)
`)
	worker := "exec: " + python(t) + " -IS worker.py "
	args := []string{"map", "run", "files.txt", "--repo", "repo", "--job", "j", "--no-output", "-p", "1", "--max-attempts", "2",
		"--backoff", "0", "--min-age", "none", "-o", "json", "--step", "persistent " + worker + "fix",
		"--step", "commit shell: git commit -qam x", "--validate", "persistent " + worker + "check"}
	if got := d.summary(d.nixie(5, args...)); got.Succeeded != 2 || got.Dead != 1 || got.Attempts != 5 {
		t.Errorf("%+v", got)
	}
	if l := d.letters(""); len(l) != 1 || d.letter(l[0].ID).History[0].Message != "the worker did not say why" {
		t.Errorf("the letter is %+v", l)
	}
	d.write("fixed", "")
	d.nixie(0, "map", "dlq", "retry", "--job", "j", "--reason", "fixed", "--yes", "--force")
	starts := 0
	var seen []string
	for _, line := range d.ledger("ledger") {
		if line == "start" {
			starts++
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, fmt.Sprint(m["key"], " ", m["argument"], " ", m["attempt"], " ", m["generation"]))
		folder := fmt.Sprint(m["folder"])
		if m["queue"] != "mapreduce/j" || m["body"] != m["key"] || m["git"] != true || m["cwd"] != d.dir || folder == d.path("repo") ||
			!filepath.IsAbs(folder) || len(m["variables"].([]any)) > 0 || len(m) != 15+4 {
			t.Errorf("the line of an item is %s", line)
		}
	}
	want := strings.Split("f0 fix 1 1,f0 check 1 1,f1 fix 1 1,f1 check 1 1,f1 fix 2 1,f1 check 2 1,"+
		"f2 fix 1 1,f2 check 1 1,f2 fix 2 1,f2 check 2 1,f1 fix 1 2,f1 check 1 2", ",")
	slices.Sort(want)
	if slices.Sort(seen); starts != 4 || !slices.Equal(seen, want) {
		t.Errorf("%d processes worked on %v", starts, seen)
	}
	if results := d.nixie(0, "map", "results", "--job", "j", "-o", "csv").out; !strings.Contains(results, `[""f1"",1.5,""check""]`) {
		t.Errorf("results: %s", results)
	}
	if text := d.git("show", "nixie/j:f2"); text != "old\nnew" { // an attempt begins in a clean folder
		t.Errorf("f2 is %q", text)
	}
	d.noProcess()
	d.verify()
	for _, c := range []struct{ says, step string }{
		{"an agent has a log file for each attempt", "persistent agent: ./worker"},
		{"the command has {line}", "persistent commit exec: ./worker {line}"},
		{"has no type", "resident exec: ./worker"},
	} {
		got := d.nixie(2, "map", "run", "files.txt", "--repo", "repo", "--job", "k", "--step", c.step)
		if !strings.Contains(got.err, c.says) {
			t.Errorf("%s: %s", c.step, got.err)
		}
	}
}

// TestPersistentMapStops: at a stop a process ends its item first, then gets the end of its input.
// What was not begun is done by a resume.
func TestPersistentMapStops(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.repository(3)
	cmd := d.running(2, d.mapLines(fixer+`
def handle(m):
    note(m["key"])
    while not os.path.exists("go"):
        time.sleep(0.01)
    fix(m)
    say(id=m["id"])
main(handle)
note("end of input")
`, "-p", "1")...)
	d.signal(cmd, syscall.SIGTERM)
	if !within(5*time.Second, func() bool { return strings.Contains(d.read("err"), "may finish") }) {
		t.Fatal("the signal is not noticed")
	}
	d.write("go", "")
	ended(t, cmd)
	if ledger := strings.Join(d.ledger("ledger"), ", "); ledger != "start, f0, end of input" {
		t.Errorf("%s\n%s", ledger, d.read("err"))
	}
	d.noProcess()
	d.nixie(0, "map", "resume", "--job", "j", "--merge")
	if merges := d.git("rev-list", "--count", "--first-parent", "main"); merges != "4" {
		t.Errorf("%s commits", merges)
	}
	d.verify()
}

// TestPersistentMapKilledAtAnyMoment is [TestR55_MapKilledAtAnyMoment] with processes that stay.
// Some items kill their own, once.
func TestPersistentMapKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	proof.Run(t, "map-persistent-kills", func(t *testing.T, seed uint64) int {
		rng := rand.New(rand.NewPCG(seed, 0))
		return killMaps(t, rng, 2+rng.IntN(7), func(d *workspace, flags []string) []string {
			return d.mapLines(fixer+`
def handle(m):
    note(m["key"])
    if m["key"].endswith("3") and not os.path.exists(m["key"]):
        os.mkdir(m["key"])
        os.kill(os.getpid(), 9)
    if m["key"].endswith("7"):
        sys.exit("broken")
    fix(m)
    say(id=m["id"])
main(handle)
`, append(flags, "--max-attempts", "2", "--backoff", "0", "--min-age", "none")...)
		})
	})
}

// TestPersistentMapOfAClient: a job of the client works in the folder of its item.
func TestPersistentMapOfAClient(t *testing.T) {
	t.Parallel()
	clients, err := filepath.Abs("../../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	d := newWorkspace(t)
	d.env = append(d.env, "PYTHONPATH="+clients)
	d.repository(4)
	d.write("worker.py", `import subprocess
import nixie

@nixie.job
def fix(message):
    if message.key == "f2":
        raise ValueError("no price")
    with open(message.body, "a") as file:
        file.write("new\n")
    subprocess.run(["git", "commit", "-qam", "fix " + message.key], check=True)
    return {"fixed": message.key}

nixie.run()
`)
	d.nixie(5, "map", "run", "files.txt", "--repo", "repo", "--job", "j", "-p", "2", "--max-attempts", "1", "--commit-required",
		"--merge", "--persistent", "--step", "exec: "+python(t)+" worker.py")
	letters := d.letters("")
	if len(letters) != 1 || letters[0].Key != "f2" ||
		!strings.Contains(d.letter(letters[0].ID).History[0].Message, "ValueError: no price") {
		t.Errorf("%+v", letters)
	}
	for n := range 4 {
		want := "old\nnew\n"
		if n == 2 {
			want = "old\n"
		}
		if text, err := os.ReadFile(d.path(fmt.Sprint("repo/f", n))); err != nil || string(text) != want {
			t.Errorf("f%d is %q: %v", n, text, err)
		}
	}
	if results := d.nixie(0, "map", "results", "--job", "j").out; !strings.Contains(results, `{"fixed":"f3"}`) {
		t.Errorf("results: %s", results)
	}
}
