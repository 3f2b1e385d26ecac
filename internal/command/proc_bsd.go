//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package command

import (
	"fmt"
	"os"
	"syscall"
)

func ownExecutable() (string, error) { return os.Executable() }

// systemName is that of the one life of a supervisor: later nobody can tell
// whose group a number is.
func systemName() string { return "unverifiable" }

func ticks() uint64 { return 0 }

func startTime(int) uint64 { return 0 }

// endOnce kills the listed groups if their owner ended a moment ago, and returns
// how many there were. Without start times nothing proves that an older list
// still means the same groups: they are left alone.
func endOnce(g groups, atOnce bool) (int, error) {
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
