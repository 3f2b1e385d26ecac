//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package command

import (
	"fmt"
	"os"
	"syscall"
)

func ownExecutable() (string, error) { return os.Executable() }

// systemName returns a constant: a list is used only while its supervisor runs. Later no process
// can tell the owner of a group number.
func systemName() string { return "unverifiable" }

func ticks() uint64 { return 0 }

func startTime(int) uint64 { return 0 }

// killOnce kills the listed groups if their owner ended a moment ago, and returns their number. It
// leaves the groups of an older list alone: without start times nothing proves that the numbers
// still mean them.
func killOnce(g groupList, atOnce bool) (int, error) {
	if !atOnce {
		return 0, nil
	}
	left := 0
	for _, s := range g.slots {
		switch err := syscall.Kill(-s.group, syscall.SIGKILL); err {
		case nil:
			left++
		case syscall.ESRCH, syscall.EPERM: // gone, or only zombies are left
		default:
			return left, fmt.Errorf("kill process group %d: %w", s.group, err)
		}
	}
	return left, nil
}
