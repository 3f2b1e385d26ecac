//go:build linux

package workflow_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/workflow"
)

// example is a file of testdata/fields, which shows a field. Its first line says whether its plan
// or its run is looked at, and what the outcome has. Without the lines that end in #! it has that
// not.
type example struct{ kind, want, text string }

// exampleOf reads the example of a field.
func exampleOf(t *testing.T, name string) (e example, is bool) {
	t.Helper()
	text, err := os.ReadFile("testdata/fields/" + name + ".yaml")
	if errors.Is(err, fs.ErrNotExist) {
		return e, false
	}
	must(t, err)
	first, _, _ := strings.Cut(string(text), "\n")
	if _, err := fmt.Sscanf(first, "# %s %q", &e.kind, &e.want); err != nil {
		t.Fatalf("%s: %q: %v", name, first, err)
	}
	e.text = string(text)
	return e, true
}

// look tells the outcome of a text.
func (e *example) look(t *testing.T, text string) string {
	t.Helper()
	if e.kind == "plan" {
		return planOf(text)
	}
	return outcomeOf(t, text)
}

// Each field that works has an example, and without the field the outcome is another one.
func TestFields(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	for _, f := range workflow.Fields() {
		name := f.In + "." + f.Name
		shown[name+".yaml"] = true
		e, is := exampleOf(t, name)
		if f.Works() != is {
			t.Errorf("%s: works %v, and has an example: %v", name, f.Works(), is)
		}
		if !is {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(e.text, "#!") {
				t.Fatal("the example has no line that can be left out")
			}
			with, without := e.look(t, e.text), e.look(t, withoutMarked(e.text))
			if !strings.Contains(with, e.want) || with == without {
				t.Errorf("with it:\n%s\nwithout it:\n%s\nwant %s", with, without, e.want)
			}
			if e.want != "" && strings.Contains(without, e.want) {
				t.Errorf("without it also:\n%s", without)
			}
		})
	}
	files, err := os.ReadDir("testdata/fields")
	must(t, err)
	for _, f := range files {
		if !shown[f.Name()] {
			t.Errorf("%s is an example of no field", f.Name())
		}
	}
}

// withoutMarked leaves out the lines that end in #!.
func withoutMarked(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "#!\n") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// planOf returns the plan of a file, or its errors. A file without a map gets one.
func planOf(text string) string {
	if !strings.Contains(text, "map:") && !strings.Contains(text, "without a map") {
		text += "map: {input: list, agent_template: [{shell: build}]}\n"
	}
	f, err := workflow.Parse("w.yaml", []byte(text), "")
	if err != nil {
		return err.Error()
	}
	return f.Plan()
}
