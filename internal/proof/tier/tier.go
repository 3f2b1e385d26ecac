// Package tier says how much a proof does: little in every run of the tests,
// much in a deep run that goes on where the last one stopped.
//
// A proof draws everything from a seed and says how many cases a seed stood for:
// crash points, kills, histories, steps. Seeds count up from 1. A quick run takes
// the first ones until its count is full, so it is the same each time. A deep run
// goes on after the last seed that it finished, over any number of runs, and keeps
// what it has done in a file for each proof.
//
// Each proof has a row in package proofs, from which make deep knows it.
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
	"time"
)

// The environment chooses the tier.
const (
	// DeepVar names the folder in which deep runs keep their progress; without it
	// a run is quick.
	DeepVar = "NIXIE_DEEP"
	// UntilVar is when a deep run begins no further seed, as seconds since 1970; it
	// ends well and is gone on with later.
	UntilVar = "NIXIE_DEEP_UNTIL"
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
	Name    string  `json:"name"`
	Unit    string  `json:"unit"`
	Want    int     `json:"want"`
	Count   int     `json:"count"`
	Seed    uint64  `json:"seed"`    // the last one that is finished
	Seconds float64 `json:"seconds"` // that the seeds took
}

// Run calls one with each seed of this run, in order, until the count is full or
// a case fails. one answers how many cases the seed stood for, one at least. The
// last line says what was done: "proof NAME: N UNIT, 0 violations".
func (p Proof) Run(t *testing.T, one func(t *testing.T, seed uint64) int) {
	t.Helper()
	if seed, alone := number(t, SeedVar); alone {
		t.Logf("proof %s: seed %d alone, %d %s", p.Name, seed, one(t, seed), p.Unit)
		return
	}
	done := Progress{Name: p.Name, Unit: p.Unit, Want: p.Quick}
	folder := os.Getenv(DeepVar)
	if folder != "" {
		done = p.load(t, folder)
	}
	until, bounded := number(t, UntilVar)
	for done.Count < done.Want {
		began := time.Now()
		if folder != "" && bounded && began.Unix() >= int64(until) {
			break
		}
		seed := done.Seed + 1
		n := p.try(t, seed, one)
		if t.Failed() {
			return
		}
		done.Seed, done.Count = seed, done.Count+max(n, 1)
		done.Seconds += time.Since(began).Seconds()
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

func number(t *testing.T, variable string) (uint64, bool) {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s is %q: want a number", variable, text)
	}
	return n, true
}

// Deep reports whether this is a deep run.
func Deep() bool { return os.Getenv(DeepVar) != "" }

func (p Proof) load(t *testing.T, folder string) Progress {
	t.Helper()
	done, err := Load(folder, p.Name)
	if err != nil {
		t.Fatal(err)
	}
	done.Name, done.Unit, done.Want = p.Name, p.Unit, p.Deep
	return done
}

// Load reads how far a deep run came with a proof; one that has not begun is at
// the start.
func Load(folder, name string) (Progress, error) {
	done := Progress{Name: name}
	data, err := os.ReadFile(filepath.Join(folder, name+".json"))
	if err == nil {
		err = json.Unmarshal(data, &done)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return done, fmt.Errorf("progress of %s: %w", name, err)
	}
	return done, nil
}

func (g Progress) save(t *testing.T, folder string) {
	t.Helper()
	if err := g.Save(folder); err != nil {
		t.Fatal(err)
	}
}

// Save replaces the file whole, so that a run that is killed leaves one that can
// be read.
func (g Progress) Save(folder string) error {
	data, err := json.Marshal(g)
	if err != nil {
		return fmt.Errorf("progress of %s: %w", g.Name, err)
	}
	path := filepath.Join(folder, g.Name+".json")
	if err := errors.Join(os.WriteFile(path+".new", data, 0o600), os.Rename(path+".new", path)); err != nil {
		return fmt.Errorf("progress of %s: %w", g.Name, err)
	}
	return nil
}

// Letters is among how many letters overviews are asked for: 50,000, or a million in a
// deep run.
func Letters() int {
	if os.Getenv(DeepVar) != "" {
		return 1_000_000
	}
	return 50_000
}
