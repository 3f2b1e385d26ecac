package postgres_test

import (
	"testing"

	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store/storetest"
)

// harnessIn opens stores that ask in one of the ways that a URL can choose, a seed
// for each; callers ask in the same.
func harnessIn(t *testing.T, seed uint64) storetest.Harness {
	modes := [...]string{"exec", "simple_protocol", "cache_describe", "describe_exec"}
	mode := "default_query_exec_mode=" + modes[(seed-1)%uint64(len(modes))]
	t.Log(mode)
	return harnessWith(func(url string) string { return with(url, mode) })
}

// TestSuiteInModes runs the suite in all ways in which the driver can ask. Two of them do not let
// it know the types of arguments. A quick run has the part that is about transactions
// of callers.
func TestSuiteInModes(t *testing.T) {
	proof.Run(t, "suite-postgres-modes", func(t *testing.T, seed uint64) int {
		h := harnessIn(t, seed)
		if proof.IsDeep() {
			storetest.Run(t, h)
		} else {
			storetest.RunTransactions(t, h)
		}
		return 1
	})
}

// TestModelInModes does random operations in all ways in which the driver can ask.
func TestModelInModes(t *testing.T) {
	proof.Run(t, "model-postgres-modes", func(t *testing.T, seed uint64) int {
		return storetest.ModelWithoutFaults(t, harnessIn(t, seed), seed, proof.IsDeep())
	})
}
