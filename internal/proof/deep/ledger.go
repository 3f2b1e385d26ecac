package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/nixie-go/nixie/internal/proof"
)

// ledgerFile keeps the ledger; docs/trust.md is made from it.
const ledgerFile = "internal/proof/trust/deep.json"

// ledger says by name how far each proof has come.
type ledger map[string]row

// row is one proof, over all runs until its count is full: what takes longer than code
// stays the same is counted over several commits, each seed on one of them. A violation
// and a full count end it, and other code begins anew.
type row struct {
	proof.Progress
	Violations int    `json:"violations"`
	Build      string `json:"build"`           // hash of the test binary
	Since      string `json:"since,omitempty"` // the first commit that was run, if it is another one
	Commit     string `json:"commit"`          // the last one
	Date       string `json:"date"`
}

// goesOn reports whether runs of a build are counted with those before.
func (r row) goesOn(build string) bool {
	return r.Violations == 0 && (r.Build == build || !r.full())
}

func (r row) full() bool { return r.Want > 0 && r.Count >= r.Want && r.Violations == 0 }

// readLedger reads what earlier runs left.
func readLedger() (ledger, error) {
	var rows []row
	data, err := os.ReadFile(ledgerFile)
	if err == nil {
		err = json.Unmarshal(data, &rows)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", ledgerFile, err)
	}
	l := ledger{}
	for _, r := range rows {
		l[r.Name] = r
	}
	return l, nil
}

// resume lets tasks go on where the ledger knows them to be further than their folder.
func (l ledger) resume(d *driver, chosen []task) error {
	for _, t := range chosen {
		r, b := l[t.name()], d.builds[t.pkg()]
		done, err := proof.Load(b.folder, t.name())
		if err == nil && r.goesOn(b.hash) && r.Count > done.Count {
			err = r.Save(b.folder)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// after is the ledger after a run. A proof that cannot be read counts as failed.
func (l ledger) after(d *driver, chosen []task, commit string) ledger {
	l = maps.Clone(l)
	for _, t := range chosen {
		b := d.builds[t.pkg()]
		done, err := proof.Load(b.folder, t.name())
		if err != nil {
			d.failures[t.name()] = err.Error()
		}
		done.Seconds = math.Round(done.Seconds*10) / 10
		r := row{Progress: done, Build: b.hash, Commit: commit, Date: time.Now().UTC().Format(time.DateOnly)}
		if d.failures[t.name()] != "" {
			r.Violations = 1 // a proof stops at its first
		}
		last := l[t.name()]
		if last.goesOn(b.hash) && last.Count > 0 && last.Commit != commit {
			r.Since = cmp.Or(last.Since, last.Commit)
		}
		begun := done.Count > 0 || r.Violations > 0
		if begun && (last.Build != r.Build || last.Progress != r.Progress || last.Violations != r.Violations) {
			l[t.name()] = r
		}
	}
	return l
}

func (l ledger) print(out io.Writer, chosen []task) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "proof\tunit\tcount\tof\tviolations\tseconds\n")
	for _, t := range chosen {
		r, begun := l[t.name()]
		if !begun {
			fmt.Fprintf(w, "%s\tnot begun\n", t.name())
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%.0f\n", r.Name, r.Unit, r.Count, r.Want, r.Violations, r.Seconds)
	}
	_ = w.Flush() // to a terminal
}

// write keeps the rows of all proofs that there are.
func (l ledger) write(all []task) error {
	var rows []row
	for _, name := range slices.Sorted(slices.Values(names(all))) {
		if r, ok := l[name]; ok {
			rows = append(rows, r)
		}
	}
	data, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(ledgerFile, append(data, '\n'), 0o644)
}

// verdict counts the chosen proofs that this build has done in full, and is an error
// when one failed.
func (l ledger) verdict(out io.Writer, d *driver, chosen []task) error {
	full, violations := 0, 0
	for _, t := range chosen {
		if r := l[t.name()]; r.Build == d.builds[t.pkg()].hash {
			violations += r.Violations
			if r.full() {
				full++
			}
		}
	}
	fmt.Fprintf(out, "%d of %d proofs have their count, %d violations; make trust writes them to docs/trust.md\n", full, len(chosen), violations)
	if violations > 0 {
		return fmt.Errorf("%d proofs fail", violations)
	}
	return nil
}
