// Check looks at the files of a release as who downloads them would, on fresh roots:
//
//	check [-dist DIR] [steps]
//
// Each step prints a line: ok and what it saw, skip and what is missing, or FAIL and why. Without
// names all steps run. Roots are folders that chroot makes the root of a process, so most steps
// need Linux and the rights of root.
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
	"strings"
	"syscall"
	"time"
)

// step is one part of the check. It returns what it saw.
type step struct {
	name string
	run  func(context.Context, *release) (string, error)
}

var steps = []step{
	{"sums", checkSums},
	{"programs", checkPrograms},
	{"twice", checkTwice},
	{"archive", checkArchive},
	{"homes", checkHomes},
	{"arm64", checkARM64},
	{"package", checkPackage},
	{"image", checkImage},
	{"clone", checkClone},
	{"tests", checkTests},
}

// skip is an error that says what a step lacks.
type skip string

func (s skip) Error() string { return string(s) }

// release names what was built.
type release struct {
	dist    string // absolute
	version string // from the name of the list of modules
	work    string // a temporary folder
	debian  string // the root of Debian, once one was made
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dist := flag.String("dist", "dist", "folder of the files that make release built")
	flag.Parse()
	if err := check(ctx, *dist, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

// check runs the steps of these names, or all.
func check(ctx context.Context, dist string, names []string, out io.Writer) error {
	for _, name := range names {
		if !slices.ContainsFunc(steps, func(s step) bool { return s.name == name }) {
			return fmt.Errorf("there is no step %q", name)
		}
	}
	r, err := open(dist)
	if err != nil {
		return err
	}
	defer os.RemoveAll(r.work) //nolint:errcheck // a temporary folder
	failed := 0
	for _, s := range steps {
		if len(names) > 0 && !slices.Contains(names, s.name) {
			continue
		}
		began := time.Now()
		saw, err := s.run(ctx, r)
		took := time.Since(began).Round(100 * time.Millisecond)
		var missing skip
		switch {
		case errors.As(err, &missing):
			fmt.Fprintf(out, "skip  %-9s %s\n", s.name, missing)
		case err != nil:
			failed++
			fmt.Fprintf(out, "FAIL  %-9s %v: %v\n", s.name, took, err)
		default:
			fmt.Fprintf(out, "ok    %-9s %v: %s\n", s.name, took, saw)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d steps failed", failed)
	}
	return ctx.Err()
}

// open finds the release in a folder.
func open(dist string) (*release, error) {
	dist, err := filepath.Abs(dist)
	if err != nil {
		return nil, err
	}
	lists, err := filepath.Glob(filepath.Join(dist, "nixie_*_sbom.cdx.json"))
	if err != nil || len(lists) != 1 {
		return nil, fmt.Errorf("%s has no release: make release builds one: %w", dist, err)
	}
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(lists[0]), "nixie_"), "_sbom.cdx.json")
	work, err := os.MkdirTemp("", "nixie-check-")
	if err != nil {
		return nil, err
	}
	return &release{dist: dist, version: version, work: work}, nil
}

// path returns the path of a released file.
func (r *release) path(rest string) string { return filepath.Join(r.dist, "nixie_"+r.version+rest) }
