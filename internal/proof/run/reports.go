package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"

	"github.com/nixie-go/nixie/internal/proof"
)

// reportLine is the last line of a proof.
var reportLine = regexp.MustCompile(`proof ([\w-]+): (\d+ .*0 violations.*)`)

// reports collects what proofs said.
type reports struct {
	lines   map[string]string // by name
	skipped []string          // names of proofs whose test was skipped, with a reason that the tally shows
}

func newReports() *reports { return &reports{lines: map[string]string{}} }

func (r *reports) note(e event) {
	match := reportLine.FindStringSubmatch(e.Output)
	for _, p := range proof.List() {
		switch {
		case e.Package != modulePrefix+p.Package:
		case e.Action == "skip" && e.Test == p.Test:
			r.skipped = append(r.skipped, p.Name)
		case e.Action == "output" && match != nil && match[1] == p.Name:
			r.lines[p.Name] = match[2]
		}
	}
}

// silent names the proofs of a tier that neither reported nor were skipped.
func (r *reports) silent(tier proof.Tier) error {
	return proof.Silent(tier, slices.AppendSeq(slices.Clone(r.skipped), maps.Keys(r.lines)))
}

func (r *reports) print(out io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(r.lines)) {
		fmt.Fprintf(out, "proof %s: %s\n", name, r.lines[name])
	}
}

// A run of all tests takes some of the fuzz targets.
const (
	rotated     = 4
	fuzzWorkers = 2
)

// fuzz runs the targets of this commit and counts each as a test.
func fuzz(ctx context.Context, sum *tally, fuzztime string) error {
	all, err := proof.Targets(os.DirFS("."))
	if err != nil {
		return err
	}
	chosen := proof.Rotation(ctx, all, rotated)
	executed, failed := 0, 0
	for _, target := range chosen {
		did, err := target.Fuzz(ctx, fuzztime, fuzzWorkers)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", target.Name, target.Package, err)
		}
		executed += did.Executions
		if did.Failed {
			failed++
			sum.failed++
			fmt.Fprint(sum.out, did.Output)
			continue
		}
		sum.passed++
		fmt.Fprintf(sum.out, "fuzz\t%s %s\t%d executions\n", target.Package, target.Name, did.Executions)
	}
	sum.reports.lines["fuzz"] = fmt.Sprintf("%d executions of %d targets out of %d, %d violations", executed, len(chosen), len(all), failed)
	return nil
}
