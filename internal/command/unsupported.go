//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package command

import (
	"context"
	"runtime"
	"time"

	"github.com/nixie-go/nixie"
)

// Guard would end the commands of a dead process; this system has none.
type Guard struct{}

// Supported says why commands cannot be run on this system.
func Supported() error {
	return nixie.Errorf(nixie.CodeUnavailable, "commands cannot be run on %s, which has no process groups: "+
		"run this on Linux or macOS", runtime.GOOS)
}

// Run returns unavailable on this system.
func Run(_ context.Context, spec Spec) (Result, error) {
	if err := spec.check(); err != nil {
		return Result{}, err
	}
	return Result{}, &StartError{spec.Args[0], Supported()}
}

// StartGuard returns unavailable on this system.
func StartGuard(string, string) (*Guard, error) { return nil, Supported() }

// Close does nothing.
func (*Guard) Close() error { return nil }

// GuardMain reports false on this system.
func GuardMain() bool { return false }

// EndAbandoned has nothing to end on this system.
func EndAbandoned(string, string, time.Duration) error { return nil }
