package main

import (
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/proof"
)

func TestReports(t *testing.T) {
	r := newReports()
	for _, e := range []event{
		{Action: "output", Package: modulePrefix + "store/sqlite", Test: "TestModel/part",
			Output: "    a_test.go:3: proof model-sqlite: 200 checks, 0 violations (seeds 1 to 10)\n"},
		{Action: "output", Package: modulePrefix + "store/sqlite", Test: "TestKills",
			Output: "    b_test.go:3: proof kills: seed 3 alone, 20 kills\n"},
		{Action: "output", Package: modulePrefix + "store/sqlite", Test: "TestKills",
			Output: "    b_test.go:3: proof kills: seed 3 fails; to see it again: X\n"},
		{Action: "output", Package: modulePrefix + "internal/proof", Test: "TestC",
			Output: "    c_test.go:3: proof stones: 4 stones, 0 violations (seeds 1 to 2)\n"},
		{Action: "skip", Package: modulePrefix + "store/postgres", Test: "TestModel"},
		{Action: "pass", Package: modulePrefix + "store/sqlite", Test: "TestKills"},
	} {
		r.note(e)
	}
	var out strings.Builder
	r.print(&out)
	if got, want := out.String(), "proof model-sqlite: 200 checks, 0 violations (seeds 1 to 10)\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	err := r.silent(proof.Quick)
	if err == nil || !strings.Contains(err.Error(), "kills of ") || strings.Contains(err.Error(), "model-sqlite of") ||
		strings.Contains(err.Error(), "model-postgres of") {
		t.Errorf("silent are %v", err)
	}
}
