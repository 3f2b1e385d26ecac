package worktree

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
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
	"commit.gpgSign=false", "log.showSignature=false", "merge.verifySignatures=false", "submodule.recurse=false",
	"advice.detachedHead=false", "core.quotePath=false",
	"core.preloadIndex=false", // its threads cost more than they bring where attempts share the processors
}

// git runs the command, each call with a deadline.
type git struct {
	path     string
	environ  []string // for our calls
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
			"GIT_ATTR_NOSYSTEM=1", "GIT_EDITOR=true", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "LC_ALL=C"),
		deadline: deadline}, nil
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
	return slices.Contains([]string{"update-ref", "symbolic-ref", "worktree", "merge"}, args[0])
}

// failed makes an error of a call that ended with a code.
func failed(args []string, s output) error {
	text := s.err
	if text == "" {
		text = s.out
	}
	text = strings.TrimPrefix(text, "fatal: ")
	if strings.Contains(text, "No space left on device") || strings.Contains(text, "Disk quota exceeded") {
		return nixie.WithReason(nixie.Errorf(nixie.CodeUnavailable, "git %s: %w", args[0], noRoom(text)), nixie.ReasonResource)
	}
	err := nixie.Errorf(nixie.CodeUnavailable, "git %s: %s", args[0], text)
	if strings.Contains(text, "out of memory") {
		return nixie.WithReason(err, nixie.ReasonResource)
	}
	return worktreeError(err)
}

// noRoom holds the text of git about a full disk.
type noRoom string

func (e noRoom) Error() string { return string(e) }

// Is lets errors.Is find the error of the system.
func (e noRoom) Is(target error) bool { return target == syscall.ENOSPC }

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

// filter runs a call that reads or writes the content of files, with the drivers switched off that
// the repository's settings name. It asks for their names each time: a linked worktree, an include
// with a condition and an attempt that has just ended may each have added some.
func (g *git) filter(ctx context.Context, dir string, args ...string) (output, int, error) {
	s, code, err := g.exec(ctx, dir, nil, "config", "--includes", "--name-only", "-z", "--get-regexp",
		`^(filter|merge|diff)\..*\.(clean|smudge|process|required|driver|textconv|command)$`)
	if err == nil && code > 1 {
		err = failed([]string{"config"}, s)
	}
	if err != nil {
		return s, code, err
	}
	quiet := *g
	quiet.environ = append(slices.Clip(g.environ), settingsIn(0, driversOff(fields(s.out)))...)
	return quiet.exec(ctx, dir, nil, args...)
}

// driversOff returns the settings that switch drivers off. A merge driver cannot be switched off,
// so it becomes git's own merge of lines.
func driversOff(names []string) (off [][2]string) {
	for _, name := range names {
		value := ""
		switch {
		case strings.HasSuffix(name, ".required"):
			value = "false"
		case strings.HasSuffix(name, ".driver"):
			value = "git merge-file --quiet %A %O %B || exit 1"
		}
		off = append(off, [2]string{name, value})
	}
	return off
}

// settingsIn returns the variables that give settings to git, after the first that the caller has.
func settingsIn(first int, settings [][2]string) []string {
	environ := []string{fmt.Sprint("GIT_CONFIG_COUNT=", first+len(settings))}
	for i, setting := range settings {
		environ = append(environ, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", first+i, setting[0]),
			fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", first+i, setting[1]))
	}
	return environ
}

// in returns a git for one worktree. It reads no file of the worktree to find the repository.
func (g *git) in(common, gitDir, folder string) git {
	there := *g
	there.environ = append(slices.Clip(g.environ), "GIT_COMMON_DIR="+common, "GIT_DIR="+gitDir, "GIT_WORK_TREE="+folder)
	return there
}
