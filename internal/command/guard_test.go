//go:build linux

package command

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

func startGuard(t testing.TB, dir, owner string) *Guard {
	t.Helper()
	guard, err := StartGuard(dir, owner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := guard.Close(); err != nil {
			t.Errorf("close guard: %v", err)
		}
	})
	return guard
}

// family is a leader with two grandchildren: one ignores SIGTERM, the other has dropped its
// environment and its parent. Each appends its number to a file.
const family = `
(trap '' TERM HUP INT; sh -c 'echo $PPID >> "$DIR/pids"'; while :; do sleep 60; done) &
env -i DIR="$DIR" PATH="$PATH" sh -c '(trap "" TERM HUP; sh -c "echo \$PPID >> \"$DIR/pids\""; while :; do sleep 60; done) &'
echo $$ >> "$DIR/pids"
echo ready
wait`

// startRunner starts a runner of four families in a process group of its own
// and returns when all twelve of their processes are there.
func startRunner(t *testing.T, dir string) (*exec.Cmd, []int) {
	t.Helper()
	runner := exec.Command("/proc/self/exe")
	runner.Env = append(os.Environ(), actVariable+"=runner", "COMMAND_TEST_DIR="+dir, "COMMAND_TEST_SCRIPT="+family)
	runner.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := runner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			t.Log("runner: ", lines.Text())
		}
	}()
	var pids []int
	eventually(t, "twelve processes", func() bool { pids = readPids(t, dir); return len(pids) == 12 })
	return runner, pids
}

func readPids(t *testing.T, dir string) (pids []int) {
	data, err := os.ReadFile(filepath.Join(dir, "pids"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(string(data)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func living(pids []int) (left []int) {
	for _, pid := range pids {
		if alive(pid) {
			left = append(left, pid)
		}
	}
	return left
}

func TestGuardEndsAllWhenRunnerIsKilled(t *testing.T) {
	for name, target := range map[string]func(pid int) int{
		"the runner":                    func(pid int) int { return pid },
		"the whole group of the runner": func(pid int) int { return -pid },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			runner, pids := startRunner(t, dir)
			if err := syscall.Kill(target(runner.Process.Pid), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			_ = runner.Wait() // signal: killed
			// Here only the supervisor removes the file.
			eventually(t, "file of the guard is gone", func() bool {
				_, err := os.Stat(filepath.Join(dir, groupsFile("runner")))
				return errors.Is(err, os.ErrNotExist)
			})
			if err := EndAbandoned(dir, "runner", 0); err != nil {
				t.Error(err)
			}
			if left := living(pids); len(left) > 0 {
				t.Errorf("processes left: %v", left)
			}
		})
	}
}

// When runner and supervisor are dead, a restart ends the listed groups. The supervisor's death
// alone changes nothing.
func TestEndAbandonedWithoutSupervisor(t *testing.T) {
	dir := t.TempDir()
	runner, pids := startRunner(t, dir)
	supervisor := supervisorOf(t, runner.Process.Pid)
	if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "supervisor gone", func() bool { return !alive(supervisor) })
	if err := EndAbandoned(dir, "runner", 20*time.Millisecond); nixie.CodeOf(err) != nixie.CodeConflict {
		t.Errorf("live owner: %v", err)
	}
	if left := living(pids); len(left) != len(pids) {
		t.Errorf("only %v of %v live", left, pids)
	}
	if err := syscall.Kill(runner.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = runner.Wait() // signal: killed
	// A child that it had forked and that did not start its program yet holds the lock as well.
	if err := EndAbandoned(dir, "runner", time.Minute); err != nil {
		t.Fatal(err)
	}
	if left := living(pids); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
}

func supervisorOf(t *testing.T, runner int) (pid int) {
	t.Helper()
	children, err := os.ReadFile("/proc/" + strconv.Itoa(runner) + "/task/" + strconv.Itoa(runner) + "/children")
	if err != nil {
		children = nil // not in every kernel
	}
	all, err := listProcesses()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/cmdline")
		status, statusErr := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/status")
		if err == nil && statusErr == nil && strings.Contains(string(line), "\x00"+guardArgument+"\x00") &&
			strings.Contains(string(status), "\nPPid:\t"+strconv.Itoa(runner)+"\n") {
			return p.pid
		}
	}
	t.Fatalf("no supervisor of %d; children %s", runner, children)
	return 0
}

func TestGuardCloseEndsRuns(t *testing.T) {
	dir := t.TempDir()
	guard := startGuard(t, dir, "me")
	ready, done := make(chan struct{}, 8), make(chan Result)
	go func() {
		spec := self("stubborn")
		spec.Guard, spec.Stdout = guard, writerFunc(func() { ready <- struct{}{} })
		r, err := Run(context.Background(), spec)
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	<-ready
	if _, err := StartGuard(dir, "me"); nixie.CodeOf(err) != nixie.CodeConflict {
		t.Errorf("second guard of a live owner: %v", err)
	}
	if err := guard.Close(); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.Signal != syscall.SIGKILL {
		t.Errorf("got %+v", r)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
	spec := shell("exit 0")
	spec.Guard = guard
	if _, err := Run(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "guard is closed") {
		t.Errorf("run after close: %v", err)
	}
}

func TestGuardListsOnlyWhatRuns(t *testing.T) {
	dir := t.TempDir()
	guard := startGuard(t, dir, "me")
	spec := shell(`cat "$1"; echo $$; echo "$NIXIE_GUARD"`, filepath.Join(dir, groupsFile("me")))
	spec.Guard = guard
	var listed groupList
	var output string
	// A group may be listed a moment after its start.
	eventually(t, "command is listed", func() bool {
		output = string(mustRun(t, spec).Stdout.Data)
		listed = parseGroups([]byte(output[:headerSize+reservedSlots*slotSize]))
		return len(listed.slots) == 1
	})
	fields := strings.Fields(output[headerSize+reservedSlots*slotSize:])
	if strconv.Itoa(listed.slots[0].group) != fields[0] || listed.mark != fields[1] || listed.slots[0].start == 0 {
		t.Errorf("listed %+v, command says %v", listed, fields)
	}
	data, err := os.ReadFile(filepath.Join(dir, groupsFile("me")))
	if err != nil || len(parseGroups(data).slots) != 0 {
		t.Errorf("still listed: %+v, %v", parseGroups(data), err)
	}
}

// The guard never kills a group whose number now means another process.
func TestEndAbandonedSparesStrangers(t *testing.T) {
	stranger := exec.Command("sleep", "60")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := readProcess(stranger.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(g groupList) {
		data := g.header()
		for _, s := range g.slots {
			data = s.append(data)
		}
		if err := os.WriteFile(filepath.Join(dir, groupsFile("dead")), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mine := groupList{"mark", p.session, systemName(), []slot{{p.group, p.start}}}
	for name, change := range map[string]func(*groupList){
		"other start":   func(g *groupList) { g.slots[0].start-- },
		"no start":      func(g *groupList) { g.slots[0].start = 0 },
		"other boot":    func(g *groupList) { g.system = "else" },
		"other session": func(g *groupList) { g.session++ },
		"free":          func(g *groupList) { g.slots[0].group = 0 },
	} {
		g := mine
		g.slots = []slot{mine.slots[0]}
		change(&g)
		write(g)
		if err := EndAbandoned(dir, "dead", 0); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !alive(p.pid) {
			t.Fatalf("%s: the stranger is dead", name)
		}
	}
	write(mine)
	if err := EndAbandoned(dir, "dead", 0); err != nil {
		t.Error(err)
	}
	if alive(p.pid) {
		t.Error("a listed process is alive")
	}
	_ = stranger.Wait() // signal: killed
	if err := EndAbandoned(dir, "dead", 0); err != nil {
		t.Errorf("no file: %v", err)
	}
}

func TestGroupsFile(t *testing.T) {
	seen := map[string]string{}
	for _, owner := range []string{"", ".", "..", "a/b", "a%2fb", "A", "a", "../../etc/passwd", "nul\x00", "é", "a b", "-rf",
		strings.Repeat("x", 199), strings.Repeat("x", 200), strings.Repeat("x", 300), strings.Repeat("x", 301), strings.Repeat("/", 300)} {
		name := groupsFile(owner)
		if strings.ContainsAny(name, "/\x00") || len(name) > 255 || !strings.HasSuffix(name, ".groups") || strings.ToLower(name) != name {
			t.Errorf("%q: %q", owner, name)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%q and %q are both %q", owner, other, name)
		}
		seen[name] = owner
	}
}

func FuzzParseGroups(f *testing.F) {
	whole := slot{}.append(slot{123, 456}.append(groupList{mark: "m", session: 7, system: "s"}.header()))
	f.Add(whole)
	f.Add(whole[:headerSize+slotSize/2])
	f.Add([]byte(strings.Repeat("\x00", 4096)))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, s := range parseGroups(data).slots {
			if s.group <= 1 {
				t.Errorf("group %d would mean all processes", s.group)
			}
		}
	})
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("12 (a) b) (c) S 1 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1"))
	f.Add([]byte("12 (a"))
	f.Add([]byte(") ("))
	f.Fuzz(func(t *testing.T, line []byte) {
		p, err := parseStat(line)
		if err == nil && !strings.Contains(string(line), ")") {
			t.Errorf("%q is %+v", line, p)
		}
	})
}

// The listed start time is that of the system, also when a tick passed meanwhile.
func TestGuardListsTheStartTime(t *testing.T) {
	guard := startGuard(t, t.TempDir(), "me")
	for range 50 {
		began := ticks()
		sleeper := exec.Command("sleep", "60")
		if err := sleeper.Start(); err != nil {
			t.Fatal(err)
		}
		pid := sleeper.Process.Pid
		forget, err := guard.record(pid, began)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(guard.path)
		if err != nil {
			t.Fatal(err)
		}
		if listed := parseGroups(data).slots; len(listed) != 1 || listed[0] != (slot{pid, startTime(pid)}) {
			t.Fatalf("listed %+v, process %d began at %d", listed, pid, startTime(pid))
		}
		forget()
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait() // signal: killed
	}
}

// On systems without a process handle, a pipe ends with the process.
func TestExitPipe(t *testing.T) {
	sleeper := exec.Command("sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	exited, err := exitPipe(sleeper.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	s := &streams{in: noFile, out: outlet{fd: noFile}, err: outlet{fd: noFile}}
	if s.pump(exited, time.Now().Add(20*time.Millisecond)) {
		t.Error("the pipe of a live process ended")
	}
	_ = sleeper.Process.Kill()
	if !s.pump(exited, time.Now().Add(10*time.Second)) {
		t.Error("the pipe of a killed process has not ended")
	}
	closeFD(&exited)
	_ = sleeper.Wait() // signal: killed
}
