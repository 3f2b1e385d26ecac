package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/proof"
)

// pretended is a proof that does what its fields say.
type pretended struct {
	called  string
	count   int // done in each run
	failure string
}

func (p pretended) name() string { return p.called }
func (p pretended) pkg() string  { return "p" }

func (p pretended) run(_ context.Context, d *driver) (string, error) {
	done, err := proof.Load(d.folder, p.called)
	if err != nil || p.count == 0 {
		return p.failure, err
	}
	return p.failure, proof.Progress{Name: p.called, Unit: "stones", Want: 10, Count: done.Count + p.count, Seconds: 1.26}.Save(d.folder)
}

// deep runs proofs that pretend, of code with the given hash, in a folder of their own.
func deep(t *testing.T, kept ledger, hash string, all ...task) (said string, done ledger, err error) {
	t.Helper()
	var out strings.Builder
	d := &driver{ctx: t.Context(), folder: t.TempDir(), out: &out}
	d.builds = map[string]build{"p": {hash: hash, folder: d.folder}}
	if err := kept.resume(d, all); err != nil {
		t.Fatal(err)
	}
	d.runAll(all, 2)
	done = kept.after(d, all, "c")
	done.print(&out, all)
	err = done.verdict(&out, d, all)
	return out.String(), done, err
}

func TestVerdict(t *testing.T) {
	full, part, bad := pretended{"a", 12, ""}, pretended{"b", 7, ""}, pretended{"c", 3, "wrong at seed 4"}
	for _, tc := range []struct {
		name  string
		all   []task
		says  string
		fails bool
	}{
		{"all", []task{full}, "1 of 1 proofs have their count, 0 violations", false},
		{"not yet", []task{full, part}, "1 of 2 proofs have their count, 0 violations", false},
		{"violation", []task{bad, full}, "c FAILS\nwrong at seed 4\n", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			said, done, err := deep(t, ledger{}, "h", tc.all...)
			if !strings.Contains(said, tc.says) || (err != nil) != tc.fails {
				t.Errorf("said %s and %v", said, err)
			}
			if tc.fails && done["c"].Violations != 1 {
				t.Errorf("counted %+v", done)
			}
		})
	}
}

// A fresh folder goes on where the ledger stands; after a full count or a violation other
// code begins anew.
func TestLedger(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(ledgerFile), 0o755); err != nil {
		t.Fatal(err)
	}
	some, more, idle := pretended{"a", 7, ""}, pretended{"a", 5, ""}, pretended{"a", 0, ""}
	_, first, _ := deep(t, ledger{}, "h", some)
	if err := first.write([]task{some}); err != nil {
		t.Fatal(err)
	}
	kept, err := readLedger()
	if err != nil || kept["a"] != first["a"] || kept["a"].Count != 7 || kept["a"].Build != "h" || kept["a"].Commit != "c" {
		t.Fatalf("kept %+v, %v", kept, err)
	}
	if _, same, _ := deep(t, kept, "h", more); same["a"].Count != 12 {
		t.Errorf("the same code did %+v", same["a"])
	}
	if said, other, _ := deep(t, kept, "i", more); other["a"].Count != 12 || other["a"].Build != "i" || !strings.Contains(said, "1 of 1") {
		t.Errorf("other code did %+v and said %s", other["a"], said)
	}
	for name, end := range map[string]row{"full": {Progress: proof.Progress{Name: "a", Want: 10, Count: 10}}, "wrong": {Progress: proof.Progress{Name: "a", Want: 10, Count: 7}, Violations: 1}} {
		end.Build, end.Commit = "h", "b"
		if said, other, _ := deep(t, ledger{"a": end}, "i", more); other["a"].Count != 5 || other["a"].Since != "" || !strings.Contains(said, "0 of 1") {
			t.Errorf("other code after a %s count did %+v and said %s", name, other["a"], said)
		}
	}
	if _, other, _ := deep(t, ledger{"a": {Progress: proof.Progress{Name: "a", Want: 10, Count: 3}, Build: "h", Since: "a", Commit: "b"}}, "i", more); other["a"].Since != "a" || other["a"].Commit != "c" {
		t.Errorf("of several commits: %+v", other["a"])
	}
	if said, other, _ := deep(t, ledger{"a": {Progress: proof.Progress{Name: "a", Want: 10, Count: 10}, Build: "h"}}, "i", idle); other["a"].Build != "h" || !strings.Contains(said, "0 of 1") {
		t.Errorf("other code did nothing: %+v, %s", other["a"], said)
	}
	if err := os.WriteFile(ledgerFile, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readLedger(); err == nil || !strings.Contains(err.Error(), ledgerFile) {
		t.Errorf("half a file: %v", err)
	}
}

func TestNothingBeginsAfterTheEnd(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	d := &driver{ctx: ctx, folder: t.TempDir(), out: &strings.Builder{}}
	d.runAll([]task{pretended{"a", 1, ""}}, 1)
	if done, err := proof.Load(d.folder, "a"); err != nil || done.Count != 0 {
		t.Errorf("did %+v, %v", done, err)
	}
}

// interrupted is a proof that the end of the run kills.
type interrupted struct {
	pretended
	stop context.CancelFunc
}

func (i interrupted) run(context.Context, *driver) (string, error) {
	i.stop()
	return "signal: killed", nil
}

func TestAnInterruptedProofHasNotFailed(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	d := &driver{ctx: ctx, folder: t.TempDir(), out: &strings.Builder{}}
	d.runAll([]task{interrupted{pretended{called: "a"}, stop}}, 1)
	if len(d.failures) > 0 {
		t.Errorf("failures: %v", d.failures)
	}
}

// TestTasks finds the proofs and fuzz targets of this repository.
func TestTasks(t *testing.T) {
	t.Chdir("../../..")
	all, err := tasks()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"model-sqlite", "power-loss", "fuzz-policy-FuzzNormalise", "fuzz-filter-FuzzParse"} {
		if !slices.Contains(names(all), want) {
			t.Errorf("no %s in %v", want, names(all))
		}
	}
	if got := names(choose(all, "power,fuzz-privacy")); !slices.Equal(got, []string{"power-loss", "fuzz-privacy-FuzzSecrets"}) {
		t.Errorf("chose %v", got)
	}
	if got := names(choose(all, "model-postgres")); !slices.Equal(got, []string{"model-postgres"}) {
		t.Errorf("chose %v", got)
	}
}

func TestWrong(t *testing.T) {
	log := "=== RUN   TestA\n    --- PASS: TestA/b (0s)\n    a_test.go:3: want 1\n--- FAIL: TestA (0s)\n"
	if got := string(wrong([]byte(log))); got != "    a_test.go:3: want 1\n--- FAIL: TestA (0s)" {
		t.Errorf("shown are %q", got)
	}
}
