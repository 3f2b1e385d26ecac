package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/nixie-go/nixie"
)

// StartError reports that the command cannot be started for any item: the program is missing or not
// executable, or the directory is gone. The caller's configuration is at fault, so a runner should
// stop and not bury its items.
type StartError struct {
	Program string
	Err     error
}

func (e *StartError) Error() string {
	if e.Program == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("command %q cannot be started: %v", e.Program, e.Err)
}

// Unwrap returns the cause.
func (e *StartError) Unwrap() error { return e.Err }

// LookPath finds the file of a program as a shell would. It searches the folders of this process's
// PATH; a name with a slash is relative to the working directory. The error is a *[StartError].
// Give the answer to [Spec] as Path to search once, and not at each run.
func LookPath(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", &StartError{program, lookError(err)}
	}
	return path, nil
}

func lookError(err error) error {
	var failed *exec.Error
	if errors.As(err, &failed) {
		err = failed.Err
	}
	switch {
	case errors.Is(err, exec.ErrDot):
		return nixie.Errorf(nixie.CodeInvalid, "it is in the current directory only: write ./ before its name")
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return nixie.Errorf(nixie.CodeInvalid, "program not found: check its name and PATH")
	case errors.Is(err, fs.ErrPermission):
		return nixie.Errorf(nixie.CodeInvalid, "permission denied: make the file executable")
	}
	return nixie.Errorf(nixie.CodeInvalid, "%w", err)
}

// path returns the file to execute. A name with a slash is relative to Dir.
func (s *Spec) path() (string, error) {
	if s.Path != "" {
		return s.Path, nil
	}
	if strings.ContainsRune(s.Args[0], '/') {
		return s.Args[0], nil
	}
	return LookPath(s.Args[0])
}

// startFailure makes the error of a command that was not started.
func startFailure(s *Spec, err error) error {
	switch {
	case errors.Is(err, syscall.E2BIG):
		return refuse("arguments and environment are longer than the system allows: leave large fields out, " +
			"the command gets the item on standard input too")
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EMFILE),
		errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ETXTBSY), errors.Is(err, syscall.ENOSPC):
		return shortage(fmt.Errorf("command %q cannot be started now: %w", s.Args[0], err))
	}
	if s.Dir != "" {
		info, statErr := os.Stat(s.Dir)
		if statErr != nil {
			return &StartError{s.Args[0], nixie.Errorf(nixie.CodeInvalid, "working directory: %w", statErr)}
		}
		if !info.IsDir() {
			return &StartError{s.Args[0], nixie.Errorf(nixie.CodeInvalid, "working directory %s is not a directory", s.Dir)}
		}
	}
	if errors.Is(err, syscall.ENOEXEC) {
		return &StartError{s.Args[0], nixie.Errorf(nixie.CodeInvalid, "not a program: begin a script with #! and its interpreter")}
	}
	if info, statErr := os.Stat(s.Path); s.Path != "" && statErr == nil && info.Mode().IsRegular() && errors.Is(err, fs.ErrNotExist) {
		return &StartError{s.Args[0], nixie.Errorf(nixie.CodeInvalid, "its interpreter is missing: check the line after #! of %s", s.Path)}
	}
	return &StartError{s.Args[0], lookError(err)}
}

// shortage marks err as a transient lack of resources.
func shortage(err error) error { return nixie.WithReason(nixie.Transient(err), nixie.ReasonResource) }

// notStarted returns the error of a run whose context had ended before it began.
func notStarted(ctx context.Context) error {
	return nixie.WithReason(nixie.Transient(fmt.Errorf("command not started: %w", context.Cause(ctx))), nixie.ReasonCanceled)
}
