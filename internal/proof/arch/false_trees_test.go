package arch

import (
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// falseImports break a floor each.
var falseImports = []struct{ from, to, text string }{
	{"policy", "worker", "imports go down only"},
	{"worker", "redrive", "packages of one floor"},
	{"office", "store/sqlite", "only internal/app knows"},
	{"internal/cli", "store/memory", "only internal/app knows"},
	{"store/itemdir", "store/memory", "only internal/app knows"},
	{"mapreduce/worktree", "mapreduce", "packages of one floor"},
	{"internal/config", "internal/app", "packages of one floor"},
	{"cmd/nixie", "office", "internal/cli only"},
	{"store/memory", "store/storetest", "does not ship"},
	{"store/storetest", "store/sqlite", "it may import"},
	{"worker", "billing", "not in the floor plan"},
}

// falseVariables are package variables that can change.
var falseVariables = []struct{ source, text string }{
	{"var mu int", "starts empty"},
	{"import \"sync\"\nvar mu = sync.Mutex{}", "lock"},
	{"var reg = &x{}", "points to"},
	{"var Table = []int{1}", "every importer"},
	{"var table = map[int]int{}\nfunc x() { table[1] = 2 }", "worker/a.go:3"},
	{"import \"slices\"\nvar table = []int{1}\nfunc x() { slices.Sort(table) }", "is changed"},
	{"var table = []int{1}\nfunc x() { f(&table) }", "is changed"},
	{"var hook = func() {}", "declared with func"},
	{"var x = make(chan int)", "constructors"},
	{"var x = newCache[int](1)", "constructors"},
	{"var x = 1", "const"},
}

// falseTexts break another rule each. The texts are cut in two where this file must not have them.
var falseTexts = []struct{ file, source, rule, text string }{
	{"billing/a.go", "package billing", "not-in-plan", "decision record"},
	{"a.go", "package nixie\nimport \"golang.org/x/sys/unix\"\nconst X = unix.X", "root-std-only", "standard library alone"},
	{"worker/a.go", "package worker\nimport _ \"image/png\"", "import-for-effect", "registries"},
	{"worker/a_test.go", "package worker\nimport \"time\"\nfunc x() { time.Sleep(1) }", "sleep", "a guess"},
	{"policy/a.go", "package policy\nfunc x() { go x() }", "goroutine", "owns concurrency"},
	{"worker/a_test.go", "package worker\nfunc x(t *T) { t.Sk" + "ip() }", "skip", "says why"},
	{"worker/a_test.go", "package worker\nfunc x(t *T) { t.SkipN" + "ow() }", "skip", "says why"},
	{"worker/a.go", "package worker\n" + strings.Repeat("\n", maxFileLines), "file-size", "limit is 600"},
	{"worker/a.go", "package worker\nfunc x() {\n" + strings.Repeat("\n", maxFuncLines) + "}", "function-size", "limit is 80"},
	{"internal/proof/histories/a_test.go", "package histories\nimport _ \"" + Module + "/store/lifecycle\"", "second-opinion",
		"decides for itself"},
	{"store/memory/a.go", "package memory\nimport _ \"" + Module + "/store/engine\"", "second-opinion", "store/engine"},
	{"store/sqlite/a.go", "package sqlite\nfunc x() { lifecycle.Refuse(f, r) }", "driver-decides", "decides Resolve"},
	{"store/sqlite/a.go", "package sqlite\nfunc x() { store.NoStream(q, s) }", "driver-decides", "decides Unblock"},
	{"store/postgres/a.go", "package postgres\nfunc x() { l.Regroup(to, true) }", "driver-decides", "Regroup of l"},
	{"store/sqlite/a.go", "package sqlite\nfunc x() { h.Settle(st, set, steps, now) }", "driver-decides", "Settle of h"},
	{"worker/a.go", "package util", "package-name", "says nothing"},
	{"worker/a.go", "package worker\nimport \"regexp\"\nvar x = regexp.MustCompile(`x`)", "start", "x is compiled"},
	{"worker/a.go", "package worker\n// TO" + "DO: more", "unfinished", "tracker"},
	{"docs/a.md", "x\nFIX" + "ME", "unfinished", "docs/a.md:2"},
	{"worker/a.go", "package worker\nfunc x() { pan" + "ic(\"unimplemented\") }", "stub", "not there"},
	{"cmd/a.sql", "-- a claim takes its tu" + "rn", "retired-word", "cmd/a.sql:1"},
	{"cmd/a.md", "So ma" + "ny rows", "retired-word", "cmd/a.md:1"},
	{"cmd/nixie/a.go", "package main\nconst X = Queue" + "Look", "retired-word", "cmd/nixie/a.go:2"},
	{"cmd/nixie/a.go", "package main\n\n// x is wh" + "ere it goes.\nconst x = 1", "riddle", "say what it does"},
	{"cmd/nixie/a.go", "package main\n\nconst x = \"" + strings.Repeat("x", maxCode) + "\"", "width", "limit is 140"},
	{"cmd/nixie/a.go", "package main\n\n// " + strings.Repeat("x ", maxComment/2) + "\nconst x = 1", "width", "limit is 100"},
	{"docs/a.md", "\nsee /ho" + "me/ann/x", "machine-path", "docs/a.md:2"},
	{"Makefile", "x:\n\tcurl proxy." + "golang.org", "registry-host", "Makefile:2"},
}

// falseNumbers read a number as a float64.
var falseNumbers = []struct{ source, text string }{
	{"f, _ := strconv.ParseFloat(s, 64)", "strconv.ParseFloat"},
	{"f, _ := n.Float64()", "n.Float64"},
	{"var v any; json.Unmarshal(b, &v)", "json.Unmarshal into &v"},
	{"v := map[string]any{}; json.Unmarshal(b, &v)", "json.Unmarshal into &v"},
	{"v := new([]interface{}); json.Unmarshal(b, v)", "json.Unmarshal into v"},
	{"var v struct{ A struct{ B []any } }; json.Unmarshal(b, &v)", "json.Unmarshal into &v"},
	{"var v struct{ A any }; json.Unmarshal(b, &v.A)", "json.Unmarshal into &v.A"},
	{"var v body; json.Unmarshal(b, &v)", "json.Unmarshal into &v"},
	{"type own body; v := (*own)(w); json.Unmarshal(b, v)", "json.Unmarshal into v"},
	{"var v list[int]; json.Unmarshal(b, &v)", "json.Unmarshal into &v"},
	{"json.Unmarshal(b, given)", "json.Unmarshal into given"},
	{"var v T; json.Unmarshal(b, &v)", "json.Unmarshal into &v"},
	{"var v []store.Body; json.Unmarshal(b, &v)", "json.Unmarshal into &v"},
	{"d := json.NewDecoder(r); d.Decode(&v)", "without UseNumber"},
}

func TestFalseNumbers(t *testing.T) {
	try := func(source string) []Violation {
		return slices.DeleteFunc(Check(load(t, map[string]string{
			"store/a.go": "package store\ntype Body struct{ V any }",
			"worker/a.go": "package worker\nimport \"" + Module + "/store\"\ntype body struct{ v map[string]any }\ntype list[E any] " +
				"struct{ next *list[E]; v any }\ntype tree struct { next *tree; v int }\nfunc x[T any](given any) { " +
				source + "; _ = store.X }",
		})), func(v Violation) bool { return v.Rule != "float" })
	}
	for _, tc := range falseNumbers {
		if found := try(tc.source); len(found) != 1 || !strings.Contains(found[0].Text, tc.text) {
			t.Errorf("%s: want a violation with %q, got %v", tc.source, tc.text, found)
		}
	}
	for _, source := range []string{
		"n, _ := strconv.ParseInt(s, 10, 64)", "var v []map[string]json.RawMessage; json.Unmarshal(b, &v)", "d := json.NewDecoder(r); " +
			"d.UseNumber(); d.Decode(&v)", "var v struct{ A, B float64; C *tree }; json.Unmarshal(b, &v)", "json.Marshal(given)",
		"var v store.Other; json.Unmarshal(b, &v)",
	} {
		if found := try(source); len(found) > 0 {
			t.Errorf("%s: %v", source, found)
		}
	}
	stale := Check(load(t, map[string]string{"type.go": "package nixie\nfunc Handle() {}"}))
	if len(stale) != 1 || !strings.Contains(stale[0].Text, "Handle reads no number") {
		t.Errorf("a reason without need: %v", stale)
	}
}

func TestFalseTrees(t *testing.T) {
	for _, tc := range falseImports {
		source := "package " + path.Base(tc.from) + "\nimport s \"" + Module + "/" + tc.to + "\"\nconst X = s.X"
		wants(t, tc.from+"/a.go", source, "floor", tc.text)
	}
	for _, tc := range falseVariables {
		wants(t, "worker/a.go", "package worker\n"+tc.source, "package-variable", tc.text)
	}
	for _, tc := range falseTexts {
		wants(t, tc.file, tc.source, tc.rule, tc.text)
	}
	byTest := Check(load(t, map[string]string{
		"worker/a.go": "package worker\nvar table = []int{1}", "worker/a_test.go": "package worker\nfunc x() { table[0]++ }",
	}))
	if len(byTest) != 1 || !strings.Contains(byTest[0].Text, "a_test.go:2") {
		t.Errorf("a table that a test changes: %v", byTest)
	}
}

// wants looks for a violation of a rule in a tree of one file.
func wants(t *testing.T, file, source, rule, text string) {
	t.Helper()
	found := Check(load(t, map[string]string{file: source}))
	if !slices.ContainsFunc(found, func(v Violation) bool { return v.Rule == rule && strings.Contains(v.String(), text) }) {
		t.Errorf("%s: %q: want a violation of %s with %q, got %v", file, source, rule, text, found)
	}
}

// TestTrueTree has what is close to each rule and allowed.
func TestTrueTree(t *testing.T) {
	found := Check(load(t, map[string]string{
		"error.go":        "package nixie\nimport \"errors\"\nvar ErrX = errors.New(\"x\")",
		"example_test.go": "package nixie_test\nimport \"" + Module + "/store/memory\"\nvar state = memory.X",
		"policy/a.go":     "package policy\nimport (\"net\"\n\"os\")\nvar _ = []any{os.ErrDeadlineExceeded, net.OpError{}}",
		"worker/a.go": "package worker\nimport (\"time\"\n\"" + Module + "/store\")\nfunc x() { f(time.Now); _ = store.X " +
			"}\nvar _ store.X = y{}",
		"worker/b.go": "package worker\nimport (\"regexp\"\n\"sync\")\nvar (\npattern = sync.OnceValue(func() *regexp.Regexp " +
			"{ return regexp.MustCompile(`x`) })\ntable = " +
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
	}))
	for _, v := range found {
		t.Error(v)
	}
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
