package simulate_test

import (
	"testing"

	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/simulate"
	"github.com/nixie-go/nixie/store/storetest"
)

// harness is the store in memory.
var harness = storetest.Harness{Open: storetest.Memory}

var simulation = simulate.Simulation{Harness: harness, Events: 600}

// TestSimulator makes the runs, and then looks whether they met what they are there
// for: a simulation in which nothing goes wrong finds nothing.
func TestSimulator(t *testing.T) {
	seen, runs := map[string]int{}, 0
	proof.Run(t, "simulator", func(t *testing.T, seed uint64) int {
		for what, n := range simulation.Check(t, seed) {
			seen[what] += n
		}
		runs++
		return 1
	})
	if runs < 200 { // a seed alone, or the end of a deep run
		return
	}
	for _, what := range []string{
		"fails", "lost", "hangs", "slow", "twice", "kill", "leave", "start", "stall", "wake", "skew", "repeat",
		"abandoned", "overlap", "breaker", "duplicate", "pruned", "stopped run", "unblock",
		"complete", "retry", "release", "discard", "bury", "hold", "halt",
		"late complete", "late retry", "late release", "late discard", "late bury", "late extend",
		"cancel", "retry-now", "reset-attempts", "reschedule", "may-pass",
		"letter redrive", "letter success", "letter die-again", "letter exceed", "letter hold", "letter unhold", "letter requalify",
		"letter discard", "letter restore", "letter gone",
	} {
		if seen[what] < 5 {
			t.Errorf("%s happened %d times in %d runs: the simulation does not try it", what, seen[what], runs)
		}
	}
}

// TestASeedIsOneRun is what makes a seed worth printing.
func TestASeedIsOneRun(t *testing.T) {
	for seed := range uint64(10) {
		simulation.Repeats(t, seed)
	}
	if a, b := simulation.Seed(t, 1), simulation.Seed(t, 2); a.Trace == b.Trace {
		t.Error("two seeds have the same trace")
	}
}
