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

// processInfo is a live process.
type processInfo struct {
	pid, group, session int
	start               uint64 // ticks since boot; with pid it identifies a process for good
	zombie              bool
}

// ownExecutable returns a path of this program that is valid also after its file was replaced.
func ownExecutable() (string, error) { return "/proc/self/exe", nil }

// systemName identifies the boot and the process ID namespace. Numbers of another one mean nothing
// here.
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

// ticks returns the time since boot in the unit of start times; 0 means unknown.
func ticks() uint64 {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return uint64(now.Nano() / tick)
}

// startTime returns the start time of a process; 0 means unknown.
func startTime(pid int) uint64 {
	p, err := readProcess(pid)
	if err != nil {
		return 0
	}
	return p.start
}

func readProcess(pid int) (processInfo, error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return processInfo{}, err
	}
	var buf [1024]byte
	n, err := unix.Read(fd, buf[:])
	_ = unix.Close(fd) // only read
	if err != nil {
		return processInfo{}, err
	}
	return parseStat(buf[:n])
}

// parseStat reads a line of /proc/PID/stat. The name in parentheses may hold any character, so it
// counts fields from the end of the name.
func parseStat(line []byte) (processInfo, error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return processInfo{}, errors.New("stat of a process: no name")
	}
	fields := bytes.Fields(line[end+1:])
	if len(fields) < 20 {
		return processInfo{}, errors.New("stat of a process: too few fields")
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(line[:open])))
	group, groupErr := strconv.Atoi(string(fields[2]))
	session, sessionErr := strconv.Atoi(string(fields[3]))
	start, startErr := strconv.ParseUint(string(fields[19]), 10, 64)
	state := fields[0][0]
	return processInfo{pid, group, session, start, state == 'Z' || state == 'X'},
		errors.Join(err, groupErr, sessionErr, startErr)
}

func listProcesses() ([]processInfo, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var all []processInfo
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if p, err := readProcess(pid); err == nil { // otherwise it ended meanwhile
			all = append(all, p)
		}
	}
	return all, nil
}

// killOnce kills the owner's processes and returns their number. They are the members of the listed
// groups, and marked processes of the owner's session: a child may have started and not be listed
// yet.
func killOnce(g groupList, _ bool) (int, error) {
	all, err := listProcesses()
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
		case p.session == g.session && hasMark(p.pid, g.mark):
			left++
			if err := killProcess(p); err != nil {
				return left, err
			}
		}
	}
	return left, nil
}

// liveGroups returns the listed groups that have live members. The system does not reuse the number
// of a group with members. So one member that belongs to the listed group proves it: the leader by
// its start time, another member by session and start time.
func liveGroups(g groupList, all []processInfo) []int {
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
		isMember := func(p processInfo) bool {
			return p.group == s.group && !p.zombie && p.session == g.session && p.start >= s.start
		}
		if slices.ContainsFunc(all, isMember) {
			live = append(live, s.group)
		}
	}
	return live
}

// hasMark reports whether the environment of a process had the mark at its start.
func hasMark(pid int, mark string) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false // ended, or of another user
	}
	return bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+markVariable+"="+mark+"\x00"))
}

// killProcess kills exactly this process. It opens a handle on the number first, and then checks
// that the number still means this process.
func killProcess(p processInfo) error {
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return nil // ended
	}
	defer handle.Release() //nolint:errcheck // it only forgets the number
	if now, err := readProcess(p.pid); err != nil || now.start != p.start {
		return nil // ended
	}
	err = handle.Kill()
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
