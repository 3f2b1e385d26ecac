package proof

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Target is a fuzz target.
type Target struct {
	Package string // below the module
	Name    string
}

// Proof is the name under which a target is counted.
func (t Target) Proof() string {
	return "fuzz-" + strings.NewReplacer("/", "-", ".", "root").Replace(t.Package) + "-" + t.Name
}

var fuzzFunc = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// Targets finds every fuzz target of a module, by package and name. Modules below
// it and test data are left out.
func Targets(root fs.FS) ([]Target, error) {
	var all []Target
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(root, name)
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		source, err := fs.ReadFile(root, name)
		for _, match := range fuzzFunc.FindAllSubmatch(source, -1) {
			all = append(all, Target{path.Dir(name), string(match[1])})
		}
		return err
	})
	slices.SortFunc(all, func(a, b Target) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Name, b.Name))
	})
	return all, err
}

// enter skips the folders that go list skips.
func enter(root fs.FS, folder string) error {
	if folder == "." {
		return nil
	}
	base := path.Base(folder)
	_, err := fs.Stat(root, path.Join(folder, "go.mod"))
	if err == nil || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return fs.SkipDir
	}
	return nil
}

// Rotation returns the n targets of this commit: the same ones for the same tree of files, others
// after the next commit. Without git the names of the targets decide.
func Rotation(ctx context.Context, targets []Target, n int) []Target {
	if len(targets) == 0 {
		return nil
	}
	tree, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD^{tree}").Output()
	if err != nil {
		tree = fmt.Append(nil, targets)
	}
	sum := fnv.New32a()
	sum.Write(tree)
	first := int(sum.Sum32() % uint32(len(targets)))
	chosen := slices.Concat(targets[first:], targets[:first])
	return chosen[:min(n, len(chosen))]
}

// Fuzzed counts what a run of a target did.
type Fuzzed struct {
	Executions int
	Failed     bool
	Output     string
}

// executions matches the count of inputs that were made and run or, before that begins, of known
// inputs that were run again: the time may end with them.
var executions = regexp.MustCompile(`(?:execs: |baseline coverage: )(\d+)`)

// bareEnd is a failure without an input that failed: at the end of its time Go's
// coordinator of fuzzing may take its own deadline for an error (golang/go#75804).
var bareEnd = regexp.MustCompile(`(?m)^--- FAIL: Fuzz\w+ \([\d.]+s\)\n    context deadline exceeded\nFAIL$`)

// Fuzz runs a target for some time, as "5s", or executions, as "1000000x", with
// a number of workers. An input that fails stays in the folder testdata of its package.
// It is an error when the target could not be run.
func (t Target) Fuzz(ctx context.Context, fuzztime string, workers int) (Fuzzed, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+t.Name+"$", "-fuzztime", fuzztime,
		"-parallel", strconv.Itoa(workers), "./"+t.Package)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		return Fuzzed{}, ctx.Err()
	}
	return result(out.String(), err)
}

// result reads what go test said of a run.
func result(output string, err error) (Fuzzed, error) {
	did := Fuzzed{Output: output}
	for _, match := range executions.FindAllStringSubmatch(output, -1) {
		n, parseErr := strconv.Atoi(match[1])
		if parseErr != nil {
			return did, fmt.Errorf("go test says %q: %w", match[0], parseErr)
		}
		did.Executions = n
	}
	switch {
	case did.Executions > 0 && bareEnd.MatchString(output) && !strings.Contains(output, "ailing input"):
		return did, nil
	case strings.Contains(output, "--- FAIL: Fuzz"):
		did.Failed = true
	case err != nil:
		return did, fmt.Errorf("go test -fuzz: %w\n%s", err, output)
	case did.Executions == 0:
		return did, fmt.Errorf("go test -fuzz executed nothing:\n%s", output)
	}
	return did, nil
}
