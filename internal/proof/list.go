package proof

import (
	"fmt"
	"slices"
	"strings"
)

// Proof is a test that draws its cases from seeds.
type Proof struct {
	Name    string
	Package string // below the module
	Test    string
	Unit    string // that is counted
	Quick   int    // in make test; with 0 only make proof runs the test
	Long    int    // in make proof
	Deep    int    // in make deep
}

// List has every proof, those that take long first. A test that is not in it fails.
func List() []Proof {
	return []Proof{
		{"model-sqlite", "store/sqlite", "TestModel", "checks", 40, 100, 5000},
		{"model-sqlite-faults", "store/sqlite", "TestModelInStorms", "checks", 40, 100, 5000},
		{"model-postgres", "store/postgres", "TestModel", "checks", 10, 30, 5000},
		{"model-postgres-faults", "store/postgres", "TestModelInStorms", "checks", 10, 30, 5000},
		{"model-postgres-modes", "store/postgres", "TestModelInModes", "checks", 10, 20, 400},
		{"suite-postgres-modes", "store/postgres", "TestSuiteInModes", "suites", 1, 2, 4},
		{"suite-postgres-pool", "store/postgres", "TestStoreOverAPool", "suites", 1, 1, 1},
		{"histories-sqlite", "internal/proof/histories", "TestSQLite", "histories", 20, 60, 10_000},
		{"histories-postgres", "internal/proof/histories", "TestPostgres", "histories", 20, 60, 10_000},
		{"burden-sqlite", "store/sqlite", "TestShow4BurdenCostsOthersNothing", "rounds", 40, 110, 110},
		{"kills", "store/sqlite", "TestKills", "kills", 36, 72, 500},
		{"run-kills", "internal/cli", "TestKilledAtAnyMoment", "kills", 3, 6, 300},
		{"persistent-kills", "internal/cli", "TestPersistentKilledAtAnyMoment", "kills", 2, 10, 300},
		{"languages", "examples/languages", "TestLanguages", "messages", 200, 10_000, 10_000},
		{"deploys", "internal/cli", "TestDeploys", "deploys", 3, 10, 10},
		{"three-causes", "internal/cli", "TestThreeCauses", "letters", 3000, 50_000, 50_000},
		{"previews", "internal/cli", "TestPreviewIsTheRun", "offices in each store", 20, 200, 200},
		{"map-kills", "internal/cli", "TestR55_MapKilledAtAnyMoment", "kills", 2, 4, 60},
		{"map-persistent-kills", "internal/cli", "TestPersistentMapKilledAtAnyMoment", "kills", 2, 4, 60},
		{"workflow-kills", "internal/cli", "TestWorkflowOfAGoModule", "kills", 2, 4, 120},
		{"map-module", "internal/cli", "TestMapOfAGoModule", "files", 30, 60, 1000},
		{"redrive-kills", "internal/cli", "TestRedriveKilledAtAnyMoment", "kills", 4, 8, 300},
		{"kills-postgres-streams", "store/postgres", "TestShow1_WorkersOfStreamsAreKilled", "messages", 2000, 4000, 200_000},
		{"kills-postgres-server", "store/postgres", "TestServerKilled", "kills", 3, 3, 100},
		{"cuts-postgres", "store/postgres", "TestConnectionCutAnywhere", "cuts", 70, 140, 18_800},
		{"migrations-postgres", "store/postgres", "TestMigrationInterrupted", "fifths of all statements", 1, 5, 5},
		{"prune-postgres", "store/postgres", "TestPruningMany", "messages", 10_000, 20_000, 1_000_000},
		{"callers-postgres", "store/postgres", "TestCallersAddToStreams", "steps", 300, 600, 100_000},
		{"sql-enqueue", "store/postgres", "TestSQLEnqueueRows", "steps", 40, 200, 20_000},
		{"sql-enqueue-writers", "store/postgres", "TestSQLEnqueueWriters", "transactions", 96, 480, 20_000},
		{"foreign-postgres", "store/postgres", "TestShow4_AForeignTransactionStaysOpen", "seconds", 3, 3, 60},
		{"keys-postgres", "store/postgres", "TestB061_WinnersThatRollBack", "rounds", 15, 30, 2000},
		{"histories-memory", "internal/proof/histories", "TestMemory", "histories", 20, 60, 10_000},
		{"kafka-rebalances", "broker/kafka", "TestRebalances", "changes of a group", 12, 24, 4000},
		{"kafka-kills", "broker/kafka", "TestKilledAtAnyMoment", "kills", 3, 3, 500},
		{"kafka-redriver-kills", "broker/kafka", "TestRedriverKilledAtAnyMoment", "kills", 4, 8, 400},
		{"families", "internal/cli", "TestFamiliesOfManyGroups", "groups", 2000, 30_000, 30_000},
		{"map-items", "internal/cli", "TestMapMirrorLarge", "items", 2000, 20_000, 20_000},
		{"endings", "internal/cli", "TestEndings", "letters", 2000, 1_000_000, 1_000_000},
		{"console-hostile", "console", "TestHostileRun", "pages", 100, 400, 4000},
		{"console-live", "console", "TestWatchedPageStaysStill", "seconds", 4, 30, 30},
		{"redis-kills", "broker/redis", "TestKills", "kills", 30, 60, 3000},
		{"rabbitmq-kills", "broker/rabbitmq", "TestLimitOfEqualLetters", "kills", 2, 6, 200},
		{"kafka-broker-kills", "broker/kafka", "TestBrokerKilled", "kills of the broker", 1, 1, 30},
		{"kafka-show", "broker/kafka", "TestShow1_ConsumersAreKilled", "records", 3000, 3000, 100_000},
		{"power-loss", "internal/proof/powerloss", "TestRandomPowerLoss", "crash points", 200, 500, 20_000},
		{"power-loss-core", "internal/proof/powerloss", "TestPowerLoss", "fifths of all crash points", 1, 5, 5},
		{"power-loss-moves", "internal/proof/powerloss", "TestR18_AMoveIsWholeAtEveryCrash", "fifths of all crash points", 1, 5, 5},
		{"power-loss-purge", "internal/proof/powerloss", "TestR26_APurgeGoesOnAfterEveryCrash", "fifths of all crash points", 1, 5, 5},
		{"power-loss-transactions", "internal/proof/powerloss", "TestPowerLossInTransaction", "fifths of all crash points", 1, 5, 5},
		{"faults-transactions", "internal/proof/powerloss", "TestFailInTransaction", "fifths of all calls to the disk", 1, 5, 5},
		{"exact-expressions", "internal/where", "TestExactExpressions", "expressions", 5_000, 20_000, 100_000},
		{"faults-core", "internal/proof/powerloss", "TestFailAtEveryCall", "fifths of all calls to the disk", 1, 5, 5},
	}
}

func find(name string) (Proof, bool) {
	list := List()
	i := slices.IndexFunc(list, func(p Proof) bool { return p.Name == name })
	if i < 0 {
		return Proof{}, false
	}
	return list[i], true
}

// Silent names the proofs that should have reported in a tier and did not.
func Silent(t Tier, reported []string) error {
	var missing []string
	for _, p := range List() {
		if p.count(t) > 0 && !slices.Contains(reported, p.Name) {
			missing = append(missing, fmt.Sprintf("%s of %s.%s", p.Name, p.Package, p.Test))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("these proofs are listed and did not report: %s", strings.Join(missing, ", "))
	}
	return nil
}
