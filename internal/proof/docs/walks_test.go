package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostFiles bounds the files that a reader opens to follow one act through one store.
const mostFiles = 10

// step is a function that an act passes through.
type step struct {
	file, name string
	calls      []string // names that it calls, in the order in which they stand
}

var (
	walkRow  = regexp.MustCompile(`^\| (claim|settle|redrive) \| (memory|sqlite|postgres) \| (.*) \|$`)
	walkStep = regexp.MustCompile(`\[[^\]]+\]\(([^)]+)\)((?: ` + "`" + `\w+` + "`" + `)+)`)
)

// TestWalks follows the walks that ARCHITECTURE.md shows: every function is in its file, a
// step before it calls it, and those that one step calls come in the order of their calls.
func TestWalks(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(text)) {
		if row := walkRow.FindStringSubmatch(strings.TrimSpace(line)); row != nil {
			seen++
			t.Run(row[1]+" "+row[2], func(t *testing.T) { checkWalk(t, stepsOf(t, row[3])) })
		}
	}
	if seen != 9 {
		t.Errorf("%d walks, of three acts through three stores", seen)
	}
}

func stepsOf(t *testing.T, text string) (steps []step) {
	t.Helper()
	for _, m := range walkStep.FindAllStringSubmatch(text, -1) {
		for _, name := range strings.Fields(strings.ReplaceAll(m[2], "`", "")) {
			steps = append(steps, step{m[1], name, callsOf(t, m[1], name)})
		}
	}
	return steps
}

func checkWalk(t *testing.T, steps []step) {
	t.Helper()
	files := map[string]bool{}
	last := map[int]int{} // of a step, the call that the walk went on with
	for i, s := range steps {
		files[s.file] = true
		if i == 0 {
			continue
		}
		from, at := caller(steps[:i], s.name, last)
		if from < 0 {
			t.Errorf("%s in %s: no step before it calls it, or what it calls later stands before", s.name, s.file)
			continue
		}
		last[from] = at
	}
	if len(files) > mostFiles {
		t.Errorf("%d files, the limit is %d", len(files), mostFiles)
	}
}

// caller is the newest step that calls a function after what the walk went on with there.
func caller(steps []step, name string, last map[int]int) (from, at int) {
	for i, s := range slices.Backward(steps) {
		for at := last[i]; at < len(s.calls); at++ {
			if s.calls[at] == name {
				return i, at
			}
		}
	}
	return -1, 0
}

// callsOf lists what a function calls, or gives to others to be called.
func callsOf(t *testing.T, file, name string) (calls []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "..", file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, decl := range parsed.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Name.Name != name {
			continue
		}
		found = true
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				calls = append(calls, sel.Sel.Name)
			} else if call, ok := n.(*ast.CallExpr); ok {
				if id, ok := call.Fun.(*ast.Ident); ok {
					calls = append(calls, id.Name)
				}
			}
			return true
		})
	}
	if !found {
		t.Errorf("%s has no function %s", file, name)
	}
	return calls
}
