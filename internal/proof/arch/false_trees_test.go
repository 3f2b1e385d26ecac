package arch

import (
	"maps"
	"path"
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
	{"import up", map[string]string{"policy/a.go": "package policy\nimport _ \"" + Module + "/worker\"", "worker/a.go": "package worker"}, "floor", "imports go down only"},
	{"import across", map[string]string{"worker/a.go": "package worker\nimport r \"" + Module + "/redrive\"\nconst X = r.X"}, "floor", "neighbours"},
	{"engine knows leaf", map[string]string{"office/a.go": "package office\nimport s \"" + Module + "/store/sqlite\"\nconst X = s.X"}, "floor", "only internal/app knows"},
	{"cli knows leaf", map[string]string{"internal/cli/a.go": "package cli\nimport s \"" + Module + "/store/memory\"\nconst X = s.X"}, "floor", "only internal/app knows"},
	{"leaf knows leaf", map[string]string{"store/redis/a.go": "package redis\nimport s \"" + Module + "/store/memory\"\nconst X = s.X"}, "floor", "only internal/app knows"},
	{"engine measures itself", map[string]string{"worker/a.go": "package worker\nimport s \"" + Module + "/telemetry\"\nconst X = s.X"}, "floor", "only internal/app knows"},
	{"part imports whole", map[string]string{"mapreduce/worktree/a.go": "package worktree\nimport s \"" + Module + "/mapreduce\"\nconst X = s.X"}, "floor", "neighbours"},
	{"assembly against its order", map[string]string{"internal/config/a.go": "package config\nimport s \"" + Module + "/internal/app\"\nconst X = s.X"}, "floor", "neighbours"},
	{"face below the office", map[string]string{"api/a.go": "package api\nimport s \"" + Module + "/store\"\nconst X = s.X"}, "floor", "it may import"},
	{"fat main", map[string]string{"cmd/nixie/a.go": "package main\nimport s \"" + Module + "/office\"\nconst X = s.X"}, "floor", "internal/cli only"},
	{"ships a proof", map[string]string{"store/memory/a.go": "package memory\nimport s \"" + Module + "/store/storetest\"\nconst X = s.X"}, "floor", "does not ship"},
	{"suite knows a leaf", map[string]string{"store/storetest/a.go": "package storetest\nimport s \"" + Module + "/store/sqlite\"\nconst X = s.X"}, "floor", "it may import"},
	{"import of nothing planned", map[string]string{"worker/a.go": "package worker\nimport s \"" + Module + "/billing\"\nconst X = s.X"}, "floor", "not in the floor plan"},
	{"words with a library", map[string]string{"a.go": "package nixie\nimport \"golang.org/x/sys/unix\"\nconst X = unix.X"}, "root-std-only", "standard library only"},
	{"face runs the loop", map[string]string{"api/a.go": "package api\nimport \"" + Module + "/worker\"\nconst X = worker.Run"}, "desk-only", "worker.Run"},

	{"impure policy", map[string]string{"policy/a.go": "package policy\nimport \"net/http\"\nconst X = http.X"}, "import", "policy is pure"},
	{"policy asks the system", map[string]string{"policy/a.go": "package policy\nimport \"os\"\nfunc x() { os.ReadFile(\"x\") }"}, "call", "ask the system nothing"},
	{"policy asks the network", map[string]string{"policy/a.go": "package policy\nimport \"net\"\nfunc x() { net.Dial(\"tcp\", \"x\") }"}, "call", "ask the network nothing"},
	{"children elsewhere", map[string]string{"worker/a.go": "package worker\nimport \"os/exec\"\nconst X = exec.X"}, "import", "internal/command"},
	{"cgo in a test", map[string]string{"worker/a_test.go": "package worker\nimport \"C\""}, "import", "C compiler"},
	{"global logger", map[string]string{"worker/a.go": "package worker\nimport \"log\"\nconst X = log.X"}, "import", "no owner"},
	{"import for effect", map[string]string{"worker/a.go": "package worker\nimport _ \"image/png\""}, "import-for-effect", "registries"},
	{"driver elsewhere", map[string]string{"store/memory/a.go": "package memory\nimport \"zombiezen.com/go/sqlite/sqlitex\"\nconst X = sqlitex.X"}, "library", "one leaf"},
	{"test library ships", map[string]string{"worker/a.go": "package worker\nimport \"pgregory.net/rapid\"\nconst X = rapid.X"}, "library", "does not ship"},

	{"engine reads the clock", map[string]string{"store/sqlite/a.go": "package sqlite\nimport \"time\"\nfunc x() { _ = time.Now() }"}, "call", "clock by option"},
	{"two default clocks", map[string]string{"worker/a.go": "package worker\nimport \"time\"\nfunc x() { f(time.Now); f(time.Now) }"}, "call", "clock by option"},
	{"renamed import", map[string]string{"worker/a.go": "package worker\nimport t \"time\"\nfunc x() { t.Sleep(1) }"}, "call", "time.Sleep"},
	{"sleep in a test", map[string]string{"api/a_test.go": "package api\nimport \"time\"\nfunc x() { time.Sleep(1) }"}, "call", "a guess"},
	{"moves decided elsewhere", map[string]string{"store/memory/a.go": "package memory\nimport nixie \"" + Module + "\"\nfunc x() { nixie.NextState(1, 2) }"}, "call", "store/lifecycle decides"},
	{"dice", map[string]string{"policy/a.go": "package policy\nimport \"math/rand/v2\"\nfunc x() { rand.Float64() }"}, "call", "dice"},
	{"environment", map[string]string{"worker/a.go": "package worker\nimport \"os\"\nfunc x() { os.Getenv(\"X\") }"}, "call", "only reader"},
	{"exit", map[string]string{"internal/cli/a.go": "package cli\nimport \"os\"\nfunc x() { os.Exit(1) }"}, "call", "deferred"},
	{"goroutine", map[string]string{"policy/a.go": "package policy\nfunc x() { go x() }"}, "goroutine", "owns concurrency"},
	{"init", map[string]string{"worker/a.go": "package worker\nfunc init() {}"}, "init", "order nobody reads"},
	{"silent skip", map[string]string{"worker/a_test.go": "package worker\nfunc x(t *T) { t.Skip() }"}, "skip", "says why"},
	{"skip now", map[string]string{"worker/a_test.go": "package worker\nfunc x(t *T) { t.SkipNow() }"}, "skip", "says why"},

	{"empty variable", map[string]string{"worker/a.go": "package worker\nvar mu int"}, "package-variable", "starts empty"},
	{"lock", map[string]string{"worker/a.go": "package worker\nimport \"sync\"\nvar mu = sync.Mutex{}"}, "package-variable", "lock"},
	{"pointer", map[string]string{"worker/a.go": "package worker\nvar reg = &x{}"}, "package-variable", "points to"},
	{"exported table", map[string]string{"worker/a.go": "package worker\nvar Table = []int{1}"}, "package-variable", "every importer"},
	{"written table", map[string]string{"worker/a.go": "package worker\nvar table = map[int]int{}\nfunc x() { table[1] = 2 }"}, "package-variable", "worker/a.go:3"},
	{"table written by a test", map[string]string{"worker/a.go": "package worker\nvar table = []int{1}", "worker/a_test.go": "package worker\nfunc x() { table[0]++ }"}, "package-variable", "a_test.go:2"},
	{"sorted table", map[string]string{"worker/a.go": "package worker\nimport \"slices\"\nvar table = []int{1}\nfunc x() { slices.Sort(table) }"}, "package-variable", "is changed"},
	{"lent table", map[string]string{"worker/a.go": "package worker\nvar table = []int{1}\nfunc x() { f(&table) }"}, "package-variable", "is changed"},
	{"function variable", map[string]string{"worker/a.go": "package worker\nvar hook = func() {}"}, "package-variable", "declared with func"},
	{"other call", map[string]string{"worker/a.go": "package worker\nvar x = make(chan int)"}, "package-variable", "constructors"},
	{"other generic call", map[string]string{"worker/a.go": "package worker\nvar x = newCache[int](1)"}, "package-variable", "constructors"},
	{"plain value", map[string]string{"worker/a.go": "package worker\nvar x = 1"}, "package-variable", "const"},

	{"long file", map[string]string{"worker/a.go": "package worker\n" + strings.Repeat("\n", maxFileLines)}, "file-size", "limit is 600"},
	{"long function", map[string]string{"worker/a.go": "package worker\nfunc x() {\n" + strings.Repeat("\n", maxFuncLines) + "}"}, "function-size", "limit is 80"},
	{"empty name", map[string]string{"worker/a.go": "package util"}, "package-name", "says nothing"},
	{"unfinished", map[string]string{"worker/a.go": "package worker\n// TO" + "DO: more"}, "unfinished", "tracker"},
	{"unfinished prose", map[string]string{"docs/a.md": "x\nFIX" + "ME"}, "unfinished", "docs/a.md:2"},
	{"stub", map[string]string{"worker/a.go": "package worker\nfunc x() { panic(\"unimplemented\") }"}, "stub", "not there"},
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

// TestPackageComment stands alone because every other false tree is given one.
func TestPackageComment(t *testing.T) {
	for source, want := range map[string]int{
		"package worker": 1,
		"// package worker, about.\npackage worker":       1,
		"// Package worker works.\npackage worker":        0,
		"// Package worker works.\n\npackage worker":      1,
		"// Package worker_test works.\n\npackage worker": 1,
	} {
		tree := load(t, map[string]string{"worker/a.go": source})
		if got := checkComments(tree); len(got) != want {
			t.Errorf("%q: %v, want %d", source, got, want)
		}
	}
}

// TestTrueTree has what is close to each rule and allowed.
func TestTrueTree(t *testing.T) {
	found := violations(t, map[string]string{
		"error.go":              "package nixie\nimport \"errors\"\nvar ErrX = errors.New(\"x\")",
		"example_test.go":       "package nixie_test\nimport \"" + Module + "/store/memory\"\nvar state = memory.X",
		"policy/a.go":           "package policy\nimport (\"net\"\n\"os\")\nvar _ = []any{os.ErrDeadlineExceeded, net.OpError{}}",
		"worker/a.go":           "package worker\nimport (\"time\"\n\"" + Module + "/store\")\nfunc x() { f(time.Now); _ = store.X }\nvar _ store.X = y{}",
		"worker/b.go":           "package worker\nimport \"regexp\"\nvar (\npattern = regexp.MustCompile(`x`)\ntable = []int{1}\n)\nfunc y() { table := []int{}; table[0] = 1 }",
		"worker/a_test.go":      "package worker\nimport (\"testing/synctest\"\n\"time\")\nfunc x(t *T) { synctest.Test(t, func(t *T) { time.Sleep(1) }); t.Skip(\"why\") }",
		"store/sqlite/a.go":     "package sqlite\nimport (\"embed\"\n\"zombiezen.com/go/sqlite\")\n//go:embed *.sql\nvar files embed.FS\nconst X = sqlite.X",
		"internal/app/a.go":     "package app\nimport (\"" + Module + "/store/sqlite\"\n\"" + Module + "/internal/config\")\nconst X = sqlite.X + config.X",
		"internal/cli/a.go":     "package cli\nimport \"" + Module + "/internal/app\"\nconst X = app.X",
		"cmd/nixie/a.go":        "package main\nimport (\"os\"\n\"" + Module + "/internal/cli\")\nfunc main() { os.Exit(cli.Main()) }",
		"api/a.go":              "package api\nimport (\"" + Module + "/office\"\n\"" + Module + "/worker\")\nvar _ worker.Desk = office.X",
		"bench/store/a.go":      "package store\nimport \"" + Module + "/store/memory\"\nconst X = memory.X",
		"examples/a/a.go":       "package main\nimport \"" + Module + "\"\nvar placed = nixie.NewType[int](\"placed\")",
		"mapreduce/a.go":        "package mapreduce\nimport \"" + Module + "/mapreduce/worktree\"\nconst X = worktree.X",
		"store/testdata/x/a.go": "this is not Go",
		"docs/a.md":             "curl localhost/work/claim, {dir}/tmp/x, ./root, the todo list",
	})
	for _, v := range found {
		t.Error(v)
	}
}

// violations checks a false tree, after giving every package a comment.
func violations(t *testing.T, files map[string]string) []Violation {
	t.Helper()
	said := maps.Clone(files)
	for name, text := range files {
		if strings.HasSuffix(name, ".go") && strings.HasPrefix(text, "package ") {
			word := strings.TrimSuffix(strings.Fields(text)[1], "_test")
			said[path.Join(path.Dir(name), "doc.go")] = "// Package " + word + " is false.\npackage " + word
		}
	}
	return Check(load(t, said))
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
