package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// source is the commit that is released, in a folder of its own.
type source struct {
	dir     string
	commit  string
	when    time.Time // of the commit: the time of every file that is released
	version string    // the tag without its v, once a program was built
	shell   []entry   // scripts and pages of the manual, once the program was built
}

// checkOut clones the commit that is checked out. The clone has what is committed and nothing else,
// and the go command finds the version there, which it does not in a work tree of another clone.
func checkOut(ctx context.Context, repository, to string) (*source, error) {
	changed, err := run(ctx, repository, nil, "git", "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if changed != "" {
		// What builds the release is compiled from this folder, not from the clone.
		return nil, fmt.Errorf("a release is made of a commit, and this is not committed: commit it, or build in a clone\n%s", changed)
	}
	shallow, err := run(ctx, repository, nil, "git", "rev-parse", "--is-shallow-repository")
	if err != nil {
		return nil, err
	}
	if shallow == "true" {
		return nil, fmt.Errorf("this clone is shallow, so the tag before its commit is unknown: git fetch --unshallow --tags")
	}
	from, err := filepath.Abs(repository)
	if err != nil {
		return nil, err
	}
	if _, err := run(ctx, "", nil, "git", "clone", "--quiet", "--template=", from, to); err != nil {
		return nil, err
	}
	line, err := run(ctx, to, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return nil, err
	}
	commit, at, _ := strings.Cut(line, " ")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the time of commit %s: %w", commit, err)
	}
	return &source{dir: to, commit: commit, when: time.Unix(seconds, 0).UTC()}, nil
}

// run runs a command to its end and returns what it printed, without the last line end.
func run(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	printed, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSuffix(string(printed), "\n"), nil
}

// read returns a file of the commit.
func (s *source) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(name)))
}

// name names a released file.
func (s *source) name(rest string) string { return "nixie_" + s.version + rest }
