//go:build unix

package itemfile

import (
	"os"
	"syscall"
)

// nonblock opens a pipe without waiting for who writes to it.
const nonblock = syscall.O_NONBLOCK

// syncFolder lets the names in a folder outlast a loss of power.
func syncFolder(folder *os.File) error { return folder.Sync() }
