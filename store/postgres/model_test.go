package postgres_test

import (
	"flag"
	"strconv"
	"testing"

	"github.com/nixie-go/nixie/internal/tier"
	"github.com/nixie-go/nixie/store/storetest"
)

// TestModel and TestModelInStorms do random operations to the store and to its
// model.
func TestModel(t *testing.T)         { proveModel(t, "model-postgres", storetest.CalmModel) }
func TestModelInStorms(t *testing.T) { proveModel(t, "model-postgres-storms", storetest.StormyModel) }

// proveModel makes runs of 60 steps, in a deep run of 150; ten are a seed.
func proveModel(t *testing.T, name string, model func(*testing.T, storetest.Harness)) {
	t.Helper()
	const checks = 10
	steps := 30 // of each half of a run
	if tier.Deep() {
		steps = 75
	}
	tier.Proof{Name: name, Unit: "checks", Quick: 20, Deep: 5000}.Run(t, func(t *testing.T, seed uint64) int {
		// The library counts up from the seed it is given, so seeds lie far apart.
		setFlag(t, "rapid.seed", strconv.FormatUint(seed<<32, 10))
		setFlag(t, "rapid.checks", strconv.Itoa(checks))
		setFlag(t, "rapid.steps", strconv.Itoa(steps))
		model(t, harness)
		return checks
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
