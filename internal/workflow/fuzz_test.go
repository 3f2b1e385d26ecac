package workflow_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/workflow"
)

// whole checks that a text gives a plan, or errors that say where.
func whole(t *testing.T, text string) {
	t.Helper()
	f, err := workflow.Parse("w.yaml", []byte(text), "")
	var wrong *workflow.Error
	switch {
	case err == nil && f.Plan() == "":
		t.Errorf("no plan of %q", text)
	case err == nil:
	case !errors.As(err, &wrong) || len(wrong.Wrong) == 0:
		t.Errorf("%q: %v", text, err)
	default:
		lines := strings.Count(text, "\n") + 2
		for _, w := range wrong.Wrong {
			if w.Line < 1 || w.Line > lines || w.Column < 1 || w.Text == "" || strings.ContainsAny(w.Text, "\r\n") {
				t.Errorf("%q: %d:%d: %q", text, w.Line, w.Column, w.Text)
			}
		}
	}
}

// goodFiles are the files of testdata, and their examples.
func goodFiles(t testing.TB) (all []string) {
	t.Helper()
	names, err := filepath.Glob("testdata/plans/*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return all
}

func FuzzParse(f *testing.F) {
	for _, text := range goodFiles(f) {
		f.Add(text)
	}
	for _, text := range bombs() {
		f.Add(text[:min(len(text), 4<<10)])
	}
	f.Fuzz(func(t *testing.T, text string) { whole(t, text) })
}

// A thousand random changes of good files give plans, or errors that say where.
func TestRandomChanges(t *testing.T) {
	t.Parallel()
	all := goodFiles(t)
	rng := rand.New(rand.NewPCG(45, 0))
	parts := []string{"", "\n", "  ", "- ", ": ", "'", "\"", "|", ">", "&a ", "*a", "${", "}", "${item.a}", "$", "[", "]", "{",
		"}", "#", "!!x ",
		"\t", "\x00", "\xff", "é", "? ", "<<: ", "%", "@", "`", "---\n", "null", "0x1", "1e9", ",", "shell: ", "on_failure:\n"}
	for range 1000 {
		text := all[rng.IntN(len(all))]
		for range 1 + rng.IntN(4) {
			from := rng.IntN(len(text) + 1)
			to := min(from+rng.IntN(8), len(text))
			text = text[:from] + parts[rng.IntN(len(parts))] + text[to:]
		}
		whole(t, text)
	}
}

// bombs are texts that are large only for who reads them.
func bombs() map[string]string {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		fmt.Fprintf(&laughs, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i+1, i+1, i, i, i, i, i, i, i, i, i)
	}
	nested := "- shell: a\n"
	for i := range 12 {
		nested += strings.Repeat("  ", i+1) + "on_failure:\n" + strings.Repeat("  ", i+1) + "- shell: a\n"
	}
	return map[string]string{
		"more than 50000 values":      laughs.String(),
		"deeper than":                 strings.Repeat("[", 200_000),
		"it nests deeper":             strings.Repeat("{a: ", 100_000),
		"nests deeper than 60":        strings.Repeat("- ", 200_000) + "a",
		"nest deeper than 8":          nested,
		"the limit is 1048576":        strings.Repeat("# filler\n", 200_000),
		"so it would have no end":     "- &a\n  shell: x\n  on_failure: [*a]\n",
		"*b names no anchor":          "- shell: x\n  on_failure: *b\n",
		"merges keys":                 "- &a {shell: x}\n- {<<: *a}\n",
		"a second document":           "- shell: a\n---\n- shell: b\n",
		"the file is empty":           "# nothing\n",
		"holds a NUL byte":            "- shell: \"a\\0b\"\n",
		"the tag !ruby/object:Kernel": "- shell: !ruby/object:Kernel x\n",
	}
}

// A bomb is refused at once.
func TestBombs(t *testing.T) {
	t.Parallel()
	for says, text := range bombs() {
		began := time.Now()
		_, err := workflow.Parse("w.yaml", []byte(text), "")
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %s, got %.200v", says, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s took %s", says, took)
		}
		whole(t, text)
	}
}
