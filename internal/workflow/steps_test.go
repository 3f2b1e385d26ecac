//go:build linux

package workflow_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/workflow"
	"github.com/nixie-go/nixie/policy"
)

// What steps do together, for an item with the fields id, n, path, list and none. The first line of
// each file of testdata/steps says what the outcome has; an empty text is that of nothing done.
func TestSteps(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/steps/*.yaml")
	must(t, err)
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			must(t, err)
			var want string
			_, err = fmt.Sscanf(string(text), "# run %q", &want)
			must(t, err)
			got := outcomeOf(t, string(text))
			if !strings.Contains(got, want) || want == "" && got != "" {
				t.Errorf("%s\n got %s\nwant %s", text, got, want)
			}
			if strings.Contains(got, "after=") || strings.Contains(got, "handled=") || strings.Contains(got, "measured=") {
				t.Errorf("%s\n got %s", text, got)
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
	const text = "- shell: echo \"$NIXIE_ATTEMPT\"\n  capture: first\n- shell: echo ${first} >> seen; exit 1\n"
	f, err = workflow.Parse("w.yaml", []byte(text), "")
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
	got := strings.Join(o.context, "; ")
	if got != "item a; step 1 of 1; on_success, line 4: inner" || o.reason != nixie.ReasonCommandFailed {
		t.Errorf("%q, %s", got, o)
	}
}

// A program that is named by a path is looked for from the folder of its step.
func TestProgramsOfFiles(t *testing.T) {
	t.Parallel()
	j := newJob(t)
	must(t, os.WriteFile(filepath.Join(j.tree.dir, "tool"), []byte("#!/bin/sh\necho \"$@\" > ../out\n"), 0o700))
	f, err := workflow.Parse("w.yaml", []byte("- exec: ../tool 'a b' c\n  working_dir: sub\n"), "")
	must(t, err)
	if o := j.run(f.Steps, `{"id":"a"}`); o.files["out"] != "a b c\n" {
		t.Errorf("%s", o)
	}
}
