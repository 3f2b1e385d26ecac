package command

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// proc is a live process.
type proc struct {
	pid, group, session int
	start               uint64 // ticks since boot: with pid it names a process for good
	zombie              bool
}

// ownExecutable names this program also when its file was replaced.
func ownExecutable() (string, error) { return "/proc/self/exe", nil }

// systemName names the boot and the process number space: numbers of another
// one mean nothing here.
func systemName() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		boot = []byte("unknown")
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		space = "unknown"
	}
	return strings.TrimSpace(string(boot)) + "/" + space
}

// tick is the unit of start times on every machine that Go runs on.
const tick = int64(10 * time.Millisecond)

// ticks is the time since boot as start times count it; 0 when nobody can tell.
func ticks() uint64 {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return uint64(now.Nano() / tick)
}

// startTime is when a process started, 0 when nobody can tell.
func startTime(pid int) uint64 {
	p, err := readProc(pid)
	if err != nil {
		return 0
	}
	return p.start
}

func readProc(pid int) (proc, error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return proc{}, err
	}
	var buf [1024]byte
	n, err := unix.Read(fd, buf[:])
	_ = unix.Close(fd) // only read
	if err != nil {
		return proc{}, err
	}
	return parseStat(buf[:n])
}

// parseStat reads a line of /proc/PID/stat. The name in parentheses may hold
// anything, so fields are counted from its end.
func parseStat(line []byte) (proc, error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return proc{}, errors.New("stat of a process: no name")
	}
	fields := bytes.Fields(line[end+1:])
	if len(fields) < 20 {
		return proc{}, errors.New("stat of a process: too few fields")
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(line[:open])))
	group, groupErr := strconv.Atoi(string(fields[2]))
	session, sessionErr := strconv.Atoi(string(fields[3]))
	start, startErr := strconv.ParseUint(string(fields[19]), 10, 64)
	state := fields[0][0]
	return proc{pid, group, session, start, state == 'Z' || state == 'X'},
		errors.Join(err, groupErr, sessionErr, startErr)
}

func listProcs() ([]proc, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var all []proc
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, err := readProc(pid); err == nil { // else it ended meanwhile
			all = append(all, p)
		}
	}
	return all, nil
}

// endOnce kills what is there of the owner's processes and returns how many it
// saw: members of the listed groups, and marked processes of the owner's
// session, which covers a child that was started but not listed yet.
func endOnce(g groups, _ bool) (int, error) {
	all, err := listProcs()
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	listed := liveGroups(g, all)
	for _, group := range listed {
		if err := syscall.Kill(-group, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
			return 0, fmt.Errorf("kill process group %d: %w", group, err)
		}
	}
	left := 0
	for _, p := range all {
		switch {
		case p.zombie || p.pid == os.Getpid():
		case slices.Contains(listed, p.group):
			left++
		case p.session == g.session && carries(p.pid, g.mark):
			left++
			if err := killProc(p); err != nil {
				return left, err
			}
		}
	}
	return left, nil
}

// liveGroups returns the listed groups that have live members. A group's number
// is not given to another process while it has members, so one member that is
// known to be of the listed group proves the group. With the leader alive its
// start time tells; without it, session and start time of each member do.
func liveGroups(g groups, all []proc) []int {
	leaders := map[int]uint64{}
	for _, p := range all {
		leaders[p.pid] = p.start
	}
	var live []int
	for _, s := range g.slots {
		start, led := leaders[s.group]
		if s.start == 0 || led && start != s.start {
			continue
		}
		isMember := func(p proc) bool {
			return p.group == s.group && !p.zombie && p.session == g.session && p.start >= s.start
		}
		if slices.ContainsFunc(all, isMember) {
			live = append(live, s.group)
		}
	}
	return live
}

// carries reports whether the environment that a process was started with holds
// the mark.
func carries(pid int, mark string) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false // ended, or of another user
	}
	return bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+markVariable+"="+mark+"\x00"))
}

// killProc kills exactly this process: a handle on its number is opened first,
// then it is checked that the number still means it.
func killProc(p proc) error {
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return nil // ended
	}
	defer handle.Release() //nolint:errcheck // it only forgets the number
	if now, err := readProc(p.pid); err != nil || now.start != p.start {
		return nil // ended
	}
	err = handle.Kill()
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
