package contest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// reading is the state of the clocks at one time.
type reading struct {
	wall time.Time
	cpu  time.Duration
}

func read() reading { return reading{time.Now(), ProcessorTime()} }

// since returns the time since the reading, by the clock and on all processors.
func (r reading) since() (wall, cpu time.Duration) {
	return time.Since(r.wall), ProcessorTime() - r.cpu
}

// ProcessorTime returns the processor time of this process, in user and system mode.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory returns the most bytes that this process had resident. It reads the system's own
// counter if there is one, because getrusage includes the parent's memory before the program
// started.
func peakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		for line := range strings.Lines(string(status)) {
			if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmHWM:" {
				kib, err := strconv.ParseInt(fields[1], 10, 64)
				if err == nil {
					return kib << 10
				}
			}
		}
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss << 10
}

// ParentOf returns the process that starts all others of a PostgreSQL server, from one of those. It
// returns 0 when the server does not run here.
func ParentOf(backend uint32) (parent int) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", backend))
	if err != nil || !bytes.HasPrefix(status, []byte("Name:\tpostgres\n")) {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "\nPPid:")
	if _, err := fmt.Sscan(rest, &parent); err != nil {
		return 0
	}
	return parent
}

// tick is the unit of times in /proc, which is fixed on Linux.
const tick = time.Second / 100

// ServerTime returns the processor time of a server in user and system mode: that of its first
// process and of all children, live and ended. It returns 0 without a server, or when the system
// cannot tell.
func ServerTime(postmaster int) time.Duration {
	if postmaster == 0 {
		return 0
	}
	own, ended, ok := used(strconv.Itoa(postmaster))
	if !ok {
		return 0
	}
	total := own + ended
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", postmaster))
	if err != nil {
		return 0
	}
	for _, list := range lists {
		children, err := os.ReadFile(list)
		if err != nil {
			return 0
		}
		for _, child := range strings.Fields(string(children)) {
			if own, _, ok := used(child); ok {
				total += own
			}
		}
	}
	return total
}

// used reads the processor time of a process and of its ended children.
func used(process string) (own, ended time.Duration, ok bool) {
	stat, err := os.ReadFile("/proc/" + process + "/stat")
	if err != nil {
		return 0, 0, false
	}
	// The name, in brackets, may have blanks. After it come the state and 10 more
	// fields, and then the times.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const first = 11
	if len(fields) < first+4 {
		return 0, 0, false
	}
	var ticks [4]int64
	for i := range ticks {
		if ticks[i], err = strconv.ParseInt(fields[first+i], 10, 64); err != nil {
			return 0, 0, false
		}
	}
	return time.Duration(ticks[0]+ticks[1]) * tick, time.Duration(ticks[2]+ticks[3]) * tick, true
}
