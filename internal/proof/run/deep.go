package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nixie-go/nixie/internal/proof"
)

const (
	jobs           = 2         // proofs that run at once
	wantExecutions = 1_000_000 // of each fuzz target
	mostShown      = 40        // lines of a log that are printed
)

// task is a proof, or a fuzz target, that runs until its count is full.
type task struct {
	name, pkg string
	// run goes on with the task. failure says what it found; an error means that it could not run.
	run func(ctx context.Context, d *driver) (failure string, err error)
}

// driver runs tasks.
type driver struct {
	folder string // where progress is kept
	commit string
	builds map[string]string // hash of the test binary, by package
	kept   []proof.Progress  // what runs in other folders did

	mu       sync.Mutex // guards what follows
	out      io.Writer
	failures map[string]string // by name
}

// runDeep runs the proofs whose names begin with one of the given words; without words, all.
func runDeep(ctx context.Context, begins []string, out io.Writer) error {
	folder, err := filepath.Abs("bin/deep")
	if err != nil {
		return err
	}
	d := &driver{folder: folder, out: out, commit: version(ctx), builds: map[string]string{}, failures: map[string]string{}}
	all, err := tasks()
	if err != nil {
		return err
	}
	chosen := choose(all, begins)
	if len(chosen) == 0 {
		return fmt.Errorf("no proof begins with %q: internal/proof/list.go has their names", begins)
	}
	if d.kept, err = readTable("."); err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(folder, 0o755), d.build(ctx, chosen)); err != nil {
		return err
	}
	d.runAll(ctx, chosen)
	done, err := d.collect(all)
	return errors.Join(err, keepTable(".", done), d.verdict(done, chosen))
}

// tasks lists all proofs in the order in which they begin.
func tasks() ([]task, error) {
	var all []task
	for _, p := range proof.List() {
		all = append(all, task{p.Name, p.Package, seeded(p)})
	}
	targets, err := proof.Targets(os.DirFS("."))
	for _, t := range targets {
		all = append(all, task{t.Proof(), t.Package, fuzzed(t)})
	}
	return all, err
}

func choose(all []task, begins []string) []task {
	return slices.DeleteFunc(slices.Clone(all), func(t task) bool {
		return len(begins) > 0 && !slices.ContainsFunc(begins, func(begin string) bool { return strings.HasPrefix(t.name, begin) })
	})
}

// version names the commit, and marks it when the files differ from it. What deep runs leave does
// not count.
func version(ctx context.Context) string {
	head, err := exec.CommandContext(ctx, "git", "rev-parse", "--short=12", "HEAD").Output()
	changes, err2 := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ".", ":!"+tableFile, ":!"+page).Output()
	commit := strings.TrimSpace(string(head))
	if err != nil || err2 != nil || len(changes) > 0 {
		commit += "-changed"
	}
	return commit
}

func (d *driver) binary(pkg string) string {
	return filepath.Join(d.folder, strings.ReplaceAll(pkg, "/", "-")+".test")
}

// build makes the test binaries. Paths are left out of them, so that the same code has the same
// hash in every folder.
func (d *driver) build(ctx context.Context, all []task) error {
	for _, t := range all {
		if d.builds[t.pkg] != "" {
			continue
		}
		said, err := exec.CommandContext(ctx, "go", "test", "-c", "-trimpath", "-o", d.binary(t.pkg), "./"+t.pkg).CombinedOutput()
		if err != nil {
			return fmt.Errorf("build the tests of %s: %w\n%s", t.pkg, err, said)
		}
		code, err := os.ReadFile(d.binary(t.pkg))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(code)
		d.builds[t.pkg] = hex.EncodeToString(sum[:8])
	}
	return nil
}

func (d *driver) runAll(ctx context.Context, all []task) {
	queue := make(chan task)
	var workers sync.WaitGroup
	for range jobs {
		workers.Go(func() {
			for t := range queue {
				d.runOne(ctx, t)
			}
		})
	}
	for _, t := range all {
		queue <- t
	}
	close(queue)
	workers.Wait()
}

// runOne runs a task. One that the end of ctx kills has not failed: what it had not counted it
// does again.
func (d *driver) runOne(ctx context.Context, t task) {
	done, err := d.begin(t)
	if err == nil && done.Full() || ctx.Err() != nil {
		return
	}
	failure := ""
	if err == nil {
		d.say("%s begins at %d\n", t.name, done.Count)
		failure, err = t.run(ctx, d)
	}
	if err != nil {
		failure = err.Error()
	}
	if failure == "" || ctx.Err() != nil {
		return
	}
	d.say("%s FAILS\n%s\n", t.name, failure)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures[t.name] = failure
}

func (d *driver) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.out, format, args...)
}

// load reads the progress of a task, here or else elsewhere.
func (d *driver) load(t task) (proof.Progress, error) {
	done, err := proof.Load(d.folder, t.name)
	for _, g := range d.kept {
		if g.Name == t.name && done.Build == "" {
			done = g
		}
	}
	return done, err
}

// begin prepares the progress of a task. A count that is not full goes on, also with other code:
// each seed is run on one commit. After a full count or a violation other code begins anew.
func (d *driver) begin(t task) (proof.Progress, error) {
	done, err := d.load(t)
	build := d.builds[t.pkg]
	if done.Build != build && (done.Full() || done.Violations > 0) {
		done = proof.Progress{Name: t.name}
	}
	if err != nil || done.Full() {
		return done, err
	}
	if first, _, _ := strings.Cut(done.Commit, " to "); done.Count > 0 && first != d.commit {
		done.Commit = first + " to " + d.commit
	} else {
		done.Commit = d.commit
	}
	done.Build, done.Violations, done.Date = build, 0, time.Now().UTC().Format(time.DateOnly)
	return done, done.Save(d.folder)
}

// collect returns the progress of all proofs that have begun.
func (d *driver) collect(all []task) ([]proof.Progress, error) {
	var rows []proof.Progress
	var wrong error
	for _, t := range all {
		done, err := d.load(t)
		if d.failures[t.name] != "" {
			done.Violations = 1 // a proof stops at its first
			err = errors.Join(err, done.Save(d.folder))
		}
		if done.Count > 0 || done.Violations > 0 {
			rows = append(rows, done)
		}
		wrong = errors.Join(wrong, err)
	}
	return rows, wrong
}

// verdict prints the chosen proofs and returns an error when one failed.
func (d *driver) verdict(done []proof.Progress, chosen []task) error {
	full := 0
	for _, g := range done {
		i := slices.IndexFunc(chosen, func(t task) bool { return t.name == g.Name })
		if i < 0 {
			continue
		}
		fmt.Fprint(d.out, line(g))
		if g.Full() && g.Build == d.builds[chosen[i].pkg] {
			full++
		}
	}
	fmt.Fprintf(d.out, "%d of %d proofs have their count; make trust writes them to %s\n", full, len(chosen), page)
	if len(d.failures) > 0 {
		return fmt.Errorf("%d proofs fail", len(d.failures))
	}
	return nil
}

// seeded runs a proof in the test binary of its package.
func seeded(p proof.Proof) func(context.Context, *driver) (string, error) {
	return func(ctx context.Context, d *driver) (string, error) {
		cmd := exec.CommandContext(ctx, d.binary(p.Package), "-test.run", "^"+p.Test+"$", "-test.v", "-test.timeout", "0")
		cmd.Dir = p.Package
		cmd.Env = append(os.Environ(), proof.DeepVar+"="+d.folder, proof.SeedVar+"=")
		log := filepath.Join(d.folder, p.Name+".log")
		said, err := cmd.CombinedOutput()
		if err == nil {
			return "", os.WriteFile(log, said, 0o600)
		}
		return fmt.Sprintf("%v; the log is %s\n%s", errors.Join(err, os.WriteFile(log, said, 0o600)), log, wrong(said)), nil
	}
}

// wrong returns the last lines of a log, without those on tests that run or passed.
func wrong(log []byte) []byte {
	lines := slices.DeleteFunc(bytes.Split(bytes.TrimSpace(log), []byte("\n")), func(line []byte) bool {
		text := bytes.TrimSpace(line)
		return bytes.HasPrefix(text, []byte("=== ")) || bytes.HasPrefix(text, []byte("--- PASS"))
	})
	return bytes.Join(lines[max(0, len(lines)-mostShown):], []byte("\n"))
}

// fuzzed runs a fuzz target.
func fuzzed(t proof.Target) func(context.Context, *driver) (string, error) {
	return func(ctx context.Context, d *driver) (string, error) {
		began := time.Now()
		did, err := t.Fuzz(ctx, fmt.Sprintf("%dx", wantExecutions), 1)
		if err != nil || did.Failed {
			return did.Output, err
		}
		done, err := proof.Load(d.folder, t.Proof())
		done.Unit, done.Want, done.Count, done.Seconds = "executions", wantExecutions, did.Executions, time.Since(began).Seconds()
		return "", errors.Join(err, done.Save(d.folder))
	}
}
