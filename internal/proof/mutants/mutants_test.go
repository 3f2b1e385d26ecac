package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const root = "../../.."

// The table keeps up with the code: every old text stands once in its file, what
// comes out is still Go, and there is a test that each pattern names.
func TestTableIsUpToDate(t *testing.T) {
	if len(table) < 36 {
		t.Errorf("%d mutants: there were more", len(table))
	}
	seen := map[int]bool{}
	for _, m := range slices.Concat(table, ofVerbs, ofLoops, ofRabbitMQ, ofPools, ofLines, ofWorkflows, ofConsole, outside) {
		if seen[m.number] || m.number < 1 || m.name == "" || m.breaks == "" || len(m.edits) == 0 {
			t.Errorf("mutant %d (%s) is there twice or not whole", m.number, m.name)
		}
		seen[m.number] = true
		for _, e := range m.edits {
			if e.old == e.new {
				t.Errorf("mutant %d changes nothing in %s", m.number, e.file)
			}
		}
		files, err := m.mutated(root)
		if err != nil {
			t.Error(err)
		}
		for name, text := range files {
			if !strings.HasSuffix(name, ".go") {
				continue // SQL is prepared by a test of its store
			}
			if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err != nil {
				t.Errorf("mutant %d: %v", m.number, err)
			}
		}
		if names := testsOf(t, m.tests.pkg); !slices.ContainsFunc(names, m.tests.names(t)) {
			t.Errorf("mutant %d: no test of %s", m.number, m.tests)
		}
	}
}

// names reports whether a finder's pattern is also after a test of that name.
func (f finder) names(t *testing.T) func(string) bool {
	t.Helper()
	var parts []string
	for part := range strings.SplitSeq(f.pattern, "|^") {
		part, _, _ = strings.Cut(part, "/")
		parts = append(parts, strings.TrimPrefix(part, "^"))
	}
	pattern, err := regexp.Compile("^(" + strings.Join(parts, "|") + ")")
	if err != nil {
		t.Errorf("pattern of %s: %v", f, err)
		return func(string) bool { return false }
	}
	return pattern.MatchString
}

// testsOf lists the tests that a package declares.
func testsOf(t *testing.T, pkg string) (names []string) {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

const toy = `package toy

func Double(n int) int { return 2 * n }
`

const toyTest = `package toy

import "testing"

func TestDouble(t *testing.T) {
	for _, n := range []int{1, 2} {
		t.Run("of", func(t *testing.T) {
			if got := Double(n); got != 2*n {
				t.Errorf("%d", got)
			}
		})
	}
}

func TestAfter(t *testing.T) {}
`

// newBench makes a module of its own to break.
func newBench(t *testing.T, test string) (*bench, *strings.Builder) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module toy\n\ngo 1.21\n", "toy/toy.go": toy, "toy/toy_test.go": test} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := &strings.Builder{}
	return &bench{root: dir, scratch: t.TempDir(), limit: 10 * time.Second, out: out}, out
}

func toyMutant(number int, pattern, changed string) mutant {
	return mutant{number: number, name: "toy", edits: []edit{{"toy/toy.go", "return 2 * n", changed}}, tests: finder{"toy", pattern}}
}

// What is found, what survives and what is a mistake of the table are distinguished,
// and the tree is not touched.
func TestVerdicts(t *testing.T) {
	b, out := newBench(t, toyTest)
	known := toyMutant(1, "", "return 3 * n")
	known.survived = true
	err := b.all(t.Context(), []mutant{
		known,
		toyMutant(2, "", "return n + n"),
		toyMutant(3, "", "return x"),
		toyMutant(4, "", "c := make(chan int); go func() { panic(\"boom\") }(); return <-c"),
		toyMutant(5, "", "select {}"),
		toyMutant(6, "TestAfter", "return 3 * n"),
	})
	if err != errSurvived {
		t.Error(err)
	}
	want := []string{
		`^ -  no mutant, toy +4 tests pass in \d+s$`,
		`^ -  no mutant, toy +1 tests pass in \d+s$`,
		`^ 1  toy +found by TestDouble/of in \d+s, survived at first$`,
		`^ 2  toy +SURVIVED in \d+s$`,
		`^ 3  toy +does not build in \d+s$`,
		`^ 4  toy +found by TestDouble/of in \d+s$`,
		`^ 5  toy +SURVIVED: TestDouble/of hangs in \d+s$`,
		`^ 6  toy +SURVIVED in \d+s$`,
		`^1 survived when they were planted, and have tests since$`,
		`^2 of 6 found$`,
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	for i := range max(len(want), len(lines)) {
		if i >= len(want) || i >= len(lines) || !regexp.MustCompile(want[i]).MatchString(lines[i]) {
			t.Fatalf("line %d is not as wanted:\n%s", i+1, out)
		}
	}
	if text, err := os.ReadFile(filepath.Join(b.root, "toy/toy.go")); err != nil || string(text) != toy {
		t.Errorf("the tree was changed: %v\n%s", err, text)
	}
}

// Red tests, and patterns that name none, prove nothing.
func TestBaselineHasToPass(t *testing.T) {
	for name, test := range map[string]struct{ tests, pattern, says string }{
		"red tests": {strings.Replace(toyTest, "got != 2*n", "got == 2*n", 1), "", "TestDouble/of"},
		"no tests":  {toyTest, "TestOther", "no test ran"},
	} {
		t.Run(name, func(t *testing.T) {
			b, out := newBench(t, test.tests)
			err := b.all(t.Context(), []mutant{toyMutant(1, test.pattern, "return 3 * n")})
			if err == nil || !strings.Contains(err.Error(), "without a mutant") || !strings.Contains(err.Error(), test.says) ||
				out.Len() > 0 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// A text that has gone, or that stands twice, is an error and not a mutant that
// was found.
func TestOldTextHasToStandOnce(t *testing.T) {
	b, _ := newBench(t, toyTest)
	for _, old := range []string{"return 7", "n"} {
		m := mutant{number: 1, edits: []edit{{"toy/toy.go", old, "x"}}, tests: finder{"toy", ""}}
		if err := b.all(t.Context(), []mutant{m}); err == nil || !strings.Contains(err.Error(), "want once") {
			t.Errorf("%q: %v", old, err)
		}
	}
}

func TestChoose(t *testing.T) {
	all := []mutant{{number: 3}, {number: 14}}
	for _, test := range []struct {
		numbers string
		want    []int
		fails   bool
	}{
		{"", []int{3, 14}, false},
		{"14", []int{14}, false},
		{"14,3", []int{14, 3}, false},
		{"1", nil, true},
		{"3,", nil, true},
	} {
		got, err := choose(all, test.numbers)
		if (err != nil) != test.fails || !slices.EqualFunc(got, test.want, func(m mutant, n int) bool { return m.number == n }) {
			t.Errorf("%q: %v, %v", test.numbers, got, err)
		}
	}
}
