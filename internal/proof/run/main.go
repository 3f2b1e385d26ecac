// Run runs the tests of the repository, and the seeded proofs at length.
//
//	run test [-tier T] [-count N] [-timeout D] [-vet off] [-rows] [-fuzz D] [packages]
//	run deep [names of proofs, or how they begin]
//	run trust
//
// Test prints a line for each server that tests can use, the line of each package, all that a
// failing test wrote, a line for each proof, and at the end "N passed, N failed".
//
//	tier   runs                       servers  race detector
//	short  all packages but the slow  no       no
//	quick  all packages               yes      where it pays
//	long   the tests of proof.List    yes      no
//
// A quick run of all packages also runs four fuzz targets, others after each commit. A run of all
// packages fails when a proof did not report; with -rows, when a row of the acceptance list has no
// test; with NIXIE_TEST_REQUIRE set, as in CI, when a server is missing.
//
// Deep runs every proof, and each fuzz target, until its deep count is full. It goes on where the
// last run stopped, however that ended; trust writes what was done into docs/trust.md.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const modulePrefix = "github.com/nixie-go/nixie/"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch verb {
	case "test":
		return runTests(ctx, args, out)
	case "deep":
		return runDeep(ctx, args, out)
	case "trust":
		return writeTable(".")
	}
	return fmt.Errorf("verb %q: want test, deep or trust", verb)
}
