package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/tier"
)

// pretended is a proof that does what its fields say.
type pretended struct {
	called  string
	count   int
	failure string
}

func (p pretended) name() string { return p.called }

func (p pretended) run(_ context.Context, d *driver) (string, error) {
	return p.failure, tier.Progress{Name: p.called, Unit: "stones", Want: 10, Count: p.count, Seconds: 1.26}.Save(d.folder)
}

// deep runs proofs that pretend, in a folder that is the working directory too.
func deep(t *testing.T, whole bool, all ...task) (said string, sum summary, err error) {
	t.Helper()
	t.Chdir(t.TempDir())
	var out strings.Builder
	d := &driver{ctx: t.Context(), folder: t.TempDir(), out: &out}
	d.runAll(all, 2)
	sum = summary{Date: "2026-01-02", Commit: "c", Proofs: d.results(all)}
	sum.print(&out)
	err = sum.end(&out, d.folder, whole)
	kept := summary{}
	data, readErr := os.ReadFile(filepath.Join(d.folder, "summary.json"))
	if readErr != nil || json.Unmarshal(data, &kept) != nil || !slices.Equal(kept.Proofs, sum.Proofs) {
		t.Errorf("kept %s, %v", data, readErr)
	}
	return out.String(), sum, err
}

func TestSummary(t *testing.T) {
	done, part, bad := pretended{"a", 12, ""}, pretended{"b", 7, ""}, pretended{"c", 3, "wrong at seed 4"}
	for _, tc := range []struct {
		name      string
		all       []task
		whole     bool
		says      string
		published bool
		fails     bool
	}{
		{"all", []task{done}, true, "1 of 1 proofs have their count, 0 violations", true, false},
		{"chosen ones", []task{done}, false, "1 of 1 proofs", false, false},
		{"not yet", []task{done, part}, true, "1 of 2 proofs have their count, 0 violations", false, false},
		{"violation", []task{bad, done}, true, "c FAILS\nwrong at seed 4\n", false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			said, sum, err := deep(t, tc.whole, tc.all...)
			if !strings.Contains(said, tc.says) || (err != nil) != tc.fails {
				t.Errorf("said %s and %v", said, err)
			}
			if _, err := os.Stat(summaryFile); (err == nil) != tc.published {
				t.Errorf("the summary for the documents: %v", err)
			}
			if tc.fails && sum.Proofs[0].Violations != 1 {
				t.Errorf("counted %+v", sum.Proofs)
			}
		})
	}
}

func TestNothingBeginsAfterTheEnd(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	d := &driver{ctx: ctx, folder: t.TempDir(), out: &strings.Builder{}}
	d.runAll([]task{pretended{"a", 1, ""}}, 1)
	if done, err := tier.Load(d.folder, "a"); err != nil || done.Count != 0 {
		t.Errorf("did %+v, %v", done, err)
	}
}

// TestTasks finds the proofs and fuzz targets of this repository.
func TestTasks(t *testing.T) {
	t.Chdir("../..")
	all, err := tasks()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"model-sqlite", "power-loss", "fuzz-policy-FuzzNormalise", "fuzz-root-FuzzParseFilter"} {
		if !slices.Contains(names(all), want) {
			t.Errorf("no %s in %v", want, names(all))
		}
	}
	if got := names(choose(all, "power,fuzz-privacy")); !slices.Equal(got, []string{"power-loss", "fuzz-privacy-FuzzSecrets"}) {
		t.Errorf("chose %v", got)
	}
}

func TestWrong(t *testing.T) {
	log := "=== RUN   TestA\n    --- PASS: TestA/b (0s)\n    a_test.go:3: want 1\n--- FAIL: TestA (0s)\n"
	if got := string(wrong([]byte(log))); got != "    a_test.go:3: want 1\n--- FAIL: TestA (0s)" {
		t.Errorf("shown are %q", got)
	}
}
