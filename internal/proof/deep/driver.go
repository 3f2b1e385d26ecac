package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nixie-go/nixie/internal/proof"
)

// task is one proof to be run until its count is full.
type task interface {
	name() string
	pkg() string // its package, below the module
	// run goes on with the proof; failure is what it showed to be wrong, and an
	// error that it could not be run.
	run(ctx context.Context, d *driver) (failure string, err error)
}

// driver runs tasks, some at a time.
type driver struct {
	ctx    context.Context
	folder string
	until  time.Time // nothing begins after it; zero is never
	out    io.Writer

	mu       sync.Mutex
	running  map[string]task
	failures map[string]string // by name
	builds   map[string]build  // by package
}

// build is the test binary of a package.
type build struct {
	hash   string // of its content: other code has another
	binary string
	folder string // where the progress of its proofs is kept
}

// prepare makes the test binaries of tasks. Paths are left out of them, so that the
// same code has the same hash wherever it lies.
func (d *driver) prepare(all []task) error {
	d.builds = map[string]build{}
	for _, t := range all {
		pkg := t.pkg()
		if _, ok := d.builds[pkg]; ok {
			continue
		}
		binary := filepath.Join(d.folder, strings.ReplaceAll(pkg, "/", "-")+".test")
		if said, err := exec.CommandContext(d.ctx, "go", "test", "-c", "-trimpath", "-o", binary, "./"+pkg).CombinedOutput(); err != nil {
			return fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, said)
		}
		code, err := os.ReadFile(binary)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(code)
		b := build{hash: hex.EncodeToString(sum[:8]), binary: binary}
		b.folder = filepath.Join(d.folder, b.hash)
		if err := os.MkdirAll(b.folder, 0o755); err != nil {
			return err
		}
		d.builds[pkg] = b
	}
	return nil
}

// folderOf is where the progress of a task is kept.
func (d *driver) folderOf(t task) string { return d.builds[t.pkg()].folder }

func (d *driver) over() bool {
	return d.ctx.Err() != nil || !d.until.IsZero() && time.Now().After(d.until)
}

// runAll runs the tasks and says every half minute how far they are.
func (d *driver) runAll(all []task, jobs int) {
	d.running, d.failures = map[string]task{}, map[string]string{}
	queue := make(chan task)
	var workers sync.WaitGroup
	for range jobs {
		workers.Go(func() {
			for t := range queue {
				d.runOne(t)
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		for _, t := range all {
			queue <- t
		}
		close(queue)
		workers.Wait()
		close(ended)
	}()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for began := time.Now(); ; {
		select {
		case <-tick.C:
			d.say("%s: %s\n", time.Since(began).Round(time.Second), d.far())
		case <-ended:
			return
		}
	}
}

func (d *driver) runOne(t task) {
	if d.over() {
		return
	}
	d.mu.Lock()
	d.running[t.name()] = t
	d.mu.Unlock()
	failure, err := t.run(d.ctx, d)
	switch {
	case d.ctx.Err() != nil:
		failure = "" // it was killed; what it had not counted it does again
	case err != nil:
		failure = err.Error()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.running, t.name())
	if failure != "" {
		d.failures[t.name()] = failure
		fmt.Fprintf(d.out, "%s FAILS\n%s\n", t.name(), failure)
	}
}

func (d *driver) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.out, format, args...)
}

// far is how far the proofs are that run.
func (d *driver) far() string {
	d.mu.Lock()
	running := maps.Clone(d.running)
	d.mu.Unlock()
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(running)) {
		done, err := proof.Load(d.folderOf(running[name]), name)
		if err != nil || done.Want == 0 {
			parts = append(parts, name+" begins")
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %d of %d", name, done.Count, done.Want))
	}
	return strings.Join(parts, ", ")
}

// seeded is a proof of package tier.
type seeded struct{ proof.Proof }

func (s seeded) name() string { return s.Name }
func (s seeded) pkg() string  { return s.Package }

func (s seeded) run(ctx context.Context, d *driver) (string, error) {
	b := d.builds[s.Package]
	cmd := exec.CommandContext(ctx, b.binary, "-test.run", "^"+s.Test+"$", "-test.v", "-test.timeout", "0")
	cmd.Dir = s.Package
	cmd.Env = append(os.Environ(), proof.DeepVar+"="+b.folder, proof.SeedVar+"=")
	if !d.until.IsZero() {
		cmd.Env = append(cmd.Env, proof.UntilVar+"="+strconv.FormatInt(d.until.Unix(), 10))
	}
	log := filepath.Join(b.folder, s.Name+".log")
	file, err := os.Create(log)
	if err != nil {
		return "", err
	}
	cmd.Stdout, cmd.Stderr = file, file
	err = errors.Join(cmd.Run(), file.Close())
	said, readErr := os.ReadFile(log)
	if err != nil || readErr != nil {
		return fmt.Sprintf("%v; the log is %s\n%s", errors.Join(err, readErr), log, wrong(said)), nil
	}
	return "", nil
}

// mostShown is how many lines of a log are printed.
const mostShown = 40

// wrong is what a log says of failures: its last lines but those on tests that run.
func wrong(log []byte) []byte {
	lines := slices.DeleteFunc(bytes.Split(bytes.TrimSpace(log), []byte("\n")), func(line []byte) bool {
		text := bytes.TrimSpace(line)
		return bytes.HasPrefix(text, []byte("=== ")) || bytes.HasPrefix(text, []byte("--- PASS"))
	})
	return bytes.Join(lines[max(0, len(lines)-mostShown):], []byte("\n"))
}

// fuzzed is a fuzz target.
type fuzzed struct{ proof.Target }

// wantExecutions is how often a deep run calls each target.
const wantExecutions = 1_000_000

func (f fuzzed) name() string { return f.Proof() }
func (f fuzzed) pkg() string  { return f.Package }

func (f fuzzed) run(ctx context.Context, d *driver) (string, error) {
	folder := d.folderOf(f)
	done, err := proof.Load(folder, f.name())
	if err != nil || done.Count > 0 && done.Count >= done.Want {
		return "", err
	}
	began := time.Now()
	did, err := f.Fuzz(ctx, fmt.Sprintf("%dx", wantExecutions), 1)
	if err != nil {
		return "", err
	}
	if did.Failed {
		return did.Output, nil
	}
	done = proof.Progress{Name: f.name(), Unit: "executions", Want: wantExecutions, Count: did.Executions, Seconds: time.Since(began).Seconds()}
	return "", done.Save(folder)
}
