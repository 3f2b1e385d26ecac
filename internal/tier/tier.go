// Package tier says how much a proof does: little in every run of the tests,
// much in a deep run that goes on where the last one stopped.
//
// A proof draws everything from a seed and says how many cases a seed stood for:
// crash points, kills, histories, steps. Seeds count up from 1. A quick run takes
// the first ones until its count is full, so it is the same each time. A deep run
// goes on after the last seed that it finished, over any number of runs, and keeps
// what it has done in a file for each proof.
package tier

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// The environment chooses the tier.
const (
	// DeepVar names the folder in which deep runs keep their progress; without it
	// a run is quick.
	DeepVar = "NIXIE_DEEP"
	// SeedVar is a seed to run alone, to see a failure again.
	SeedVar = "NIXIE_SEED"
)

// Proof is one kind of evidence.
type Proof struct {
	Name        string // of its file; letters and dashes
	Unit        string // what is counted, as "crash points"
	Quick, Deep int    // how many of them
}

// Progress is what a deep run has done of a proof so far.
type Progress struct {
	Name  string `json:"name"`
	Unit  string `json:"unit"`
	Want  int    `json:"want"`
	Count int    `json:"count"`
	Seed  uint64 `json:"seed"` // the last one that is finished
}

// Run calls one with each seed of this run, in order, until the count is full or
// a case fails. one answers how many cases the seed stood for, one at least. The
// last line says what was done: "proof NAME: N UNIT, 0 violations".
func (p Proof) Run(t *testing.T, one func(t *testing.T, seed uint64) int) {
	t.Helper()
	if seed, alone := onlySeed(t); alone {
		t.Logf("proof %s: seed %d alone, %d %s", p.Name, seed, one(t, seed), p.Unit)
		return
	}
	done := Progress{Name: p.Name, Unit: p.Unit, Want: p.Quick}
	folder := os.Getenv(DeepVar)
	if folder != "" {
		done = p.load(t, folder)
	}
	for done.Count < done.Want {
		seed := done.Seed + 1
		n := p.try(t, seed, one)
		if t.Failed() {
			return
		}
		done.Seed, done.Count = seed, done.Count+max(n, 1)
		if folder != "" {
			done.save(t, folder)
		}
	}
	t.Logf("proof %s: %d %s, 0 violations (seeds 1 to %d)", p.Name, done.Count, p.Unit, done.Seed)
}

// try runs one seed; however it fails, the way to see it again is said.
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

func onlySeed(t *testing.T) (uint64, bool) {
	t.Helper()
	text := os.Getenv(SeedVar)
	if text == "" {
		return 0, false
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s is %q: want a number", SeedVar, text)
	}
	return seed, true
}

// Deep reports whether this is a deep run.
func Deep() bool { return os.Getenv(DeepVar) != "" }

func (p Proof) load(t *testing.T, folder string) Progress {
	t.Helper()
	done := Progress{}
	data, err := os.ReadFile(filepath.Join(folder, p.Name+".json"))
	if err == nil {
		err = json.Unmarshal(data, &done)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("progress of %s: %v", p.Name, err)
	}
	done.Name, done.Unit, done.Want = p.Name, p.Unit, p.Deep
	return done
}

// save replaces the file whole, so that a run that is killed leaves one that can
// be read.
func (g Progress) save(t *testing.T, folder string) {
	t.Helper()
	data, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, g.Name+".json")
	if err := errors.Join(os.WriteFile(path+".new", data, 0o600), os.Rename(path+".new", path)); err != nil {
		t.Fatal(fmt.Errorf("progress of %s: %w", g.Name, err))
	}
}
