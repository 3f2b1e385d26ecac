package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/config"
)

// hook is a command that a flag names. It is split at blanks, and no shell reads it.
type hook struct {
	flag string
	spec command.Spec
	env  command.Environment
}

func newHook(flag, text string, timeout time.Duration) (*hook, error) {
	args, path, err := command.Words(text)
	if err != nil {
		return nil, usagef("--%s: %w", flag, err)
	}
	return &hook{flag, command.Spec{Args: args, Path: path, Timeout: timeout}, command.NewEnvironment(config.Inherited())}, nil
}

// notesFolder returns the folder for notes about running commands. It is a temporary one where the
// home of the user cannot be written, as in many containers.
func (g *globals) notesFolder() string {
	folder := config.StateFolder(g.Env)
	if g.Env("XDG_STATE_HOME") != "" {
		return folder // which the user chose
	}
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(folder, "probe-*"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return config.StateFolder(func(string) string { return "" })
	}
	return folder
}

// guard starts a process that ends the command should this one vanish. End ends it.
func (h *hook) guard(g *globals) (err error) {
	folder := filepath.Join(g.notesFolder(), "owners")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nixie.Errorf(nixie.CodeUnavailable, "folder for running commands: %w; XDG_STATE_HOME names another", err)
	}
	h.spec.Guard, err = command.StartGuard(folder, h.flag+":"+g.owner())
	return err
}

func (h *hook) end() { _ = h.spec.Guard.Close() } // every command has ended

// run runs the command once. An exit code other than 0 is an error.
func (h *hook) run(ctx context.Context, stdin []byte, stdout io.Writer, fields ...command.Field) error {
	spec := h.spec
	spec.Stdin, spec.Stdout, spec.Env = stdin, stdout, h.env.With(fields...)
	result, err := command.Run(ctx, spec)
	if err == nil {
		err = result.Err(nil)
	}
	return err
}
