package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"text/tabwriter"

	"github.com/nixie-go/nixie/internal/tier"
)

// summary is a deep run in numbers.
type summary struct {
	Date   string   `json:"date"`
	Commit string   `json:"commit"`
	Cores  int      `json:"cores"`
	Proofs []result `json:"proofs"`
}

// result is what a proof has done over all runs of the commit.
type result struct {
	Name       string  `json:"name"`
	Unit       string  `json:"unit"`
	Want       int     `json:"want"`
	Count      int     `json:"count"`
	Violations int     `json:"violations"`
	Seconds    float64 `json:"seconds"`
}

func (r *result) full() bool { return r.Want > 0 && r.Count >= r.Want && r.Violations == 0 }

func cores() int { return runtime.NumCPU() }

// results reads how far the proofs came. One that cannot be read counts as failed.
func (d *driver) results(all []task) []result {
	list := make([]result, len(all))
	for i, t := range all {
		done, err := tier.Load(d.folder, t.name())
		if err != nil {
			d.failures[t.name()] = err.Error()
		}
		list[i] = result{Name: t.name(), Unit: done.Unit, Want: done.Want, Count: done.Count, Seconds: math.Round(done.Seconds*10) / 10}
		if d.failures[t.name()] != "" {
			list[i].Violations = 1 // a proof stops at its first
		}
	}
	return list
}

func (s *summary) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "proof\tunit\tcount\tof\tviolations\tseconds\n")
	for i := range s.Proofs {
		r := &s.Proofs[i]
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%.0f\n", r.Name, r.Unit, r.Count, r.Want, r.Violations, r.Seconds)
	}
	_ = w.Flush() // to a terminal
}

// end keeps the summary, for the documents too if all proofs have their counts,
// and is an error when a proof failed.
func (s *summary) end(out io.Writer, folder string, whole bool) error {
	full, violations := 0, 0
	for i := range s.Proofs {
		violations += s.Proofs[i].Violations
		if s.Proofs[i].full() {
			full++
		}
	}
	whole = whole && full == len(s.Proofs)
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	err = os.WriteFile(filepath.Join(folder, "summary.json"), data, 0o644)
	if whole {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(summaryFile), 0o755), os.WriteFile(summaryFile, data, 0o644))
	}
	fmt.Fprintf(out, "%d of %d proofs have their count, %d violations\n", full, len(s.Proofs), violations)
	if violations > 0 {
		err = errors.Join(err, fmt.Errorf("%d proofs fail", violations))
	}
	return err
}
