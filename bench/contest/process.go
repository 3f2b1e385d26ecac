package contest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// reading is the state of the clocks at a moment.
type reading struct {
	wall time.Time
	cpu  time.Duration
}

func read() reading { return reading{time.Now(), processorTime()} }

// since is the time that went by, on the wall and on all processors.
func (r reading) since() (wall, cpu time.Duration) {
	return time.Since(r.wall), processorTime() - r.cpu
}

// processorTime is what this process has used, in user and system mode.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory is the most memory in bytes that this process ever had resident.
// The system's own counter is read where it has one, because getrusage also
// knows the parent's memory from before the program was started.
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

// folderSize is the size of all files below a folder.
func folderSize(folder string) (size int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		size += info.Size()
		return nil
	})
	return size, err
}
