// Testrun runs the tests of the repository and counts them.
//
// It prints one line for each server that tests can use, runs go test with the
// race detector where that pays (see plain), shows the runner's line of each
// package and all that a failing test wrote, and ends with the line
// "N passed, N failed" over every test and subtest of the run.
//
//	testrun [-tier T] [-count N] [-timeout D] [-rows] [-fuzz D] [packages]
//
//	tier   runs                       servers  race detector
//	short  all packages but the slow  no       no
//	quick  all packages               yes      where it pays
//	long   the tests of proof.List    yes      no
//
// A quick run of all packages also runs four fuzz targets, others after each commit, each for
// D and counted as a test. Quick and long runs compare the proofs that reported with
// their list. What the proofs did comes before the sum, a line for each.
//
// With -rows it also prints a line for each row of the acceptance list and the
// tests that stand for it, before the sum; a row without one is a failure.
//
// With NIXIE_TEST_REQUIRE set, as in CI, a missing server is a failure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// plain are the packages that run without the race detector, and why.
var plain = map[string]string{
	"internal/proof/arch":      "reads files in one goroutine",
	"internal/proof/docs":      "starts the shipped binary, which is built without the detector",
	"internal/cli":             "starts many short processes, and what they share is raced in its own package",
	"internal/proof/histories": "thousands of calls to stores that are raced in their own packages",
	"internal/proof/powerloss": "thousands of small runs, and the store is raced in its own package",
	"cmd/nixie":                "starts many short processes, and what they share is raced in its own package",
}

// mixed are the packages of which only the tests that a pattern names run with
// the race detector, after all of them ran without it: the others follow one
// path at a time, and the engine under them is ten times slower when watched.
var mixed = map[string]string{
	"store/sqlite": "R11|R12|Kill|Close|Claims|Locked|Call|WriterQueue|Stop|Share|Settle|^TestStore$/^Races$",
}

// slow are the packages that a short run leaves out, and why.
var slow = map[string]string{
	"store/postgres":           "needs a server",
	"broker/kafka":             "needs a server",
	"internal/cli":             "starts many processes",
	"internal/proof/docs":      "starts many processes",
	"internal/proof/histories": "plays seeded histories",
	"internal/proof/powerloss": "loses power at every call",
	"internal/proof/faultdisk": "loses power at every call",
	"internal/proof/mutants":   "copies the repository",
}

// longest are the packages that take longest, in that order. They begin first: at the
// end each would keep the machine waiting for it alone.
var longest = []string{"store/postgres", "broker/kafka", "internal/proof/powerloss", "store/sqlite", "internal/cli", "internal/proof/histories"}

const modulePrefix = "github.com/nixie-go/nixie/"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("testrun", flag.ContinueOnError)
	count := flags.String("count", "", "run each test so many times, never from the cache")
	timeout := flags.String("timeout", "10m", "the most that the tests of one package may take")
	listed := flags.Bool("rows", false, "print the rows of the acceptance list with their tests, and fail when one has none")
	fuzzFor := flags.String("fuzz", "5s", "how long each fuzz target runs whose turn it is")
	tierName := flags.String("tier", "quick", "short, quick or long")
	if err := flags.Parse(args); err != nil {
		return err
	}
	tier, ok := map[string]proof.Tier{"short": proof.Short, "quick": proof.Quick, "long": proof.Long}[*tierName]
	if !ok {
		return fmt.Errorf("-tier is %q: want short, quick or long", *tierName)
	}
	options := []string{"-timeout", *timeout}
	if *count != "" {
		options = append(options, "-count", *count)
	}
	parts, err := plan(ctx, tier, flags.Args(), out)
	if err != nil {
		return err
	}
	sum := newTally(out)
	for _, part := range parts {
		if err := test(ctx, sum, append(part.options, options...), part.packages); err != nil {
			return err
		}
	}
	var missing []error
	if flags.NArg() == 0 && tier == proof.Quick {
		if err := fuzz(ctx, sum, *fuzzFor); err != nil {
			return err
		}
	}
	if flags.NArg() == 0 && tier != proof.Short {
		missing = append(missing, sum.reports.silent(tier))
	}
	if *listed {
		missing = append(missing, sum.rows.print(out))
	}
	sum.reports.print(out)
	return errors.Join(append(missing, sum.close())...)
}

// plan returns the runs of go test that a tier consists of.
func plan(ctx context.Context, tier proof.Tier, patterns []string, out io.Writer) ([]part, error) {
	race := false
	if tier != proof.Short {
		servers := testservers.Find(ctx, testservers.This())
		for _, s := range servers {
			fmt.Fprintln(out, s)
		}
		if err := required(servers, os.Getenv("NIXIE_TEST_REQUIRE") != ""); err != nil {
			return nil, err
		}
		race = tier == proof.Quick && hasCompiler(servers)
	}
	packages, err := list(ctx, patterns)
	if err != nil {
		return nil, err
	}
	switch tier {
	case proof.Short:
		packages = slices.DeleteFunc(packages, func(p string) bool { return slow[strings.TrimPrefix(p, modulePrefix)] != "" })
		return []part{{options: []string{"-short"}, packages: packages}}, nil
	case proof.Long:
		return []part{long(packages)}, os.Setenv(proof.TierVar, "long")
	}
	return split(packages, race), nil
}

// long returns the run of the proofs that are in packages.
func long(packages []string) part {
	var tests, with []string
	for _, p := range proof.List() {
		tests = append(tests, p.Test)
		with = append(with, modulePrefix+p.Package)
	}
	slices.Sort(tests)
	packages = slices.DeleteFunc(packages, func(p string) bool { return !slices.Contains(with, p) })
	return part{options: []string{"-run", "^(" + strings.Join(slices.Compact(tests), "|") + ")$"}, packages: packages}
}

// required says which servers are missing, if they must not be.
func required(servers []testservers.Server, all bool) error {
	var missing []string
	for _, s := range servers {
		if !s.Found() {
			missing = append(missing, s.Name)
		}
	}
	if !all || len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("NIXIE_TEST_REQUIRE is set and %s missing: run make test-servers", strings.Join(missing, ", "))
}

func hasCompiler(servers []testservers.Server) bool {
	for _, s := range servers {
		if s.Name == testservers.Compiler {
			return s.Found()
		}
	}
	return false
}

// list expands package patterns; without any it lists all packages. The longest come
// first.
func list(ctx context.Context, patterns []string) ([]string, error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	packages := strings.Fields(string(out))
	slices.SortStableFunc(packages, func(a, b string) int { return rank(a) - rank(b) })
	return packages, nil
}

// rank is the place of a package among the longest, or behind all of them.
func rank(name string) int {
	if n := slices.Index(longest, strings.TrimPrefix(name, modulePrefix)); n >= 0 {
		return n
	}
	return len(longest)
}

// part is one run of go test.
type part struct{ options, packages []string }

// split divides packages into a run with the race detector and one without.
func split(packages []string, race bool) []part {
	raced, unraced := part{options: []string{"-race"}}, part{}
	var both []part
	for _, p := range packages {
		name := strings.TrimPrefix(p, modulePrefix)
		_, isPlain := plain[name]
		pattern, isMixed := mixed[name]
		switch {
		case isMixed && race:
			both = append(both, part{options: []string{"-race", "-run", pattern}, packages: []string{p}})
			unraced.packages = append(unraced.packages, p)
		case isPlain || !race:
			unraced.packages = append(unraced.packages, p)
		default:
			raced.packages = append(raced.packages, p)
		}
	}
	var parts []part
	for _, p := range append([]part{raced, unraced}, both...) {
		if len(p.packages) > 0 {
			parts = append(parts, p)
		}
	}
	return parts
}

// test runs go test once and counts what it says. That tests failed is in the
// sum and no error.
func test(ctx context.Context, sum *tally, options, packages []string) error {
	args := append([]string{"test", "-json"}, options...)
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := sum.read(stdout)
	if readErr != nil {
		if _, err := io.Copy(io.Discard, stdout); err != nil {
			return err
		}
	}
	waitErr := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case readErr != nil:
		return readErr
	case waitErr != nil && sum.failed == 0:
		return fmt.Errorf("go test: %w", waitErr)
	}
	return nil
}
