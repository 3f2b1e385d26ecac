package trust

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/nixie-go/nixie/internal/proof/docs"
)

const root = "../../.."

var update = flag.Bool("update", false, "write docs/trust.md anew")

// made makes the page of this repository.
func made(t *testing.T) *page {
	t.Helper()
	fsys := os.DirFS(root)
	text, err := fs.ReadFile(fsys, "docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	deep, err := readDeep(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return &page{promises(string(text)), guarantees(), bugs(), record(), listed(t), deep}
}

// listed asks the room of sabotage what there is.
func listed(t *testing.T) []mutant {
	t.Helper()
	const room = "internal/proof/mutants"
	if _, err := os.Stat(filepath.Join(root, room)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "./"+room, "-list")
	cmd.Dir = root
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list the sabotage: %v\n%s", err, errs.String())
	}
	all := mutantsOf(string(out))
	if len(all) == 0 {
		t.Errorf("%s lists nothing that can be read: %q", room, out)
	}
	return all
}

// TestPage keeps docs/trust.md equal to what it is made of. Run it with -update
// after a change of any table, of docs/guarantees.md or of a deep run.
func TestPage(t *testing.T) {
	path := filepath.Join(root, "docs", "trust.md")
	var want bytes.Buffer
	made(t).write(&want)
	have, err := os.ReadFile(path)
	switch {
	case bytes.Equal(have, want.Bytes()):
	case *update:
		if err := os.WriteFile(path, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("docs/trust.md is not what its tables say (%v): run make trust", err)
	}
}

// TestTables looks for what is wrong with the tables.
func TestTables(t *testing.T) {
	for _, why := range made(t).wrong(docs.NewTests(os.DirFS(root))) {
		t.Error(why)
	}
}

// wrong says what cannot stand on the page.
func (p *page) wrong(tests *docs.Tests) []string {
	var all []string
	say := func(row string, format string, args ...any) { all = append(all, row+" "+fmt.Sprintf(format, args...)) }
	look := func(row string, names []string) {
		for _, name := range names {
			if why := tests.Missing(name); why != "" {
				say(row, "names %s: %s", name, why)
			}
		}
	}
	for i, b := range p.bugs {
		row := fmt.Sprintf("B%03d", b.number)
		look(row, strings.Fields(b.tests))
		if b.number != i+1 {
			say(row, "stands where B%03d should: rows are in their order, and none is missing", i+1)
		}
		if b.where == "" || b.what == "" || b.tests == "" && b.not == "" {
			say(row, "has a hole: say where, what, and the test or why there is none")
		}
	}
	for i, g := range p.guarantees {
		row := fmt.Sprintf("G%d", g.number)
		look(row, strings.Fields(g.tests))
		if g.number != i+1 {
			say(row, "stands where G%d should: rows are in their order, and none is missing", i+1)
		}
		for _, name := range promisesOf(&g) {
			if !slices.ContainsFunc(p.promises, func(p promise) bool { return p.name == name }) {
				say(row, "names the promise %q: docs/guarantees.md has none of these bold words", name)
			}
		}
		for _, kind := range strings.Split(g.proofs, ", ") {
			if kind != "" && (!slices.Contains(kinds(), kind) || !counted(kind)) {
				say(row, "names the kind %q: give one of %q", kind, kinds())
			}
		}
		if len(p.testsOf(&g)) == 0 && g.later == "" {
			say(row, "has neither a test nor a word on when it will")
		}
	}
	for _, m := range p.record {
		look("record of "+m.commit, strings.Fields(m.tests))
		if m.commit == "" || m.what == "" || m.foundBy == "" || m.tests == "" {
			say("record of "+m.commit, "has a hole")
		}
	}
	return all
}

// TestWrong shows that mistakes in a table are found.
func TestWrong(t *testing.T) {
	tests := docs.NewTests(os.DirFS(root))
	newest := record()[0].commit
	for want, change := range map[string]func(p *page){
		"B007 stands where B006 should":               func(p *page) { p.bugs = slices.Delete(p.bugs, 5, 6) },
		"B001 names worker.TestGhost: there is no":    func(p *page) { p.bugs[0].tests = "worker.TestGhost" },
		"B001 has a hole":                             func(p *page) { p.bugs[0].tests = "" },
		"G2 stands where G1 should":                   func(p *page) { p.guarantees = p.guarantees[1:] },
		"G1 names the promise \"Ghost\"":              func(p *page) { p.guarantees[0].promises = "Ghost" },
		"G1 names the kind \"test\"":                  func(p *page) { p.guarantees[0].proofs = kindTest },
		"G2 names suite.Enqueue/Ghost":                func(p *page) { p.guarantees[1].tests = "suite.Enqueue/Ghost" },
		"G45 has neither":                             func(p *page) { p.guarantees[44].later = "" },
		"record of " + newest + " has a hole":         func(p *page) { p.record[0].foundBy = "" },
		"record of " + newest + " names worker.TestX": func(p *page) { p.record[0].tests = "worker.TestX" },
	} {
		p := made(t)
		change(p)
		if got := p.wrong(tests); !slices.ContainsFunc(got, func(why string) bool { return strings.HasPrefix(why, want) }) {
			t.Errorf("want %q, got %q", want, got)
		}
	}
}

// TestPromises reads a small document.
func TestPromises(t *testing.T) {
	text := strings.ReplaceAll(`# Guarantees
| not | ~worker.TestNo~ |
## What is promised
### Work
| promise | shown by |
|---|---|
| **It stays.** For ever. | ~worker.TestA~ ~suite.B/C~ |
| **Nothing shows this** at all. | |
## When things go wrong
| what happens | what becomes of the work | shown by |
|---|---|---|
| The power goes | It stays. | ~internal/proof/powerloss.TestPowerLoss~ |
## What is not promised
| no | ~worker.TestNo~ |
`, "~", "`")
	got := fmt.Sprintf("%q", promises(text))
	want := `[{"Work" "It stays" ["worker.TestA" "suite.B/C"]} {"Work" "Nothing shows this" []} {"When things go wrong" "The power goes" ["internal/proof/powerloss.TestPowerLoss"]}]`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// TestDeepRun shows what a deep run puts on the page.
func TestDeepRun(t *testing.T) {
	fsys := fstest.MapFS{deepFile: {Data: []byte(`[
		{"name":"power-loss","unit":"crash points","want":20000,"count":20000,"violations":0,"seconds":61.5},
		{"name":"histories-memory","unit":"histories","want":10000,"count":10000,"violations":0,"seconds":5},
		{"name":"histories-sqlite","unit":"histories","want":10000,"count":999,"violations":1,"seconds":5,"date":"2026-11-21","commit":"abc"}]`)}}
	deep, err := readDeep(fsys)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tests, besides, want string
	}{
		{"worker.TestDrain suite.Enqueue/AllOrNone", "", "–"},
		{"internal/proof/powerloss.TestPowerLoss store/sqlite.TestKills", "", "20,000 crash points, not run yet: kill"},
		{"worker.TestDrain", "history", "10,999 histories"},
		{"store/sqlite.TestKills", "", notRun},
	} {
		if got := deep.of(kindsOf(strings.Fields(c.tests), c.besides)); got != c.want {
			t.Errorf("%s: %q, want %q", c.tests, got, c.want)
		}
	}
	var out strings.Builder
	(&page{deep: deep}).writeDeep(&out)
	if row := "| histories-sqlite | 999 histories | 10,000 | 1 | 5 | 2026-11-21 | abc |"; !strings.Contains(out.String(), row) {
		t.Errorf("no row %q in\n%s", row, out.String())
	}
	if none, err := readDeep(fstest.MapFS{}); err != nil || len(none.Proofs) > 0 {
		t.Errorf("without a run: %+v, %v", none, err)
	}
	if _, err := readDeep(fstest.MapFS{deepFile: {Data: []byte("{")}}); err == nil || !strings.Contains(err.Error(), "make deep") {
		t.Errorf("half a file: %v", err)
	}
}

// TestSabotage reads what internal/proof/mutants lists.
func TestSabotage(t *testing.T) {
	got := mutantsOf("1\tdrop it\tit is dropped\tworker ^TestA|TestB\nno row\n")
	if len(got) != 1 || got[0] != (mutant{"1", "drop it", "it is dropped", "worker ^TestA|TestB"}) {
		t.Errorf("%+v", got)
	}
	var out strings.Builder
	(&page{mutants: got}).writeMutants(&out)
	if row := `| 1 | drop it | it is dropped | worker ^TestA\|TestB |`; !strings.Contains(out.String(), row) {
		t.Errorf("no row %q in\n%s", row, out.String())
	}
}
