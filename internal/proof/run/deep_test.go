package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/proof"
)

// pretend returns a task that does count stones and then fails, if that is given.
func pretend(name string, count int, failure string) task {
	return task{name, "p", func(_ context.Context, d *driver) (string, error) {
		done, err := proof.Load(d.folder, name)
		done.Unit, done.Want, done.Count = "stones", 10, done.Count+count
		if err == nil {
			err = done.Save(d.folder)
		}
		return failure, err
	}}
}

// deep runs tasks of code with the given hash, after what other runs did.
func deep(t *testing.T, kept []proof.Progress, hash string, all ...task) (said string, done []proof.Progress, err error) {
	t.Helper()
	var out strings.Builder
	d := &driver{folder: t.TempDir(), out: &out, commit: "c", kept: kept, failures: map[string]string{},
		builds: map[string]string{"p": hash}}
	d.runAll(t.Context(), all)
	if done, err = d.collect(all); err != nil {
		t.Fatal(err)
	}
	err = d.verdict(done, all)
	return out.String(), done, err
}

func TestVerdict(t *testing.T) {
	said, done, err := deep(t, nil, "h", pretend("a", 12, ""), pretend("b", 7, ""))
	if !strings.Contains(said, "1 of 2 proofs have their count") || err != nil || len(done) != 2 {
		t.Errorf("said %s and %v", said, err)
	}
	said, done, err = deep(t, nil, "h", pretend("c", 3, "wrong at seed 4"))
	if !strings.Contains(said, "c FAILS\nwrong at seed 4\n") || err == nil || done[0].Violations != 1 {
		t.Errorf("of a failure: said %s and %v", said, err)
	}
}

// TestGoesOn: a count goes on from what other runs did; after a full count or a violation other
// code begins anew.
func TestGoesOn(t *testing.T) {
	for name, tc := range map[string]struct {
		kept  proof.Progress
		build string
		want  proof.Progress
	}{
		"the same code": {proof.Progress{Count: 7, Build: "h", Commit: "c"}, "h", proof.Progress{Count: 12, Build: "h", Commit: "c"}},
		"other code": {proof.Progress{Count: 7, Build: "h", Commit: "b"}, "i", proof.Progress{Count: 12, Build: "i",
			Commit: "b to c"}},
		"a third commit": {proof.Progress{Count: 3, Build: "h", Commit: "a to b"}, "i", proof.Progress{Count: 8, Build: "i",
			Commit: "a to c"}},
		"full, other code": {proof.Progress{Count: 10, Build: "h", Commit: "b"}, "i", proof.Progress{Count: 5, Build: "i", Commit: "c"}},
		"full, the same code": {proof.Progress{Count: 10, Build: "h", Commit: "b"}, "h", proof.Progress{Count: 10, Build: "h",
			Commit: "b"}},
		"wrong, other code": {proof.Progress{Count: 7, Violations: 1, Build: "h", Commit: "b"}, "i", proof.Progress{Count: 5, Build: "i",
			Commit: "c"}},
	} {
		tc.kept.Name, tc.kept.Want = "a", 10
		_, done, err := deep(t, []proof.Progress{tc.kept}, tc.build, pretend("a", 5, ""))
		if err != nil || len(done) != 1 {
			t.Fatalf("%s: done %+v, %v", name, done, err)
		}
		got := proof.Progress{Count: done[0].Count, Build: done[0].Build, Commit: done[0].Commit}
		if got != tc.want {
			t.Errorf("%s: done %+v, want %+v", name, got, tc.want)
		}
	}
}

// TestNothingBeginsAfterTheEnd, and an interrupted proof has not failed.
func TestNothingBeginsAfterTheEnd(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	d := &driver{folder: t.TempDir(), out: &strings.Builder{}, failures: map[string]string{}}
	killed := task{"a", "p", func(context.Context, *driver) (string, error) { stop(); return "signal: killed", nil }}
	d.runOne(ctx, killed)
	d.runOne(ctx, pretend("b", 1, ""))
	if done, err := proof.Load(d.folder, "b"); err != nil || done.Count != 0 || len(d.failures) > 0 {
		t.Errorf("did %+v, %v, failures %v", done, err, d.failures)
	}
}

// TestChoose finds proofs and fuzz targets of this repository.
func TestChoose(t *testing.T) {
	t.Chdir("../../..")
	all, err := tasks()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, t := range choose(all, []string{"kills-postgres-str", "fuzz-privacy"}) {
		got = append(got, t.name)
	}
	if want := []string{"kills-postgres-streams", "fuzz-privacy-FuzzSecrets"}; !slices.Equal(got, want) ||
		len(choose(all, nil)) != len(all) {
		t.Errorf("chose %v", got)
	}
}

func TestWrong(t *testing.T) {
	log := "=== RUN   TestA\n    --- PASS: TestA/b (0s)\n    a_test.go:3: want 1\n--- FAIL: TestA (0s)\n"
	if got := string(wrong([]byte(log))); got != "    a_test.go:3: want 1\n--- FAIL: TestA (0s)" {
		t.Errorf("shown are %q", got)
	}
}

// TestPage keeps the page equal to what deep runs did.
func TestPage(t *testing.T) {
	have, want, err := shown("../../..")
	if err != nil || have != want || !strings.Contains(have, "| power-loss | ") {
		t.Errorf("%s does not show what deep runs did (%v): run make trust", page, err)
	}
	g := proof.Progress{Name: "a", Unit: "stones", Count: 1234567, Want: 20, Violations: 1, Seconds: 5, Commit: "b to c",
		Date: "2026-11-21"}
	if got, want := line(g), "| a | 1,234,567 stones | 20 | 1 | 5 | 2026-11-21 | b to c |\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
