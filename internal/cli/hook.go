package cli

import (
	"context"
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

// guard starts a process that ends the command should this one vanish. End ends it.
func (h *hook) guard(g *globals) (err error) {
	folder := filepath.Join(config.StateFolder(g.Env), "owners")
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
