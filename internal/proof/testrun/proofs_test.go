package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/proof/proofs"
)

func TestReports(t *testing.T) {
	r := newReports()
	for _, e := range []event{
		{Action: "output", Package: modulePrefix + "store/x", Test: "TestA/part", Output: "    a_test.go:3: proof model-x: 200 checks, 0 violations (seeds 1 to 10)\n"},
		{Action: "output", Package: modulePrefix + "p", Test: "TestB", Output: "    b_test.go:3: proof alone: seed 3 alone, 20 checks\n"},
		{Action: "output", Package: modulePrefix + "p", Test: "TestB", Output: "    b_test.go:3: proof b: seed 3 fails; to see it again: X\n"},
		{Action: "output", Package: tierPackage, Test: "TestC", Output: "    c_test.go:3: proof stones: 4 stones, 0 violations (seeds 1 to 2)\n"},
		{Action: "pass", Package: modulePrefix + "p", Test: "TestB"},
	} {
		r.note(e)
	}
	var out strings.Builder
	r.print(&out)
	if got, want := out.String(), "proof model-x: 200 checks, 0 violations (seeds 1 to 10)\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	if want := []proofs.Proof{{Name: "model-x", Package: "store/x", Test: "TestA"}}; !slices.Equal(r.from, want) {
		t.Errorf("noted %v, want %v", r.from, want)
	}
}
