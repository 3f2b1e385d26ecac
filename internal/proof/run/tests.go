package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/internal/proof/testservers"
)

// special is a package that is not run as the others are.
type special struct {
	path    string
	slow    string // why a short run leaves it out; empty: it does not
	race    string // a pattern of the tests that run with the race detector, after all ran without it
	without string // a pattern, ^Test(A|B)$, of the tests that run without it; all others run with it
	why     string // for race and without
}

// unraced stands for race where no test runs with the detector.
const unraced = "none"

// specials begin in this order, the longest first: at the end each would keep the machine
// waiting for it alone.
var specials = []special{
	{path: "store/postgres", slow: "needs a server",
		without: "^Test(Model.*|SuiteInModes|Builds|Plans.*|MigrationInterrupted|ValidateNamesDifferences|OpenBadStores|Show6_.*)$",
		why:     "these make one call after the other, and most of what they ask for is done by the server"},
	{path: "broker/kafka", slow: "needs a server"},
	{path: "internal/proof/powerloss", slow: "loses power at every call", race: unraced, why: "the store is raced in its own package"},
	{path: "store/sqlite", race: "R11|R12|Kill|Close|Claims|Locked|Call|Probes|WriterQueue|Stop|^TestStore$/^Races$",
		why: "the others follow one path at a time, and the engine under them is ten times slower when watched"},
	{path: "internal/cli", slow: "starts many processes", race: unraced,
		why: "starts many short processes, and what they share is raced in its own package"},
	{path: "internal/proof/histories", slow: "plays seeded histories", race: unraced,
		why: "thousands of calls to stores that are raced in their own packages"},
	{path: "internal/proof/docs", slow: "starts many processes", race: unraced,
		why: "starts the shipped binary, which is built without the detector"},
	{path: "internal/proof/faultdisk", slow: "loses power at every call", race: "ManyConnections", why: "the others have one goroutine"},
	{path: "internal/proof/mutants", slow: "copies the repository"},
	{path: "console", slow: "drives a browser", race: "Watching|WhoWatch|Redrive|Queue|Flow|Retries|Discarded",
		why: "the suites in the browser ask the same pages, and wait long for a console that is watched"},
	{path: "mapreduce/worktree", slow: "starts git some thousand times"},
	{path: "broker/redis", slow: "needs a server"},
	{path: "broker/rabbitmq", slow: "needs a server"},
	{path: "broker/redis/foreign", slow: "needs a server", without: "^Test(Bombs)$", why: "one goroutine inflates texts of many megabytes"},
	{path: "loop", race: "R48|R49|R50|Main|Consumer|Eval|Group|Health|Extensions|Wait|Purge", why: "the model has one goroutine"},
	{path: "worker", without: "^Test(Outage|R10_OtherTypesGoOn)$", why: "hours of outages; the other tests of breakers race what they run"},
	{path: "redrive"},
	{path: "store/memory"},
	{path: "policy", race: unraced, why: "decides in one goroutine, and workers that share a policy are raced in their own package"},
	{path: "internal/items", race: unraced, why: "reads inputs in one goroutine, and who reads them for a job is raced in its own package"},
	{path: "internal/letterfile", race: unraced, why: "reads and writes files in one goroutine"},
	{path: "internal/app", race: unraced, why: "measures the processor time of a look at a store"},
	{path: "internal/proof/arch", race: unraced, why: "reads files in one goroutine"},
	{path: "cmd/nixie", race: unraced, why: "starts many short processes, and what they share is raced in its own package"},
}

// specialOf returns the row of a package and its index, which for the others is the last one.
func specialOf(name string) (special, int) {
	name = strings.TrimPrefix(name, modulePrefix)
	if i := slices.IndexFunc(specials, func(s special) bool { return s.path == name }); i >= 0 {
		return specials[i], i
	}
	return special{path: name}, len(specials)
}

// runTests runs the tests of a tier and counts them.
func runTests(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	count := flags.String("count", "", "how often each test runs, never from the cache")
	vet := flags.String("vet", "", "what go test vets: off after go vet, which finds more")
	timeout := flags.String("timeout", "30m", "the most that the tests of one package may take")
	listed := flags.Bool("rows", false, "print the rows of the acceptance list with their tests, and fail when one has none")
	fuzzFor := flags.String("fuzz", "5s", "how long each fuzz target of this commit runs")
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
	if *vet != "" {
		options = append(options, "-vet", *vet)
	}
	parts, err := plan(ctx, tier, flags.Args(), out)
	if err != nil {
		return err
	}
	sum := newTally(out)
	if err := testAll(ctx, sum, parts, options); err != nil {
		return err
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
	race, missing := tier == proof.Quick, []string(nil)
	if tier != proof.Short {
		for _, s := range testservers.Find(ctx, testservers.This()) {
			fmt.Fprintln(out, s)
			if !s.Found() {
				missing = append(missing, s.Name)
				race = race && s.Name != testservers.Compiler
			}
		}
	}
	if len(missing) > 0 && os.Getenv("NIXIE_TEST_REQUIRE") != "" {
		return nil, fmt.Errorf("NIXIE_TEST_REQUIRE is set and %s missing: run make test-servers", strings.Join(missing, ", "))
	}
	packages, err := list(ctx, patterns)
	if err != nil {
		return nil, err
	}
	switch tier {
	case proof.Short:
		packages = slices.DeleteFunc(packages, func(p string) bool {
			s, _ := specialOf(p)
			return s.slow != ""
		})
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

// list expands package patterns, without any to all packages. The longest come first.
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
	slices.SortStableFunc(packages, func(a, b string) int {
		_, first := specialOf(a)
		_, second := specialOf(b)
		return first - second
	})
	return packages, nil
}

// part is one run of go test.
type part struct{ options, packages []string }

// split divides packages into a run with the race detector, one without, and others for packages
// that need both. What takes longest comes first.
func split(packages []string, race bool) []part {
	with, without := part{options: []string{"-race"}}, part{}
	var raced, both []part
	for _, p := range packages {
		s, _ := specialOf(p)
		switch {
		case !race || s.race == unraced:
			without.packages = append(without.packages, p)
		case s.race != "":
			both = append(both, part{options: []string{"-race", "-run", s.race}, packages: []string{p}})
			without.packages = append(without.packages, p)
		case s.without != "":
			raced = append(raced, part{options: []string{"-race", "-skip", s.without}, packages: []string{p}})
			both = append(both, part{options: []string{"-run", s.without}, packages: []string{p}})
		default:
			with.packages = append(with.packages, p)
		}
	}
	all := slices.Concat(raced[:min(len(raced), 1)], []part{without, with}, raced[min(len(raced), 1):], both)
	return slices.DeleteFunc(all, func(p part) bool { return len(p.packages) == 0 })
}

// atOnce counts the parts that run at the same time: tests wait more than they compute.
const atOnce = 2

// testAll runs the parts in their order. The first that cannot be run ends all.
func testAll(ctx context.Context, sum *tally, parts []part, options []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	queue := make(chan part, len(parts))
	for _, p := range parts {
		queue <- p
	}
	close(queue)
	ended := make(chan error, atOnce)
	for range atOnce {
		go func() {
			var err error
			for p := range queue {
				if err = test(ctx, sum, slices.Concat(p.options, options), p.packages); err != nil {
					cancel()
					break
				}
			}
			ended <- err
		}()
	}
	var errs []error
	for range atOnce {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// test runs go test once and counts what it prints. Tests that failed are in the sum and no
// error.
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
	failed, readErr := sum.read(stdout)
	_, drainErr := io.Copy(io.Discard, stdout)
	waitErr := cmd.Wait()
	if waitErr != nil && failed == 0 {
		readErr = errors.Join(readErr, fmt.Errorf("go test: %w", waitErr))
	}
	return errors.Join(ctx.Err(), readErr, drainErr)
}
