package arch

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// falseTrees break one rule each.
var falseTrees = []struct {
	name  string
	files map[string]string
	rule  string
	text  string // part of what is printed
}{
	{"unknown package", map[string]string{"billing/a.go": "package billing"}, "not-in-plan", "decision record"},
	{"import up", map[string]string{"policy/a.go": "package policy\nimport _ \"" + Module + "/worker\"", "worker/a.go": "package worker"},
		"floor", "imports go down only"},
	{"import across", map[string]string{"worker/a.go": "package worker\nimport r \"" + Module + "/redrive\"\nconst X = r.X"}, "floor",
		"neighbours"},
	{"engine knows leaf", map[string]string{"office/a.go": "package office\nimport s \"" + Module + "/store/sqlite\"\nconst X = s.X"},
		"floor", "only internal/app knows"},
	{"cli knows leaf", map[string]string{"internal/cli/a.go": "package cli\nimport s \"" + Module + "/store/memory\"\nconst X = s.X"},
		"floor", "only internal/app knows"},
	{"leaf knows leaf", map[string]string{"store/itemdir/a.go": "package itemdir\nimport s \"" + Module +
		"/store/memory\"\nconst X = s.X"}, "floor", "only internal/app knows"},
	{"part imports whole", map[string]string{"mapreduce/worktree/a.go": "package worktree\nimport s \"" + Module +
		"/mapreduce\"\nconst X = s.X"}, "floor", "neighbours"},
	{"assembly against its order", map[string]string{"internal/config/a.go": "package config\nimport s \"" + Module +
		"/internal/app\"\nconst X = s.X"}, "floor", "neighbours"},
	{"fat main", map[string]string{"cmd/nixie/a.go": "package main\nimport s \"" + Module + "/office\"\nconst X = s.X"}, "floor",
		"internal/cli only"},
	{"ships a proof", map[string]string{"store/memory/a.go": "package memory\nimport s \"" + Module + "/store/storetest\"\nconst X = s.X"},
		"floor", "does not ship"},
	{"suite knows a leaf", map[string]string{"store/storetest/a.go": "package storetest\nimport s \"" + Module +
		"/store/sqlite\"\nconst X = s.X"}, "floor", "it may import"},
	{"import of nothing planned", map[string]string{"worker/a.go": "package worker\nimport s \"" + Module + "/billing\"\nconst X = s.X"},
		"floor", "not in the floor plan"},
	{"words with a library", map[string]string{"a.go": "package nixie\nimport \"golang.org/x/sys/unix\"\nconst X = unix.X"},
		"root-std-only", "standard library alone"},

	{"import for effect", map[string]string{"worker/a.go": "package worker\nimport _ \"image/png\""}, "import-for-effect", "registries"},

	{"sleep in a test", map[string]string{"worker/a_test.go": "package worker\nimport \"time\"\nfunc x() { time.Sleep(1) }"}, "sleep",
		"a guess"},
	{"goroutine", map[string]string{"policy/a.go": "package policy\nfunc x() { go x() }"}, "goroutine", "owns concurrency"},
	{"silent skip", map[string]string{"worker/a_test.go": "package worker\nfunc x(t *T) { t.Sk" + "ip() }"}, "skip", "says why"},
	{"skip now", map[string]string{"worker/a_test.go": "package worker\nfunc x(t *T) { t.SkipN" + "ow() }"}, "skip", "says why"},

	{"empty variable", map[string]string{"worker/a.go": "package worker\nvar mu int"}, "package-variable", "starts empty"},
	{"lock", map[string]string{"worker/a.go": "package worker\nimport \"sync\"\nvar mu = sync.Mutex{}"}, "package-variable", "lock"},
	{"pointer", map[string]string{"worker/a.go": "package worker\nvar reg = &x{}"}, "package-variable", "points to"},
	{"exported table", map[string]string{"worker/a.go": "package worker\nvar Table = []int{1}"}, "package-variable", "every importer"},
	{"written table", map[string]string{"worker/a.go": "package worker\nvar table = map[int]int{}\nfunc x() { table[1] = 2 }"},
		"package-variable", "worker/a.go:3"},
	{"table written by a test", map[string]string{"worker/a.go": "package worker\nvar table = []int{1}",
		"worker/a_test.go": "package worker\nfunc x() { table[0]++ }"}, "package-variable", "a_test.go:2"},
	{"sorted table", map[string]string{"worker/a.go": "package worker\nimport \"slices\"\nvar table = []int{1}\nfunc x() { " +
		"slices.Sort(table) }"}, "package-variable", "is changed"},
	{"lent table", map[string]string{"worker/a.go": "package worker\nvar table = []int{1}\nfunc x() { f(&table) }"}, "package-variable",
		"is changed"},
	{"function variable", map[string]string{"worker/a.go": "package worker\nvar hook = func() {}"}, "package-variable",
		"declared with func"},
	{"other call", map[string]string{"worker/a.go": "package worker\nvar x = make(chan int)"}, "package-variable", "constructors"},
	{"other generic call", map[string]string{"worker/a.go": "package worker\nvar x = newCache[int](1)"}, "package-variable",
		"constructors"},
	{"plain value", map[string]string{"worker/a.go": "package worker\nvar x = 1"}, "package-variable", "const"},

	{"long file", map[string]string{"worker/a.go": "package worker\n" + strings.Repeat("\n", maxFileLines)}, "file-size", "limit is 600"},
	{"long function", map[string]string{"worker/a.go": "package worker\nfunc x() {\n" + strings.Repeat("\n", maxFuncLines) + "}"},
		"function-size", "limit is 80"},
	{"empty name", map[string]string{"worker/a.go": "package util"}, "package-name", "says nothing"},
	{"unfinished", map[string]string{"worker/a.go": "package worker\n// TO" + "DO: more"}, "unfinished", "tracker"},
	{"unfinished prose", map[string]string{"docs/a.md": "x\nFIX" + "ME"}, "unfinished", "docs/a.md:2"},
	{"stub", map[string]string{"worker/a.go": "package worker\nfunc x() { panic(\"unimplemented\") }"}, "stub", "not there"},
	{"retired word", map[string]string{"mapreduce/a.sql": "-- a claim takes its tu" + "rn"}, "retired-word", "mapreduce/a.sql:1"},
	{"retired words", map[string]string{"mapreduce/a.md": "So ma" + "ny rows"}, "retired-word", "mapreduce/a.md:1"},
	{"retired name", map[string]string{"mapreduce/a.go": "package mapreduce\nconst X = Queue" + "Look"}, "retired-word",
		"mapreduce/a.go:2"},
	{"riddle", map[string]string{"mapreduce/a.go": "package mapreduce\n\n// x is wh" + "ere it goes.\nconst x = 1"}, "riddle",
		"say what it does"},
	{"wide code", map[string]string{"mapreduce/a.go": "package mapreduce\n\nconst x = \"" + strings.Repeat("x", maxCode) + "\""}, "width",
		"limit is 140"},
	{"wide comment", map[string]string{"mapreduce/a.go": "package mapreduce\n\n// " + strings.Repeat("x ", maxComment/2) +
		"\nconst x = 1"}, "width", "limit is 100"},
	{"machine path", map[string]string{"docs/a.md": "\nsee /ho" + "me/ann/x"}, "machine-path", "docs/a.md:2"},
	{"registry", map[string]string{"Makefile": "x:\n\tcurl proxy." + "golang.org"}, "registry-host", "Makefile:2"},
}

func TestFalseTrees(t *testing.T) {
	for _, tc := range falseTrees {
		t.Run(tc.name, func(t *testing.T) {
			found := violations(t, tc.files)
			hit := slices.ContainsFunc(found, func(v Violation) bool {
				return v.Rule == tc.rule && strings.Contains(v.String(), tc.text)
			})
			if !hit {
				t.Errorf("want a violation of %s with %q, got %v", tc.rule, tc.text, found)
			}
		})
	}
}

// TestTrueTree has what is close to each rule and allowed.
func TestTrueTree(t *testing.T) {
	found := violations(t, map[string]string{
		"error.go":        "package nixie\nimport \"errors\"\nvar ErrX = errors.New(\"x\")",
		"example_test.go": "package nixie_test\nimport \"" + Module + "/store/memory\"\nvar state = memory.X",
		"policy/a.go":     "package policy\nimport (\"net\"\n\"os\")\nvar _ = []any{os.ErrDeadlineExceeded, net.OpError{}}",
		"worker/a.go": "package worker\nimport (\"time\"\n\"" + Module + "/store\")\nfunc x() { f(time.Now); _ = store.X " +
			"}\nvar _ store.X = y{}",
		"worker/b.go": "package worker\nimport \"regexp\"\nvar (\npattern = regexp.MustCompile(`x`)\ntable = " +
			"[]int{1}\n)\nfunc y() { table := []int{}; table[0] = 1 }",
		"worker/a_test.go": "package worker\nimport (\"testing/synctest\"\n\"time\")\nfunc x(t *T) { synctest.Test(t, func(t *T) " +
			"{ time.Sleep(1) }); t.Skip(\"why\") }",
		"store/sqlite/a.go": "package sqlite\nimport (\"embed\"\n\"zombiezen.com/go/sqlite\")\n//go:embed *.sql\nvar files " +
			"embed.FS\nconst X = sqlite.X",
		"internal/app/a.go": "package app\nimport (\"" + Module + "/store/sqlite\"\n\"" + Module + "/internal/config\")\nconst X = " +
			"sqlite.X + config.X",
		"internal/cli/a.go":     "package cli\nimport \"" + Module + "/internal/app\"\nconst X = app.X",
		"cmd/nixie/a.go":        "package main\nimport (\"os\"\n\"" + Module + "/internal/cli\")\nfunc main() { os.Exit(cli.Main()) }",
		"bench/store/a.go":      "package store\nimport \"" + Module + "/store/memory\"\nconst X = memory.X",
		"examples/a/a.go":       "package main\nimport \"" + Module + "\"\nvar placed = nixie.NewType[int](\"placed\")",
		"mapreduce/a.go":        "package mapreduce\nimport \"" + Module + "/mapreduce/worktree\"\nconst X = worktree.X",
		"store/testdata/x/a.go": "this is not Go",
		"docs/decisions/1.md":   "the next tu" + "rn",
		"store/a.go":            "package store\n\nfunc ExampleX() {\n\t// Output:\n\t// " + strings.Repeat("x", maxComment) + "\n}",
		"docs/a.md": "[why](decisions/0008-stages-are-noted-be" + "side-the-store.md), return, curl localhost/work/claim, " +
			"{dir}/tmp/x, ./root, the todo list",
	})
	for _, v := range found {
		t.Error(v)
	}
}

// violations checks a false tree.
func violations(t *testing.T, files map[string]string) []Violation {
	t.Helper()
	return Check(load(t, files))
}

func load(t *testing.T, files map[string]string) *Tree {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tree, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
