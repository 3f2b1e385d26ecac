package trust

import (
	"slices"
	"strings"
)

// The kinds of proof, in the order in which they are listed.
const (
	kindTest      = "test"
	kindSuite     = "suite"
	kindRapid     = "rapid"
	kindFuzz      = "fuzz"
	kindPowerLoss = "power loss"
	kindKill      = "kill"
	kindHistory   = "history"
)

func kinds() []string {
	return []string{kindTest, kindSuite, kindRapid, kindFuzz, kindPowerLoss, kindKill, kindHistory}
}

// counted reports whether a kind does more in a deep run.
func counted(kind string) bool { return kind != kindTest && kind != kindSuite }

// kindOf tells the kind of a test from its name.
func kindOf(test string) string {
	folder, name, _ := strings.Cut(test, ".")
	switch {
	case folder == "suite":
		return kindSuite
	case folder == "internal/proof/powerloss" || folder == "internal/proof/faultdisk":
		return kindPowerLoss
	case folder == "internal/proof/histories" || strings.HasPrefix(name, "TestHistories"):
		return kindHistory
	case strings.HasPrefix(name, "TestModel"):
		return kindRapid
	case strings.HasPrefix(name, "TestKill"):
		return kindKill
	case strings.HasPrefix(name, "Fuzz"):
		return kindFuzz
	}
	return kindTest
}

// kindOfProof tells the kind of a proof of a deep run from its name.
func kindOfProof(name string) string {
	for begin, kind := range map[string]string{
		"power": kindPowerLoss, "kill": kindKill, "histor": kindHistory, "model": kindRapid, "rapid": kindRapid, "fuzz": kindFuzz,
	} {
		if strings.HasPrefix(strings.ToLower(name), begin) {
			return kind
		}
	}
	return kindTest
}

// kindsOf lists the kinds of tests and those that are named besides, each once.
func kindsOf(tests []string, besides string) []string {
	have := map[string]bool{}
	for _, test := range tests {
		have[kindOf(test)] = true
	}
	for _, kind := range strings.Split(besides, ", ") {
		have[kind] = true
	}
	return slices.DeleteFunc(kinds(), func(kind string) bool { return !have[kind] })
}
