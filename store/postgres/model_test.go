package postgres_test

import (
	"testing"

	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/store/storetest"
)

// TestModel and TestModelInStorms do random operations to the store and to its
// model.
func TestModel(t *testing.T) { proveModel(t, "model-postgres", storetest.ModelWithoutFaults) }
func TestModelInStorms(t *testing.T) {
	proveModel(t, "model-postgres-faults", storetest.ModelWithFaults)
}

func proveModel(t *testing.T, name string, model func(*testing.T, storetest.Harness, uint64, bool) int) {
	t.Helper()
	proof.Run(t, name, func(t *testing.T, seed uint64) int {
		return model(t, harness, seed, proof.IsDeep())
	})
}
