//go:build unix

package command

import "syscall"

const safeOpenFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
