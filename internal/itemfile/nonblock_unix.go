//go:build unix

package itemfile

import "syscall"

// nonblock opens a pipe without waiting for who writes to it.
const nonblock = syscall.O_NONBLOCK
