//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A plain list of steps is a job of one item, the repository. A step that fails is repaired by its
// handler, and what the steps commit is merged.
func TestWorkflowSequence(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.write("repair", `#!/bin/sh
echo repair >> `+d.path("ledger")+`
echo thinking >> "$NIXIE_LOG_FILE"
[ $(grep -c repair `+d.path("ledger")+`) -lt 2 ] || echo "// fixed" >> f0.go
`)
	d.workflow(1, `- shell: echo test >> LEDGER; grep -q fixed f0.go
  on_failure:
    max_attempts: 3
    agent: `+d.path("repair")+`
- shell: git commit -qam repaired
  commit_required: true
`)
	said := d.nixie(0, flowRun("--job", "fix", "--merge")...)
	if !strings.Contains(said.err, "1 item: 1 succeeded") || !strings.Contains(said.err, "branch nixie/fix is merged") {
		t.Error(said.err)
	}
	if ran := times(d.ledger("ledger")); ran["test"] != 3 || ran["repair"] != 2 || !strings.HasSuffix(d.read("repo/f0.go"), "// fixed\n") {
		t.Errorf("ran %v: %s", ran, d.read("repo/f0.go"))
	}
	if merges := d.git("log", "--first-parent", "--format=%s"); !strings.Contains(merges, "item repository") {
		t.Error(merges)
	}
	if show := d.nixie(0, "map", "show", "--job", "fix").out; !strings.Contains(show, "1: 1 succeeded") {
		t.Error(show)
	}
}

// counted is a workflow of items a and b.
const counted = `name: j
setup: [{shell: 'echo setup >> LEDGER; printf "a\nb\n" > x.txt'}]
map: {input: x.txt, max_parallel: 1, agent_template: [{shell: 'echo item >> LEDGER; [ -e FIXED ]'}]}
reduce: [{shell: 'echo reduce >> LEDGER'}]
`

// A job keeps its file: a resume uses that of the run, and says so when the file changed.
func TestWorkflowFileOfAJob(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.workflow(1, counted)
	d.write("list.txt", "c\n")
	d.nixie(5, flowRun()...)
	d.flow("w.yaml", strings.Replace(counted, "echo reduce", "echo reduced anew", 1))
	d.flow("other.yaml", counted+"# another one\n")
	for _, tc := range []struct {
		code int
		args []string
		says string
	}{
		{2, []string{"map", "run", "other.yaml", "--repo", "repo"}, "job j is the one of " + d.path("w.yaml") + ", and "},
		{2, []string{"map", "run", "list.txt", "--repo", "repo", "--job", "j", "--", "true"}, "job j is the one of the workflow file "},
		{2, flowRun("--", "true"), "w.yaml is a workflow file, which has its own steps: leave out --"},
		{2, flowRun("--step", "exec: true"), "leave out --step, --validate and --persistent"},
		{2, []string{"map", "run", "w.yaml", "a", "b", "--repo", "repo"}, "2 lists: give one after the workflow file, or none"},
		{5, []string{"map", "resume", "--job", "j"}, "w.yaml has changed: job j goes on with it as it was; --changed takes the new one"},
		{5, flowRun(), "w.yaml has changed: job j goes on with it as it was"},
		{2, []string{"map", "run", "list.txt", "--repo", "repo", "--changed", "--", "true"},
			"--changed and --dry-run are for a workflow file"},
	} {
		if said := d.nixie(tc.code, tc.args...); !strings.Contains(said.err, tc.says) {
			t.Errorf("%v: %s", tc.args, said.err)
		}
	}
	if ran := times(d.ledger("ledger")); ran["setup"] != 1 || ran["item"] != 2 || ran["reduce"] != 1 {
		t.Errorf("ran: %v", ran)
	}
	d.write("fixed", "")
	d.nixie(0, "dlq", "redrive", "--filter", "queue:mapreduce/j", "--reason", "fixed", "--yes")
	d.nixie(0, "work", "mapreduce/j", "--drain", "--", "true")
	if show := d.nixie(0, "map", "show", "--job", "j").out; !strings.Contains(show, "out of date: more items have succeeded since") ||
		!strings.Contains(show, "map resume --job j") {
		t.Error(show)
	}
	d.nixie(0, "map", "resume", "--job", "j", "--changed")
	if ran := times(d.ledger("ledger")); ran["setup"] != 1 || ran["reduce"] != 1 || ran["reduced anew"] != 1 {
		t.Errorf("ran after the items had succeeded: %v", ran)
	}
	if show := d.nixie(0, "map", "show", "--job", "j").out; strings.Contains(show, "out of date") {
		t.Error(show)
	}
	if err := os.Remove(d.path("w.yaml")); err != nil {
		t.Fatal(err)
	}
	if said := d.nixie(0, "map", "resume", "--job", "j").err; !strings.Contains(said, "w.yaml is gone: job j goes on with it as it was") {
		t.Error(said)
	}
	d.nixie(0, "map", "run", "list.txt", "--repo", "repo", "--job", "l", "--", "true")
	if said := d.nixie(2, "map", "run", "other.yaml", "--repo", "repo", "--job", "l").err; !strings.Contains(said,
		"job l is the one of a list and a command: give the workflow another name by --job") {
		t.Error(said)
	}
}

// What setup leaves without a commit is there when the list is read and for reduce. A reduce that
// is repeated finds the files that git tracks as they were committed, and the others as they were
// left.
func TestWorkflowLeavesFiles(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.workflow(1, `name: j
setup: [{shell: 'echo changed > f0.go; echo a > new.txt'}]
map: {input: new.txt, agent_template: [{shell: 'test ! -e new.txt; cat f0.go >> LEDGER'}]}
reduce:
  - shell: cat f0.go new.txt >> LEDGER; echo more >> f0.go; echo b >> new.txt; [ -e FIXED ]
`)
	said := d.nixie(5, flowRun()...)
	if !strings.Contains(said.err, "setup and reduce left 2 files without a commit, in ") {
		t.Error(said.err)
	}
	const first = "package example\nfunc F0() int { return 0 }\n"
	if text := d.read("ledger"); text != first+"changed\na\n" {
		t.Errorf("reduce saw %q", text)
	}
	d.write("fixed", "")
	d.nixie(0, "map", "dlq", "retry", "--job", "j", "--reason", "fixed", "--yes")
	if text := d.read("ledger"); text != first+"changed\na\n"+first+"a\nb\n" {
		t.Errorf("the repeated reduce saw %q", text)
	}
	d.verify()
}

// A list of lines may have the name of a workflow file.
func TestWorkflowOrList(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.workflow(1, "a\nb\n")
	d.nixie(0, "map", "run", "w.yaml", "--format", "lines", "--repo", "repo", "--job", "j", "--", "true")
	for _, tc := range []struct{ text, says string }{
		{"map:\n  input: x\n", "w.yaml:1:1: map has no agent_template"},
		{"setup: [{shell: true}]\nmap: {input: none.json, agent_template: [{shell: 'true'}]}\n",
			"map.input of "},
		{"map: {input: ../list.json, agent_template: [{shell: 'true'}]}\n", "../list.json"},
	} {
		d.flow("w.yaml", tc.text)
		if said := d.nixie(2, "map", "run", "w.yaml", "--repo", "repo", "--job", "k", "--changed"); !strings.Contains(said.err, tc.says) {
			t.Errorf("%s: %s", tc.text, said.err)
		}
	}
}

// The files of examples/workflow do what they say, with the agent that is there too.
func TestWorkflowExamples(t *testing.T) {
	t.Parallel()
	folder, err := filepath.Abs("../../examples/workflow")
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]struct{ command, says string }{
		"annotate.yaml": {"head -1 report.txt; tail -1 f1.go", "2 of 2 files are annotated\n// looked at"},
		"fix.yaml":      {"git log --first-parent --format=%s -1 nixie/fix; ls repaired", "item repository\nrepaired"},
		"merge.yaml":    {"git log --format=%s -1; ls", "lines, 3 of 3\nf0.go\nf1.go\ngo.mod\nline-a\nline-b\nline-c"},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			d := newWorkspace(t)
			d.workflow(2, "")
			d.env = append(d.env, "NIXIE_AGENT="+folder+"/agent.sh")
			d.nixie(0, "map", "run", folder+"/"+file, "--repo", "repo", "--no-output", "--merge")
			cmd := d.command("sh", "-c", want.command)
			cmd.Dir = d.path("repo")
			if out := d.finish(cmd); strings.TrimSpace(out.out) != want.says {
				t.Errorf("%s%s", out.out, out.err)
			}
			d.verify()
		})
	}
}

// A dry run prints what a file does, and runs nothing of it.
func TestWorkflowDryRun(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.workflow(1, counted)
	said := d.nixie(0, flowRun("--dry-run")...).out
	if !strings.Contains(said, "the items are not known: setup makes x.txt, and nothing runs\n") || !strings.Contains(said, "echo reduce") {
		t.Error(said)
	}
	d.write("list.txt", "c\nb\na\n")
	said = d.nixie(0, "map", "run", "w.yaml", "list.txt", "--repo", "repo", "--dry-run", "--where", `item.line != "b"`,
		"--sort-by", "line").out
	if !strings.Contains(said, "the items of list.txt are a, c\n") {
		t.Error(said)
	}
	if d.read("ledger") != "" || strings.Contains(d.git("for-each-ref"), "nixie") {
		t.Error("something ran")
	}
}
