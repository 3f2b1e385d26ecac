//go:build !unix

package worktree

import (
	"context"
	"os"

	"github.com/nixie-go/nixie"
)

func lockJob(context.Context, string) (*os.File, error) {
	return nil, nixie.Errorf(nixie.CodeUnavailable, "worktrees are not to be had on this system yet")
}

func alone(string, func() error) error {
	return nixie.Errorf(nixie.CodeUnavailable, "worktrees are not to be had on this system yet")
}
