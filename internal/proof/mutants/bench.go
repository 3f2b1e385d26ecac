package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// bench builds and runs tests, with mutants and without.
type bench struct {
	root    string // of the module
	scratch string // for what is built
	limit   time.Duration
	verbose bool
	out     io.Writer
}

// all runs the tests as they are and then each mutant, and says how many were
// found.
func (b *bench) all(ctx context.Context, mutants []mutant) error {
	if err := b.baseline(ctx, mutants); err != nil {
		return err
	}
	found, survived := 0, 0
	for i := range mutants {
		m := &mutants[i]
		begun := time.Now()
		line, ok, err := b.judge(ctx, m)
		if err != nil {
			return err
		}
		if ok {
			found++
		}
		line = fmt.Sprintf("%s in %.0fs", line, time.Since(begun).Seconds())
		if m.survived {
			survived++
			line += ", survived at first"
		}
		fmt.Fprintf(b.out, "%2d  %-48s  %s\n", m.number, m.name, line)
	}
	fmt.Fprintf(b.out, "%d survived when they were planted, and have tests since\n%d of %d found\n", survived, found, len(mutants))
	if found < len(mutants) {
		return errSurvived
	}
	return nil
}

// baseline runs each finder once without a mutant. Those of one package that follow each other
// share what is built.
func (b *bench) baseline(ctx context.Context, mutants []mutant) error {
	known, built, program := map[finder]bool{}, "", ""
	for i := range mutants {
		tests := mutants[i].tests
		if known[tests] {
			continue
		}
		known[tests] = true
		begun := time.Now()
		if tests.pkg != built {
			var report string
			var err error
			if program, report, err = b.build(ctx, tests.pkg, ""); err != nil {
				return fmt.Errorf("without a mutant %s does not build: %w\n%s", tests.pkg, err, report)
			}
			built = tests.pkg
		}
		o, err := b.test(ctx, program, tests)
		if err != nil {
			return err
		}
		if !o.passed() {
			return fmt.Errorf("without a mutant %s: %s: a find would prove nothing\n%s", tests, o, o.report)
		}
		fmt.Fprintf(b.out, " -  %-48s  %d tests pass in %.0fs\n", "no mutant, "+tests.pkg, o.ran, time.Since(begun).Seconds())
	}
	return nil
}

// judge runs one mutant and says what became of it.
func (b *bench) judge(ctx context.Context, m *mutant) (line string, found bool, err error) {
	overlay, err := m.overlay(b.root, filepath.Join(b.scratch, fmt.Sprint(m.number)))
	if err != nil {
		return "", false, err
	}
	program, report, err := b.build(ctx, m.tests.pkg, overlay)
	if ctx.Err() != nil {
		return "", false, ctx.Err()
	}
	if err != nil {
		b.tell(report)
		return "does not build", false, nil
	}
	o, err := b.test(ctx, program, m.tests)
	if err != nil {
		return "", false, err
	}
	b.tell(o.report)
	return o.String(), o.failed != "", nil
}

func (b *bench) tell(report string) {
	if b.verbose {
		fmt.Fprintln(b.out, report)
	}
}

// build makes the program that runs the tests of a package.
func (b *bench) build(ctx context.Context, pkg, overlay string) (program, report string, err error) {
	program = filepath.Join(b.scratch, "tests")
	args := []string{"test", "-c", "-o", program}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+pkg)...)
	cmd.Dir = b.root
	text, err := cmd.CombinedOutput()
	return program, string(text), err
}

// grace bounds how long a program may take to end by itself after a test of it has
// failed: tests that run side by side are not stopped by that.
const grace = 10 * time.Second

// test runs the tests of a finder up to the first that fails.
func (b *bench) test(ctx context.Context, program string, tests finder) (outcome, error) {
	// The program ends itself at the limit; the context is for one that does not.
	bounded, stop := context.WithTimeout(ctx, b.limit+time.Minute)
	defer stop()
	cmd := exec.CommandContext(bounded, program, "-test.v=test2json", "-test.failfast", "-test.count=1",
		"-test.timeout="+b.limit.String(), "-test.run="+tests.pattern)
	cmd.Dir = filepath.Join(b.root, tests.pkg)
	cmd.Env = append(os.Environ(), "TMPDIR="+b.scratch, "NIXIE_DEEP=", "NIXIE_SEED=") // quick, and all of it
	cmd.WaitDelay = grace
	says := &reader{onFailure: func() { time.AfterFunc(grace, stop) }}
	cmd.Stdout, cmd.Stderr = says, says
	err := cmd.Run()
	if ctx.Err() != nil {
		return outcome{}, ctx.Err()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && bounded.Err() == nil {
		return outcome{}, fmt.Errorf("run tests of %s: %w", tests.pkg, err)
	}
	return says.end(err == nil), nil
}
