package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
)

// minGit is the oldest git whose merge-tree writes trees and whose worktrees pass the tests here.
const minGit = "2.39"

// maxAnswer limits the bytes that a call may print.
const maxAnswer = 16 << 20

// settings apply to each of our calls: nothing that a repository or a user has configured runs,
// asks, or works in the background.
var settings = [...]string{
	"gc.auto=0", "maintenance.auto=false", "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.attributesFile=/dev/null",
	"protocol.allow=never", "commit.gpgSign=false", "submodule.recurse=false", "advice.detachedHead=false", "core.quotePath=false",
	"core.preloadIndex=false", // its threads cost more than they bring where attempts share the processors
}

// git runs the command, each call with a deadline.
type git struct {
	path     string
	environ  []string // for our calls
	extra    []string // settings of this repository
	deadline time.Duration
}

func newGit(path string, environ []string, deadline time.Duration) (*git, error) {
	if path == "" {
		found, err := command.LookPath("git")
		if err != nil {
			return nil, nixie.Errorf(nixie.CodeUnavailable, "git is not there: install git %s or later: %w", minGit, err)
		}
		path = found
	}
	return &git{path: path,
		environ: append(withoutGit(environ), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0",
			"GIT_ATTR_NOSYSTEM=1", "GIT_EDITOR=true", "GIT_NO_LAZY_FETCH=1", "LC_ALL=C"), deadline: deadline}, nil
}

// withoutGit removes all variables of git from an environment.
func withoutGit(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool { return strings.HasPrefix(variable, "GIT_") })
}

// withoutRepository removes the variables that name a repository. Others, such as the author, stay
// as the user set them.
func withoutRepository(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains([]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
			"GIT_ALTERNATE_OBJECT_DIRECTORIES",
			"GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_CONFIG_COUNT"}, name)
	})
}

// call runs git in a folder, and returns what it prints without the last line end.
func (g *git) call(ctx context.Context, dir string, args ...string) (string, error) {
	said, code, err := g.exec(ctx, dir, nil, args...)
	if err == nil && code != 0 {
		err = failed(args, said)
	}
	return said.out, err
}

// output is the standard output and error of a call.
type output struct{ out, err string }

// exec runs git in a folder. The caller judges the exit code.
func (g *git) exec(ctx context.Context, dir string, stdin []byte, args ...string) (output, int, error) {
	all := []string{"git"}
	for _, setting := range settings {
		all = append(all, "-c", setting)
	}
	for _, setting := range g.extra {
		all = append(all, "-c", setting)
	}
	all = append(all, args...)
	result, err := command.Run(ctx, command.Spec{
		Args: all, Path: g.path, Dir: dir, Env: g.environ, Stdin: stdin, Timeout: g.deadline, TailLimit: maxAnswer,
		Survives: writesRepository(args),
	})
	switch {
	case err != nil:
		return output{}, 0, err
	case result.Canceled:
		return output{}, 0, nixie.Errorf(nixie.CodeUnavailable, "git %s: %w", args[0], context.Canceled)
	case result.TimedOut:
		return output{}, 0, worktreeError(nixie.Errorf(nixie.CodeUnavailable, "git %s had no end after %s", args[0], g.deadline))
	case result.Stdout.Dropped > 0:
		return output{}, 0, worktreeError(nixie.Errorf(nixie.CodeLimit, "git %s said more than %d bytes", args[0], maxAnswer))
	}
	return output{strings.TrimSuffix(string(result.Stdout.Data), "\n"), strings.TrimSpace(string(result.Stderr.Data))}, result.ExitCode, nil
}

// writesRepository reports whether a call writes files that others use too. Killed in the middle,
// it would leave its locks in the user's repository.
func writesRepository(args []string) bool {
	for len(args) > 1 && args[0] == "-c" {
		args = args[2:]
	}
	return slices.Contains([]string{"update-ref", "symbolic-ref", "worktree", "merge"}, args[0])
}

// failed makes an error of a call that ended with a code.
func failed(args []string, s output) error {
	text := s.err
	if text == "" {
		text = s.out
	}
	err := nixie.Errorf(nixie.CodeUnavailable, "git %s: %s", args[0], strings.TrimPrefix(text, "fatal: "))
	if strings.Contains(text, "No space left on device") || strings.Contains(text, "out of memory") {
		return nixie.WithReason(err, nixie.ReasonResource)
	}
	return worktreeError(err)
}

// worktreeError marks an error as one of the worktrees themselves.
func worktreeError(err error) error { return nixie.WithReason(err, nixie.ReasonWorktree) }

// olderThan reports whether a version is older than the least.
func olderThan(version, least string) bool {
	var have, want [2]int
	if _, err := fmt.Sscanf(version, "%d.%d", &have[0], &have[1]); err != nil {
		return true
	}
	_, _ = fmt.Sscanf(least, "%d.%d", &want[0], &want[1])
	return slices.Compare(have[:], want[:]) < 0
}

// lines splits an answer at line ends.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// fields splits an answer of -z.
func fields(text string) []string {
	text = strings.TrimSuffix(text, "\x00")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\x00")
}

// disableDrivers switches off the drivers that a repository names to filter the content of files.
func (g *git) disableDrivers(ctx context.Context, dir string) error {
	s, code, err := g.exec(ctx, dir, nil, "config", "--local", "--includes", "--name-only", "--get-regexp",
		`^(filter|merge|diff)\..*\.(clean|smudge|process|required|driver|textconv|command)$`)
	if err != nil {
		return err
	}
	if code > 1 {
		return failed([]string{"config"}, s)
	}
	for _, name := range lines(s.out) {
		if bytes.ContainsAny([]byte(name), "\x00=") {
			return worktreeError(errors.New("a driver in the repository's settings has a name with an equals sign: rename it"))
		}
		value := ""
		if strings.HasSuffix(name, ".required") {
			value = "false"
		}
		g.extra = append(g.extra, name+"="+value)
	}
	return nil
}
