// Mutants breaks the code on purpose, one change after the other, and sees
// whether the tests find it. Tests that have never been seen to fail prove
// little; here they are seen.
//
//	mutants [-only N,…] [-v]
//
// Each mutant of the table is a small replacement that brings in a defect which systems of this
// kind have had. It is built through the overlay of the go command, run at the root of the module,
// so the tree stays as it is. The named tests run without any mutant
// first and have to pass, because a find by red tests proves nothing. The last
// line is "N of M found", and the exit code 1 unless all are found.
//
// A mutant that does not build is a mistake of the table, not a find. Nor is a
// test that hangs until this program ends it: a reader who waits for a test that says
// nothing does not know what is broken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// limit bounds how long the tests of one mutant may take.
const limit = 5 * time.Minute

var errSurvived = errors.New("not every mutant was found")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	only := flags.String("only", "", "the numbers of the mutants to run, with commas between them; all if empty")
	verbose := flags.Bool("v", false, "print what the test that found a mutant wrote")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(slices.Concat(table, ofVerbs, ofLoops, ofRabbitMQ, ofPools, ofLines, ofWorkflows, ofConsole, outside), *only)
	if err != nil {
		return err
	}
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	b := bench{root: root, scratch: scratch, limit: limit, verbose: *verbose, out: out}
	return errors.Join(b.all(ctx, chosen), os.RemoveAll(scratch))
}

// choose takes mutants by their numbers, or all.
func choose(all []mutant, numbers string) ([]mutant, error) {
	if numbers == "" {
		return all, nil
	}
	var chosen []mutant
	for text := range strings.SplitSeq(numbers, ",") {
		i := slices.IndexFunc(all, func(m mutant) bool { return strconv.Itoa(m.number) == text })
		if i < 0 {
			return nil, fmt.Errorf("-only has %q: there is no such mutant in internal/proof/mutants/table.go", text)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
