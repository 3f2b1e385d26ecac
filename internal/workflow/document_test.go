package workflow_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/workflow"
)

var update = flag.Bool("update", false, "rewrite the golden plans, and the table of docs/workflow.md")

const (
	document = "../../docs/workflow.md"
	allKeys  = "## All keys\n\n"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The document has the table of the language, and so has nixie map validate --fields.
func TestDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(document)
	must(t, err)
	head, _, found := strings.Cut(string(text), allKeys)
	if !found {
		t.Fatal("the document has no list of all keys")
	}
	want := head + allKeys + tables()
	if *update {
		must(t, os.WriteFile(document, []byte(want), 0o600))
		return
	}
	if string(text) != want {
		t.Error("docs/workflow.md has not the keys of the language: run go test ./internal/workflow -run TestDocument -update")
	}
}

// tables writes a table for each block.
func tables() string {
	var b strings.Builder
	b.WriteString("Refused keys are errors with this reason, never ignored. Each key that works has a test that fails if it is\nignored.\n")
	for _, block := range workflow.Blocks() {
		fmt.Fprintf(&b, "\n### %s\n\n| key | does |\n|---|---|\n", block)
		for _, f := range workflow.Fields() {
			if f.In != block {
				continue
			}
			does := f.Does
			if !f.Works() {
				does = "refused: " + f.Refused
			}
			fmt.Fprintf(&b, "| `%s` | %s |\n", f.Name, strings.ReplaceAll(does, "|", `\|`))
		}
	}
	return b.String()
}
