package proof

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestListIsReal finds the test of every row in the source.
func TestListIsReal(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range List() {
		if seen[p.Name] {
			t.Errorf("%s has two rows", p.Name)
		}
		seen[p.Name] = true
		if p.Quick > p.Long || p.Long < 1 || p.Long > p.Deep {
			t.Errorf("%s: want 0 <= quick %d <= long %d <= deep %d, and a long run of one at least", p.Name, p.Quick, p.Long, p.Deep)
		}
		files, err := filepath.Glob(filepath.Join("../..", p.Package, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			source, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(source), "\nfunc "+p.Test+"(t *testing.T)")
		}) {
			t.Errorf("%s: %s has no test %s", p.Name, p.Package, p.Test)
		}
	}
}

func TestSilent(t *testing.T) {
	var all []string
	for _, p := range List() {
		all = append(all, p.Name)
	}
	if err := Silent(Long, all); err != nil {
		t.Error(err)
	}
	if err := Silent(Long, all[1:]); err == nil || !strings.Contains(err.Error(), all[0]+" of ") {
		t.Errorf("one proof said nothing: %v", err)
	}
}

// TestRunWithoutARow: a proof that make deep would forget fails.
func TestRunWithoutARow(t *testing.T) {
	if _, ok := find("stones"); ok {
		t.Error("the list has a proof of the tests")
	}
	if p, ok := find("power-loss"); !ok || p.Test != "TestRandomPowerLoss" {
		t.Errorf("found %+v", p)
	}
}

func TestTargets(t *testing.T) {
	source := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	got, err := Targets(fstest.MapFS{
		"b/x_test.go":          source("package b\n\nfunc FuzzB(f *testing.F) {}\nfunc FuzzA(f *testing.F) {}"),
		"a_test.go":            source("package a\nfunc FuzzRoot(f *testing.F) {\n}"),
		"b/x.go":               source("package b\nfunc FuzzNoTest(f *testing.F) {}"),
		"b/testdata/x_test.go": source("package b\nfunc FuzzData(f *testing.F) {}"),
		"bench/go.mod":         source("module bench"),
		"bench/x_test.go":      source("package bench\nfunc FuzzOther(f *testing.F) {}"),
		".git/x_test.go":       source("package x\nfunc FuzzGit(f *testing.F) {}"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []Target{{".", "FuzzRoot"}, {"b", "FuzzA"}, {"b", "FuzzB"}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if name := (Target{"store/sqlite", "FuzzA"}).Proof(); name != "fuzz-store-sqlite-FuzzA" {
		t.Errorf("counted as %s", name)
	}
}

func TestRotationIsTheSameForOneTree(t *testing.T) {
	all := []Target{{"a", "FuzzA"}, {"b", "FuzzB"}, {"c", "FuzzC"}, {"d", "FuzzD"}, {"e", "FuzzE"}}
	first := Rotation(t.Context(), all, 4)
	if len(first) != 4 || !slices.Equal(first, Rotation(t.Context(), all, 4)) {
		t.Errorf("the rotation is %v, then another", first)
	}
	if got := Rotation(t.Context(), all[:2], 4); len(got) != 2 || got[0] == got[1] {
		t.Errorf("of two targets it took %v", got)
	}
	if got := Rotation(t.Context(), nil, 4); got != nil {
		t.Errorf("of no target it took %v", got)
	}
}

func TestResult(t *testing.T) {
	failed := errors.New("exit status 1")
	for _, tc := range []struct {
		name   string
		output string
		err    error
		want   Fuzzed
		bad    bool
	}{
		{"done", "fuzz: elapsed: 3s, execs: 5 (1/sec)\nfuzz: elapsed: 5s, execs: 123 (24/sec)\nPASS\n", nil, Fuzzed{Executions: 123},
			false},
		{"found", "fuzz: elapsed: 3s, execs: 5 (1/sec)\n--- FAIL: FuzzA (3.00s)\n", failed, Fuzzed{Executions: 5, Failed: true}, false},
		{"seed corpus", "--- FAIL: FuzzA (0.00s)\n", failed, Fuzzed{Failed: true}, false},
		{"end of the time", "fuzz: elapsed: 5s, execs: 7 (1/sec)\n--- FAIL: FuzzA (5.01s)\n    context deadline exceeded\nFAIL\nexit " +
			"status 1\n", failed, Fuzzed{Executions: 7}, false},
		{"the same words and an input",
			"fuzz: elapsed: 5s, execs: 7 (1/sec)\n--- FAIL: FuzzA (5.01s)\n    context deadline exceeded\nFAIL\nFailing input written " +
				"to x\n", failed, Fuzzed{Executions: 7, Failed: true}, false},
		{"the same words of the target",
			"fuzz: elapsed: 5s, execs: 7 (1/sec)\n--- FAIL: FuzzA (5.01s)\n    --- FAIL: FuzzA (0.00s)\n        a_test.go:3: context " +
				"deadline exceeded\nFAIL\n", failed, Fuzzed{Executions: 7, Failed: true}, false},
		{"time for the known ones alone",
			"fuzz: elapsed: 3s, gathering baseline coverage: 368/911 completed\nfuzz: elapsed: 5s, gathering baseline coverage: " +
				"604/911 completed\nPASS\n", nil, Fuzzed{Executions: 604}, false},
		{"did not build", "FAIL p [build failed]\n", failed, Fuzzed{}, true},
		{"nothing", "PASS\n", nil, Fuzzed{}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := result(tc.output, tc.err)
			tc.want.Output = tc.output
			if got != tc.want || (err != nil) != tc.bad {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
