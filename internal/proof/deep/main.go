// Deep runs every proof at length: the seeded ones that internal/proof lists, with
// their deep counts, and each fuzz target for a million executions.
//
//	deep [-folder F] [-only NAMES] [-for D] [-jobs N]
//
// What was done is kept in F, for each build of a test, and when the run ends in
// internal/proof/trust/deep.json, from which docs/trust.md is made. A run goes on where the
// last one stopped, however it ended, unless the code has changed that the proof is
// built from: then the proof begins anew. A line every half minute tells how far the
// proofs are; a table ends the run.
//
// A proof that fails stops at the seed that failed and says how to see it again;
// its log lies in the folder.
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
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nixie-go/nixie/internal/proof"
)

// every is how often a run says how far it is.
const every = 30 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "deep:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("deep", flag.ContinueOnError)
	base := flags.String("folder", "bin/deep", "where progress is kept")
	only := flags.String("only", "", "names of proofs, or how they begin, with commas; all without it")
	budget := flags.Duration("for", 0, "begin nothing new after this time; 0 is no limit")
	jobs := flags.Int("jobs", 2, "how many proofs run at once")
	if err := flags.Parse(args); err != nil {
		return err
	}
	folder, err := filepath.Abs(*base)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	kept, err := readLedger()
	if err != nil {
		return err
	}
	d := &driver{ctx: ctx, folder: folder, out: out}
	if *budget > 0 {
		d.until = time.Now().Add(*budget)
	}
	all, err := tasks()
	if err != nil {
		return err
	}
	chosen := choose(all, *only)
	if len(chosen) == 0 {
		return fmt.Errorf("no proof begins with %q: there are %s", *only, strings.Join(names(all), ", "))
	}
	if err := errors.Join(d.prepare(chosen), kept.resume(d, chosen)); err != nil {
		return err
	}
	commit := version(ctx) // before an interrupt, which ends this as well
	d.runAll(chosen, *jobs)
	done := kept.after(d, chosen, commit)
	done.print(out, chosen)
	return errors.Join(done.verdict(out, d, chosen), done.write(all))
}

// version names the commit, and says so when the files are others. What runs leave is
// not looked at.
func version(ctx context.Context) string {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "unversioned"
	}
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ".", ":!"+ledgerFile, ":!docs/trust.md").Output()
	commit := strings.TrimSpace(string(head))
	if err != nil || len(changes) > 0 {
		commit += "-changed"
	}
	return commit
}

// tasks are all proofs in the order in which they begin.
func tasks() ([]task, error) {
	var all []task
	for _, p := range proof.List() {
		all = append(all, seeded{p})
	}
	targets, err := proof.Targets(os.DirFS("."))
	if err != nil {
		return nil, err
	}
	for _, target := range targets {
		all = append(all, fuzzed{target})
	}
	return all, nil
}

func choose(all []task, only string) []task {
	begins := strings.Split(only, ",")
	return slices.DeleteFunc(slices.Clone(all), func(t task) bool {
		return !slices.ContainsFunc(begins, func(begin string) bool {
			whole := slices.Contains(names(all), begin) // and not those that are called after it
			return t.name() == begin || !whole && strings.HasPrefix(t.name(), begin)
		})
	})
}

func names(all []task) []string {
	var list []string
	for _, t := range all {
		list = append(list, t.name())
	}
	return list
}
