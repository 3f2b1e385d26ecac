package proof

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The environment chooses the tier.
const (
	// TierVar has the value "long" in a long run.
	TierVar = "NIXIE_PROOF"
	// DeepVar names the folder in which deep runs keep their progress.
	DeepVar = "NIXIE_DEEP"
	// SeedVar is a seed to run alone, to see a failure again.
	SeedVar = "NIXIE_SEED"
)

// Tier says how much a run does.
type Tier int

// The tiers, least first.
const (
	Short Tier = iota
	Quick
	Long
	Deep
)

// shortPart is the part of Quick that a short run does.
const shortPart = 10

// Current returns the tier of this run.
func Current() Tier {
	switch {
	case os.Getenv(DeepVar) != "":
		return Deep
	case os.Getenv(TierVar) == "long":
		return Long
	case testing.Short():
		return Short
	}
	return Quick
}

// IsDeep reports whether this is a deep run.
func IsDeep() bool { return Current() == Deep }

// count returns how many cases a tier wants; 0 means that it leaves the test out.
func (p Proof) count(t Tier) int {
	switch {
	case t == Deep:
		return p.Deep
	case t == Long:
		return p.Long
	case t == Short && p.Quick > 0:
		return max(1, p.Quick/shortPart)
	}
	return p.Quick
}

// Count returns how many cases a proof does in this run, for a test that does all of them in
// one seed.
func Count(name string) int {
	p, _ := find(name) // Run refuses a name without a row
	return p.count(Current())
}

// Run calls one with each seed of this run, in order, until the count of the proof is full or
// a case fails. one returns how many cases the seed stood for, at least one. The last line
// reports what was done: "proof NAME: N UNIT, 0 violations".
func Run(t *testing.T, name string, one func(t *testing.T, seed uint64) int) {
	t.Helper()
	p, ok := find(name)
	test, _, _ := strings.Cut(t.Name(), "/")
	if !ok || p.Test != test {
		t.Fatalf("proof %s of %s has no row in internal/proof/list.go", name, test)
	}
	p.run(t, one)
}

func (p Proof) run(t *testing.T, one func(t *testing.T, seed uint64) int) {
	t.Helper()
	if alone := os.Getenv(SeedVar); alone != "" {
		seed, err := strconv.ParseUint(alone, 10, 64)
		if err != nil {
			t.Fatalf("%s is %q: want a number", SeedVar, alone)
		}
		t.Logf("proof %s: seed %d alone, %d %s", p.Name, seed, one(t, seed), p.Unit)
		return
	}
	var done Progress
	folder, err := os.Getenv(DeepVar), error(nil)
	if folder != "" {
		done, err = Load(folder, p.Name)
	}
	done.Name, done.Unit, done.Want = p.Name, p.Unit, p.count(Current())
	if done.Want == 0 {
		t.Skip("runs in make proof")
	}
	for done.Count < done.Want && err == nil {
		began, seed := time.Now(), done.Seed+1
		n := p.try(t, seed, one)
		if t.Failed() {
			return
		}
		done.Seed, done.Count = seed, done.Count+max(n, 1)
		done.Seconds += time.Since(began).Seconds()
		if folder != "" {
			err = done.Save(folder)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("proof %s: %d %s, 0 violations (seeds 1 to %d)", p.Name, done.Count, p.Unit, done.Seed)
}

// try runs one seed. However the seed fails, it logs the command that shows it again.
func (p Proof) try(t *testing.T, seed uint64, one func(t *testing.T, seed uint64) int) int {
	t.Helper()
	ended := false
	defer func() {
		if t.Failed() || !ended {
			t.Logf("proof %s: seed %d fails; to see it again: %s=%d go test -run '^%s$' -v .", p.Name, seed, SeedVar, seed, t.Name())
		}
	}()
	n := one(t, seed)
	ended = true
	return n
}

// Letters returns the size of the store that overviews are asked of.
func Letters() int {
	switch Current() {
	case Deep:
		return 1_000_000
	case Short:
		return 5_000
	}
	return 50_000
}
