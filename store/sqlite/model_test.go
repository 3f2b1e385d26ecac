package sqlite_test

import (
	"flag"
	"strconv"
	"testing"

	"github.com/nixie-go/nixie/internal/tier"
	"github.com/nixie-go/nixie/store/storetest"
)

// TestModel does random operations to the store and to its model. A seed is ten
// calm runs and ten stormy ones, of 60 steps each and in a deep run of 150.
func TestModel(t *testing.T) {
	const checks = 10
	steps := 30 // of each half of a run
	if tier.Deep() {
		steps = 75
	}
	tier.Proof{Name: "model-sqlite", Unit: "checks", Quick: 200, Deep: 10_000}.Run(t, func(t *testing.T, seed uint64) int {
		// The library counts up from the seed it is given, so seeds lie far apart.
		setFlag(t, "rapid.seed", strconv.FormatUint(seed<<32, 10))
		setFlag(t, "rapid.checks", strconv.Itoa(checks))
		setFlag(t, "rapid.steps", strconv.Itoa(steps))
		storetest.Model(t, harness)
		return 2 * checks
	})
}

// setFlag sets a flag of the tests until the end of the test.
func setFlag(t *testing.T, name, value string) {
	t.Helper()
	before := flag.Lookup(name).Value.String()
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := flag.Set(name, before); err != nil {
			t.Error(err)
		}
	})
}
