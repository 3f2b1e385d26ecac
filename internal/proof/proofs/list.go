// Package proofs knows the evidence of the repository that comes in two tiers: the
// seeded proofs of package tier, which are listed here, and the fuzz targets, which
// are found in the source.
//
// The list cannot fall behind: a run of all tests compares it with the proofs that
// reported, and fails for one that is not listed and for one that did not report.
package proofs

import (
	"fmt"
	"strings"
)

// Proof is a seeded proof and the test that runs it.
type Proof struct {
	Name    string // as its literal of tier.Proof says
	Package string // below the module
	Test    string
}

// List has every proof, those that take long first.
func List() []Proof {
	return []Proof{
		{"model-sqlite", "store/sqlite", "TestModel"},
		{"model-sqlite-storms", "store/sqlite", "TestModelInStorms"},
		{"model-postgres", "store/postgres", "TestModel"},
		{"model-postgres-storms", "store/postgres", "TestModelInStorms"},
		{"model-postgres-modes", "store/postgres", "TestModelInModes"},
		{"suite-postgres-modes", "store/postgres", "TestSuiteInModes"},
		{"histories-sqlite", "internal/proof/histories", "TestSQLite"},
		{"histories-postgres", "internal/proof/histories", "TestPostgres"},
		{"simulator-sqlite", "store/sqlite", "TestSimulator"},
		{"simulator", "internal/proof/simulate", "TestSimulator"},
		{"kills", "store/sqlite", "TestKills"},
		{"run-kills", "internal/cli", "TestKilledAtAnyMoment"},
		{"map-kills", "internal/cli", "TestR55_MapKilledAtAnyMoment"},
		{"map-module", "internal/cli", "TestMapOfAGoModule"},
		{"redrive-kills", "internal/cli", "TestRedriveKilledAtAnyMoment"},
		{"kills-postgres-streams", "store/postgres", "TestShow1_WorkersOfStreamsAreKilled"},
		{"kills-postgres-server", "store/postgres", "TestServerKilled"},
		{"cuts-postgres", "store/postgres", "TestConnectionCutAnywhere"},
		{"prune-postgres", "store/postgres", "TestPruningMany"},
		{"beside-postgres", "store/postgres", "TestTransactionsBesideStreams"},
		{"foreign-postgres", "store/postgres", "TestShow4_AForeignTransactionStaysOpen"},
		{"keys-postgres", "store/postgres", "TestB061_WinnersThatRollBack"},
		{"histories-memory", "internal/proof/histories", "TestMemory"},
		{"kafka-rebalances", "broker/kafka", "TestRebalances"},
		{"kafka-kills", "broker/kafka", "TestKilledAtAnyMoment"},
		{"kafka-redriver-kills", "broker/kafka", "TestRedriverKilledAtAnyMoment"},
		{"kafka-broker-kills", "broker/kafka", "TestBrokerKilled"},
		{"kafka-show", "broker/kafka", "TestShow1_ConsumersAreKilled"},
		{"power-loss", "internal/proof/powerloss", "TestRandomPowerLoss"},
	}
}

// Compare says how proofs that reported differ from the list.
func Compare(list, reported []Proof) error {
	var wrong []string
	have := map[Proof]bool{}
	for _, p := range reported {
		have[p] = true
	}
	for _, p := range list {
		if !have[p] {
			wrong = append(wrong, fmt.Sprintf("%s of %s.%s is listed and did not report", p.Name, p.Package, p.Test))
		}
		delete(have, p)
	}
	for _, p := range reported {
		if have[p] {
			wrong = append(wrong, fmt.Sprintf("%s of %s.%s is not in internal/proof/proofs/list.go: make deep would forget it", p.Name, p.Package, p.Test))
			delete(have, p)
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("proofs: %s", strings.Join(wrong, "; "))
	}
	return nil
}
