//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package runner

import (
	"context"

	"github.com/nixie-go/nixie/internal/command"
)

// crew would keep processes; this system has none.
type crew struct{}

func (*Runner) newCrew(*step) (*crew, error) { return nil, command.Supported() }

func (*crew) hasten() {}

func (*crew) close() {}

func (*attempt) converse(context.Context, int) error { return command.Supported() }
