//go:build !unix

package worktree

import (
	"os"

	"github.com/nixie-go/nixie"
)

func lockJob(string) (*os.File, error) {
	return nil, nixie.Errorf(nixie.CodeUnavailable, "worktrees are not to be had on this system yet")
}

func alone(string, func() error) error {
	return nixie.Errorf(nixie.CodeUnavailable, "worktrees are not to be had on this system yet")
}
