//go:build unix

package command

import "syscall"

const openGently = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
