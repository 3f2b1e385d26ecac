package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/nixie-go/nixie/internal/proof/proofs"
)

// reportLine is what package tier says of a proof that is done.
var reportLine = regexp.MustCompile(`proof ([\w-]+): (\d+ .*0 violations.*)`)

// reports collects what proofs said.
type reports struct {
	lines map[string]string // by name
	from  []proofs.Proof
}

func newReports() *reports { return &reports{lines: map[string]string{}} }

// tierPackage makes up proofs to test itself with.
const tierPackage = modulePrefix + "internal/proof/tier"

func (r *reports) note(e event) {
	if e.Action != "output" || e.Package == tierPackage {
		return
	}
	match := reportLine.FindStringSubmatch(e.Output)
	if match == nil {
		return
	}
	test, _, _ := strings.Cut(e.Test, "/")
	r.lines[match[1]] = match[2]
	r.from = append(r.from, proofs.Proof{Name: match[1], Package: strings.TrimPrefix(e.Package, modulePrefix), Test: test})
}

func (r *reports) print(out io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(r.lines)) {
		fmt.Fprintf(out, "proof %s: %s\n", name, r.lines[name])
	}
}

// targetsOfTurn is how many fuzz targets a run of all tests takes.
const (
	targetsOfTurn = 4
	fuzzWorkers   = 2
)

// fuzz runs the targets whose turn it is and counts each as a test.
func fuzz(ctx context.Context, sum *tally, fuzztime string) error {
	all, err := proofs.Targets(os.DirFS("."))
	if err != nil {
		return err
	}
	turn := proofs.Turn(ctx, all, targetsOfTurn)
	executed, failed := 0, 0
	for _, target := range turn {
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
	sum.reports.lines["fuzz"] = fmt.Sprintf("%d executions of %d targets out of %d, %d violations", executed, len(turn), len(all), failed)
	return nil
}
