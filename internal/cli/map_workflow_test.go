//go:build unix

package cli_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/proof"
)

// annotate is a workflow over a Go module. Its setup counts the files and lists them, each item is
// annotated, some fail, reduce writes a report of results and letters, and merge steps merge. Each
// step writes its phase to the file ledger.
const annotate = `name: annotate
env:
  MARK: "// looked at"
setup:
  - shell: echo setup >> LEDGER; ls f*.go | wc -l | tr -d ' '
    capture: files
  - shell: echo setup >> LEDGER; ls f*.go | sed 's/.*/{"path":"&","id":"&"}/' > items.jsonl
  - shell: echo setup >> LEDGER; echo "${files} files" > counted && git add counted && git commit -qm counted
    commit_required: true
map:
  input: items.jsonl
  max_parallel: 4
  agent_template:
    - shell: echo item >> LEDGER; case ${item.path} in *3.go) [ -e FIXED ] || exit 3;; esac; echo "$MARK, one of ${files}" >> ${item.path}
    - shell: git commit -qam "annotate ${item.path}" && wc -l < ${item.path} | sed 's/ *\(.*\)/{"lines":\1}/' > "$NIXIE_RESULT_FILE"
      commit_required: true
reduce:
  - shell: echo reduce >> LEDGER; echo "${map.successful} of ${map.total}, without ${map.failed}; setup said ${setup.output}" > report
  - shell: echo reduce >> LEDGER; sed -e 's/"id":"[^"]*",//' -e 's/,"signature":.*//' "$NIXIE_RESULTS_FILE" >> report
  - shell: echo reduce >> LEDGER; git add report && git commit -qm report
    commit_required: true
merge:
  - shell: echo merge >> LEDGER; test -e counted || echo no file yet
  - shell: echo merge >> LEDGER; git merge -q --no-ff -m "all of ${merge.source_branch}" ${merge.source_branch}
`

// reported is the report of annotate for 14 files.
const reported = `12 of 14, without 2; setup said 
{"item":"f0.go","status":"succeeded","result":{"lines":3},"letter":null}
{"item":"f1.go","status":"succeeded","result":{"lines":3},"letter":null}
{"item":"f10.go","status":"succeeded","result":{"lines":3},"letter":null}
{"item":"f11.go","status":"succeeded","result":{"lines":3},"letter":null}
{"item":"f12.go","status":"succeeded","result":{"lines":3},"letter":null}
{"item":"f13.go","status":"dead","result":null,"letter":{"reason":"command-failed","message":"exit status 3"
{"item":"f2.go","status":"succeeded","result":{"lines":3},"letter":null}
{"item":"f3.go","status":"dead","result":null,"letter":{"reason":"command-failed","message":"exit status 3"
{"item":"f4.go","status":"succeeded","result":{"lines":3},"letter":null}
{"item":"f5.go","status":"succeeded","result":{"lines":3},"letter":null}
{"item":"f6.go","status":"succeeded","result":{"lines":3},"letter":null}
{"item":"f7.go","status":"succeeded","result":{"lines":3},"letter":null}
{"item":"f8.go","status":"succeeded","result":{"lines":3},"letter":null}
{"item":"f9.go","status":"succeeded","result":{"lines":3},"letter":null}
`

// workflow makes a Go module and a workflow file, in which LEDGER and FIXED are paths here.
func (d *workspace) workflow(files int, text string) {
	d.t.Helper()
	d.env = append(d.env, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=ann", "GIT_AUTHOR_EMAIL=ann@desk", "GIT_COMMITTER_NAME=ann",
		"GIT_COMMITTER_EMAIL=ann@desk", "LC_ALL=C")
	if err := os.MkdirAll(d.path("repo"), 0o755); err != nil {
		d.t.Fatal(err)
	}
	d.write("repo/go.mod", "module example\n\ngo 1.26\n")
	for n := range files {
		d.write(fmt.Sprintf("repo/f%d.go", n), fmt.Sprintf("package example\nfunc F%d() int { return %d }\n", n, n))
	}
	d.git("init", "--quiet", "--initial-branch", "main")
	d.git("add", "-A")
	d.git("commit", "--quiet", "-m", "first")
	d.flow("w.yaml", text)
}

// flow writes a workflow file.
func (d *workspace) flow(name, text string) {
	d.t.Helper()
	d.write(name, strings.NewReplacer("LEDGER", d.path("ledger"), "FIXED", d.path("fixed")).Replace(text))
}

// flowRun is the command that runs the workflow file.
func flowRun(flags ...string) []string {
	return append([]string{"map", "run", "w.yaml", "--repo", "repo", "--no-output", "--max-attempts", "1", "--max-crashes", "9"}, flags...)
}

// outcome returns what a workflow left in the checkout: its tree, and its report.
func (d *workspace) outcome() (tree, report string) {
	d.t.Helper()
	return d.git("rev-parse", "HEAD^{tree}"), d.read("repo/report")
}

// A workflow runs setup, map, reduce and merge over a Go module: its report names results and
// letters. Killed at random moments of each phase, it ends in the same tree and the same report.
// Fixed and run again, it reduces again.
func TestWorkflowOfAGoModule(t *testing.T) {
	t.Parallel()
	const files = 14
	d := newWorkspace(t)
	d.workflow(files, annotate)
	base := d.git("rev-parse", "HEAD")
	said := d.nixie(5, flowRun()...)
	for _, want := range []string{"12 succeeded, 2 dead", "reduce runs without 2 items that died", "setup   succeeded\nreduce  succeeded\n",
		"setup and reduce left 1 file without a commit, in ", "items.jsonl"} {
		if !strings.Contains(said.err, want) {
			t.Errorf("no %q in %s", want, said.err)
		}
	}
	if d.git("rev-parse", "HEAD") != base || d.git("status", "--porcelain") != "" {
		t.Error("the checkout changed before the merge")
	}
	if said := d.nixie(0, "map", "merge", "--job", "annotate").out; said != "branch nixie/annotate is merged\n" {
		t.Error(said)
	}
	tree, report := d.outcome()
	if report != reported {
		t.Errorf("report:\n%s", report)
	}
	if text := d.read("repo/counted") + d.read("repo/f0.go") + d.read("repo/f3.go"); text != "14 files\npackage example\n"+
		"func F0() int { return 0 }\n// looked at, one of 14\npackage example\nfunc F3() int { return 3 }\n" {
		t.Errorf("merged: %s", text)
	}
	merges := d.git("log", "--first-parent", "--format=%s", base+"..nixie/annotate")
	if lines := strings.Split(merges, "\n"); len(lines) != 14 || lines[0] != "reduce" || lines[13] != "setup" {
		t.Errorf("merges: %s", merges)
	}
	d.write("fixed", "")
	said = d.nixie(0, "map", "dlq", "retry", "--job", "annotate", "--reason", "fixed", "--yes")
	d.nixie(0, "map", "merge", "--job", "annotate")
	if !strings.Contains(said.err, "14 succeeded") || !strings.HasPrefix(d.read("repo/report"), "14 of 14, without 0") {
		t.Errorf("%s%s", said.err, d.read("repo/report"))
	}
	if times := times(d.ledger("ledger")); times["setup"] != 3 || times["reduce"] != 6 || times["merge"] != 4 {
		t.Errorf("steps: %v", times)
	}
	d.nixie(0, "map", "clean", "--job", "annotate")
	if trees := d.git("worktree", "list"); strings.Contains(trees, "\n") || strings.Contains(d.git("for-each-ref"), "nixie") {
		t.Errorf("left: %s", trees)
	}
	proof.Run(t, "workflow-kills", func(t *testing.T, seed uint64) int {
		rng := rand.New(rand.NewPCG(seed, 0))
		kills := 0
		for phase, steps := range map[string]int{"setup": 3, "item": files, "reduce": 3, "merge": 1} {
			t.Run(fmt.Sprint(phase, seed), func(t *testing.T) {
				d := newWorkspace(t)
				d.workflow(files, annotate)
				kills += d.killIn(phase, 1+rng.IntN(steps), flowRun("--merge"))
				d.verify()
				d.nixie(5, flowRun("--merge")...)
				gotTree, gotReport := d.outcome()
				if gotTree != tree || gotReport != report {
					t.Errorf("killed in %s: tree %s, want %s; report:\n%s", phase, gotTree, tree, gotReport)
				}
				if show := d.nixie(0, "map", "show", "--job", "annotate").out; !strings.Contains(show, "14: 12 succeeded, 2 dead") {
					t.Error(show)
				}
				d.verify()
				d.noProcess()
			})
		}
		return max(kills, 1)
	})
}

// killIn kills a run with -9 once a phase has begun that many more steps. It returns 0 if the run
// ended before.
func (d *workspace) killIn(phase string, steps int, args []string) int {
	d.t.Helper()
	runner := d.start("nixie", args...)
	if !within(60*time.Second, func() bool { return times(d.ledger("ledger"))[phase] >= steps }) {
		d.t.Fatalf("the run does not get on: %v", times(d.ledger("ledger")))
	}
	if err := runner.Process.Kill(); err != nil {
		return 0
	}
	killed := 0
	if runner.Wait() != nil && runner.ProcessState.ExitCode() == -1 {
		killed = 1
	}
	d.noProcess()
	return killed
}
