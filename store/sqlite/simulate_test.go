package sqlite_test

import (
	"testing"

	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/simulate"
)

var simulation = simulate.Simulation{Harness: harness, Events: 400}

// TestSimulator makes the runs of internal/proof/simulate on files. Each process of a run
// opens its connections, which costs: the quick tier has fewer seeds than in memory.
func TestSimulator(t *testing.T) {
	proof.Run(t, "simulator-sqlite", func(t *testing.T, seed uint64) int {
		simulation.Check(t, seed)
		return 1
	})
}

// TestASimulatedSeedIsOneRun shows that the store adds no chance of its own.
func TestASimulatedSeedIsOneRun(t *testing.T) {
	simulation.Repeats(t, 1)
}
