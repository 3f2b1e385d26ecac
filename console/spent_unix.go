//go:build linux || darwin

package console

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime returns the processor time that this thread of the system has taken.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
