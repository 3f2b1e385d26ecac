package postgres_test

import (
	"testing"

	"github.com/nixie-go/nixie/internal/proof/tier"
	"github.com/nixie-go/nixie/store/storetest"
)

// TestModel and TestModelInStorms do random operations to the store and to its
// model.
func TestModel(t *testing.T)         { proveModel(t, "model-postgres", storetest.CalmModel) }
func TestModelInStorms(t *testing.T) { proveModel(t, "model-postgres-storms", storetest.StormyModel) }

func proveModel(t *testing.T, name string, model func(*testing.T, storetest.Harness, uint64, bool) int) {
	t.Helper()
	tier.Proof{Name: name, Unit: "checks", Quick: 20, Deep: 5000}.Run(t, func(t *testing.T, seed uint64) int {
		return model(t, harness, seed, tier.Deep())
	})
}
