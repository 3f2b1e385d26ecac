//go:build !unix

package worktree

import (
	"context"
	"os"

	"github.com/nixie-go/nixie"
)

func lockJob(context.Context, string) (*os.File, error) {
	return nil, nixie.Errorf(nixie.CodeUnavailable, "worktrees need a Unix system: use Linux, macOS or BSD")
}

func withLock(string, func() error) error {
	return nixie.Errorf(nixie.CodeUnavailable, "worktrees need a Unix system: use Linux, macOS or BSD")
}
