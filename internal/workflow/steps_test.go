//go:build linux

package workflow_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/workflow"
	"github.com/nixie-go/nixie/policy"
)

// What steps do together, for an item with the fields id, n, path, list and none.
func TestSteps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"a value that is not there": {mapOf("  - shell: echo ${item.nmae}\n"),
			"failed: line 4: there is no value ${item.nmae}: known are item, item.id, item.n, item.none, item.path, shell.output (validation"},
		"a capture of a step that did not run": {"- shell: echo x\n  capture: x\n  when: shell.output == 'y'\n- shell: echo ${x}\n",
			"failed: line 4: there is no value ${x}: known are item"},
		"a condition over what is not there": {mapOf("  - shell: 'true'\n    when: ${item.nmae} == 3\n"),
			"failed: line 4: when: there is no value item.nmae: known are item"},
		"a condition that asks whether it is there": {mapOf("  - shell: echo > out\n    when: is_null(item.nmae) && '${item.path}' == 'x y'\n"), `out="\n"`},
		"false is never":                       {"- shell: echo > out\n  when: false\n", ""},
		"a value as an option":                 {"- {shell: echo -rf, capture: x}\n- exec: cat ${x}\n", "the value ${x} begins with -, and argument 1 would be an option"},
		"a value inside an option":             {"- {shell: echo -rf, capture: x}\n- exec: sh -c 'echo \"$1\" > out' sh a${x}\n", `out="a-rf\n"`},
		"output that is too long":              {"- shell: head -c 70000 /dev/zero | tr '\\0' x\n  capture: x\n", "line 1: the output is longer than 65536 bytes, the limit of a value"},
		"output that nobody names may be long": {"- shell: head -c 70000 /dev/zero | tr '\\0' x\n- shell: echo > out\n", `out="\n"`},
		"long output that is named":            {"- shell: head -c 70000 /dev/zero | tr '\\0' x\n- shell: echo ${shell.output}\n", "${shell.output} has more than 65536 bytes"},
		"output that is no text":               {"- shell: printf '\\377'\n  capture: x\n", "line 1: the output is not valid UTF-8"},
		"output that is no JSON":               {"- shell: echo x\n  capture: x\n  capture_format: json\n", `the output is no JSON, and capture_format is json: "x"`},
		"the whole item":                       {mapOf("  - shell: printf %s ${item} > out\n"), `out="{\"id\":\"a\",\"n\":3,`},
		"a folder out of the tree":             {mapOf("  - shell: ln -s /tmp link\n  - shell: pwd\n    working_dir: link\n"), "working_dir:"},
		"a handler that fails":                 {"- shell: exit 3\n  on_failure: {shell: exit 4, max_attempts: 5}\n", "failed: exit status 3 (command-failed, in shell: exit 3)"},
		"a handler of a handler":               {"- shell: test -e fixed\n  on_failure:\n  - shell: test -e tool && touch fixed\n    on_failure: {shell: touch tool}\n", `fixed="" tool=""`},
		"a verdict has no handler":             {"- shell: echo '{\"outcome\":\"bury\",\"message\":\"no\"}' > $NIXIE_VERDICT\n  on_failure: {shell: touch handled}\n", "failed: no"},
		"a step that has to commit, handled": {"- shell: test -e do && git add do && git commit -qm do || exit 0\n  commit_required: true\n  on_failure: {shell: touch do}\n",
			`do="" commits=2`},
		"the output of a failure is both":                     {"- shell: echo out; echo err >&2; test -e said\n  on_failure: {claude: '${shell.output}'}\n", `said="agent: out\nerr\n"`},
		"after a failure that is passed over nothing follows": {"- shell: exit 1\n  on_failure: {shell: 'true', fail_workflow: false}\n  on_success: {shell: touch after}\n  validate: {shell: touch measured}\n", "warned"},
		"a result file that is not there":                     {"- shell: 'true'\n  validate: {shell: 'true', result_file: r.json}\n", "result_file r.json: it cannot be read"},
		"a result without the number":                         {"- shell: 'true'\n  validate: {shell: 'echo {}'}\n", "the result has no completion_percentage"},
		"a check that fails is measured again":                {"- shell: 'true'\n  validate: {shell: test -e done, on_incomplete: {shell: 'echo ${validation.gaps} > done'}}\n", `done="exit status 1\n"`},
		"retry, then the handler": {"- shell: echo x >> tries; test $(wc -l < tries) = 5\n  retry: {attempts: 2, initial_delay: 0}\n  on_failure: {shell: echo h >> tries}\n",
			`tries="x\nx\nh\nx\nx\n"`},
		"what is permanent is not repeated":    {"- shell: echo x >> tries; echo '{\"outcome\":\"retry\",\"class\":\"permanent\"}' > $NIXIE_VERDICT\n  retry: {attempts: 3, initial_delay: 0}\n", `tries="x\n"`},
		"a value of env in quotes":             {"env: {A: 'x  y'}\ncommands:\n- shell: printf '[%s]' ${A} '${A}' \"$A\" > out\n", `out="[x  y][x  y][x  y]"`},
		"a variable of Nixie is not inherited": {mapOf("  - shell: env | grep -c NIXIE_VALUE_ > out; test ${item.n} = 3\n"), `out="1\n"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := outcomeOf(t, c.text)
			if !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("%s\n got %s\nwant %s", c.text, got, c.want)
			}
			if strings.Contains(got, "after=") || strings.Contains(got, "handled=") || strings.Contains(got, "measured=") {
				t.Errorf("%s\n got %s", c.text, got)
			}
		})
	}
}

// Values that are given are known, and what steps made is handed on.
func TestValuesOfPhases(t *testing.T) {
	t.Parallel()
	f, err := workflow.Parse("w.yaml", []byte(`
setup: [{shell: x, capture: count}]
map: {input: i, agent_template: [{shell: y}]}
reduce:
- shell: printf '%s|' ${map.total} ${map.results[1].id} ${count} ${setup.output} > out; echo last
  capture: sum
- shell: echo '{"a":[1]}'
  id: facts
  capture: facts_json
  capture_format: json
`), "")
	must(t, err)
	j := newJob(t)
	j.given = map[string]json.RawMessage{"map": json.RawMessage(`{"total":2,"results":[{"id":"a"},{"id":"b c"}]}`),
		"count": json.RawMessage(`"7"`), "setup": json.RawMessage(`{"output":"of setup"}`)}
	o := j.run(f.Reduce.Steps, `{"id":"reduce"}`)
	if o.failed != "" || o.files["out"] != "2|b c|7|of setup|" {
		t.Errorf("%s", o)
	}
	kept, err := json.Marshal(j.kept)
	must(t, err)
	want := `{"facts":{"output":"{\"a\":[1]}"},"facts_json":{"a":[1]},"shell":{"output":"{\"a\":[1]}"},"sum":"last"}`
	if string(kept) != want {
		t.Errorf("handed on %s\nwant %s", kept, want)
	}
}

// An attempt of an item begins with what was given, not with what an attempt before captured.
func TestCapturesOfAnotherAttempt(t *testing.T) {
	t.Parallel()
	f, err := workflow.Parse("w.yaml", []byte(`
- shell: echo "$NIXIE_ATTEMPT"
  capture: first
  when: ${start} == 1
- shell: echo ${first} >> seen; exit 1
`[1:]), "")
	if err == nil || !strings.Contains(err.Error(), "${start}") {
		// start is no capture of the file
		t.Fatal(f, err)
	}
	f, err = workflow.Parse("w.yaml", []byte("- shell: echo \"$NIXIE_ATTEMPT\"\n  capture: first\n- shell: echo ${first} >> seen; exit 1\n"), "")
	must(t, err)
	j := newJob(t)
	j.policy, err = policy.ParseDocument("max-attempts=2\nbackoff=0s")
	must(t, err)
	if o := j.run(f.Steps, `{"id":"a"}`); o.files["seen"] != "1\n2\n" {
		t.Errorf("%s", o)
	}
}

// The failure of a step within a step says where it was.
func TestContextOfHandlers(t *testing.T) {
	t.Parallel()
	f, err := workflow.Parse("w.yaml", []byte("- shell: 'true'\n  name: outer\n  on_success:\n  - shell: exit 9\n    name: inner\n"), "")
	must(t, err)
	o := newJob(t).run(f.Steps, `{"id":"a"}`)
	if got := strings.Join(o.context, "; "); got != "item a; step 1 of 1; on_success, line 4: inner" || o.reason != nixie.ReasonCommandFailed {
		t.Errorf("%q, %s", got, o)
	}
}

// A program that is named by a path is looked for from the folder of its step.
func TestProgramsOfFiles(t *testing.T) {
	t.Parallel()
	j := newJob(t)
	must(t, os.WriteFile(filepath.Join(j.place.dir, "tool"), []byte("#!/bin/sh\necho \"$@\" > ../out\n"), 0o700))
	f, err := workflow.Parse("w.yaml", []byte("- exec: ../tool 'a b' c\n  working_dir: sub\n"), "")
	must(t, err)
	if o := j.run(f.Steps, `{"id":"a"}`); o.files["out"] != "a b c\n" {
		t.Errorf("%s", o)
	}
}
