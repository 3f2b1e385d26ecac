//go:build unix

package itemfile

import (
	"os"
	"syscall"
)

// nonblock opens a pipe without waiting for its writer.
const nonblock = syscall.O_NONBLOCK

// syncFolder syncs the names in a folder, so that they survive a loss of power.
func syncFolder(folder *os.File) error { return folder.Sync() }
