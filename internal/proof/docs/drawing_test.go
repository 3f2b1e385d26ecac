package docs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/store"
)

var redraw = flag.Bool("redraw", false, "write the drawings of states anew")

// TestDrawingsOfStates keeps the drawings in the documents equal to the tables
// in the code. Run it with -redraw after a change of the tables.
func TestDrawingsOfStates(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "concepts.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var messages, letters []string
	for _, m := range store.MessageMoves() {
		messages = append(messages, arrow(string(m.From), string(m.To), m.On))
	}
	for _, m := range store.LetterMoves() {
		letters = append(letters, arrow(string(m.From), string(m.To), m.On))
	}
	want := draw(draw(string(data), "store.MessageMoves", messages), "store.LetterMoves", letters)
	switch {
	case want == string(data):
	case *redraw:
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("docs/concepts.md does not show the tables of state.go: run go test ./internal/proof/docs -redraw")
	}
}

func arrow(from, to string, on store.Event) string {
	if from == "" {
		from = "[*]"
	}
	if to == "" {
		to = "[*]"
	}
	return fmt.Sprintf("    %s --> %s: %s\n", from, to, on)
}

// draw replaces the drawing after the comment that names a table.
func draw(text, table string, arrows []string) string {
	head, rest, found := strings.Cut(text, "<!-- drawn from "+table+" -->\n```mermaid\nstateDiagram-v2\n")
	_, tail, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		return ""
	}
	return head + "<!-- drawn from " + table + " -->\n```mermaid\nstateDiagram-v2\n" + strings.Join(arrows, "") + "```\n" + tail
}
