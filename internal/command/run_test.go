//go:build linux

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
)

func TestRunResult(t *testing.T) {
	for _, c := range []struct {
		name, script, stdin, stdout, stderr string
		exit                                int
		signal                              syscall.Signal
	}{
		{name: "success", script: "exit 0"},
		{name: "both outputs", script: "echo out; echo err >&2; exit 3", stdout: "out\n", stderr: "err\n", exit: 3},
		{name: "stdin arrives", script: "cat", stdin: "a\x00\xffb", stdout: "a\x00\xffb"},
		{name: "no stdin is an end", script: "cat"},
		{name: "stdin closed unread", script: "exec 0<&-; exit 7", stdin: strings.Repeat("x", 1<<20), exit: 7},
		{name: "ended by a signal", script: "kill -9 $$", exit: 137, signal: syscall.SIGKILL},
		{name: "invalid UTF-8 stays", script: `printf '\377\376'`, stdout: "\xff\xfe"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := shell(c.script)
			spec.Stdin = []byte(c.stdin)
			r := mustRun(t, spec)
			got := fmt.Sprintf("%q %q %d %d", r.Stdout.Data, r.Stderr.Data, r.ExitCode, r.Signal)
			if want := fmt.Sprintf("%q %q %d %d", c.stdout, c.stderr, c.exit, c.signal); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestRunLargeStdinComesBack(t *testing.T) {
	spec := shell("cat")
	spec.Stdin = bytes.Repeat([]byte("0123456789\n"), 300_000)
	var out bytes.Buffer
	spec.Stdout = &out
	r := mustRun(t, spec)
	if !bytes.Equal(out.Bytes(), spec.Stdin) {
		t.Errorf("%d bytes came back of %d", out.Len(), len(spec.Stdin))
	}
	if want := spec.Stdin[len(spec.Stdin)-DefaultTailLimit:]; !bytes.Equal(r.Stdout.Data, want) {
		t.Error("tail is not the end of the output")
	}
	if want := int64(len(spec.Stdin) - DefaultTailLimit); r.Stdout.Dropped != want {
		t.Errorf("dropped %d, want %d", r.Stdout.Dropped, want)
	}
}

func TestB113_RunFlood(t *testing.T) {
	size := int64(1 << 30)
	if testing.Short() {
		size = 10 << 20
	}
	spec := self("flood")
	spec.Env = append(spec.Env, fmt.Sprint("COMMAND_TEST_FLOOD=", size))
	r := mustRun(t, spec)
	if r.ExitCode != 0 {
		t.Fatalf("exit %d: %s", r.ExitCode, r.Stderr.Data)
	}
	for name, tail := range map[string]Tail{"stdout": r.Stdout, "stderr": r.Stderr} {
		if got := tail.Dropped + int64(len(tail.Data)); got != size || len(tail.Data) != DefaultTailLimit {
			t.Errorf("%s: %d bytes seen and %d kept of %d", name, got, len(tail.Data), size)
		}
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestRunPassFailure(t *testing.T) {
	spec := shell("echo a; echo b; exit 4")
	spec.Stdout = failingWriter{}
	r, err := Run(t.Context(), spec)
	if err == nil || !strings.Contains(err.Error(), "no room") || r.ExitCode != 4 {
		t.Errorf("got exit %d and error %v", r.ExitCode, err)
	}
}

func TestRunTimeout(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"leader ends at SIGTERM", `trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 60 & wait $!; done`, "bye"},
		{"leader ignores SIGTERM", `trap '' TERM; echo ready; while :; do sleep 60; done`, "ready"},
		{"member has the grace", `(trap 'sleep 0.1; echo tidy; exit' TERM; while :; do sleep 0.01; done) & sleep 60`, "tidy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spec := shell(c.script)
			spec.Timeout, spec.Grace = 300*time.Millisecond, time.Second
			r := mustRun(t, spec)
			if !r.TimedOut || r.Canceled || r.Detached || !strings.Contains(string(r.Stdout.Data), c.want) {
				t.Errorf("got %+v, stdout %q", r, r.Stdout.Data)
			}
		})
	}
}

func TestRunContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	marker := filepath.Join(t.TempDir(), "started")
	if _, err := Run(ctx, shell(`: > "$1"`, marker)); !errors.Is(err, context.Canceled) ||
		nixie.OutcomeOf(err).Reason != nixie.ReasonCanceled {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("it was started")
	}

	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	spec := self("stubborn")
	spec.Grace = -1
	spec.Stdout = writerFunc(func() { cancel() })
	r, err := Run(ctx, spec)
	if err != nil || !r.Canceled || r.Signal != syscall.SIGKILL {
		t.Errorf("got %+v, %v", r, err)
	}
}

type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) { f(); return len(p), nil }

func TestRunDeadlineOfContextIsTimeout(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r, err := Run(ctx, shell("sleep 60"))
	if err != nil || !r.TimedOut || r.Canceled {
		t.Errorf("got %+v, %v", r, err)
	}
}

// A grandchild that ignores SIGTERM, holds the pipes and outlives the leader
// within the group is killed, and does not hold up the result.
func TestB112_RunLeavesNoGrandchild(t *testing.T) {
	for _, c := range []struct {
		name, script string
		timeout      time.Duration
	}{
		{"leader ends by itself", `(trap '' TERM HUP; while :; do sleep 60; done) & echo $!`, 0},
		{"leader is killed", `(trap '' TERM HUP; while :; do sleep 60; done) & echo $!; kill -9 $$`, 0},
		{"all ignore SIGTERM", `trap '' TERM; (while :; do sleep 60; done) & echo $!; while :; do sleep 60; done`,
			100 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spec := shell(c.script)
			spec.Timeout, spec.Grace = c.timeout, 200*time.Millisecond
			began := time.Now()
			r := mustRun(t, spec)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %s", took)
			}
			var pid int
			if _, err := fmt.Sscan(string(r.Stdout.Data), &pid); err != nil {
				t.Fatal(err)
			}
			eventually(t, "grandchild gone", func() bool { return !alive(pid) })
		})
	}
}

// Two hundred processes that fork without end are gone when their command has to end.
func TestRunEndsWhatForksOn(t *testing.T) {
	spec := shell(`echo $$; for n in $(seq 200); do (trap '' TERM; while :; do :& done) & done; while :; do sleep 60; done`)
	spec.Timeout, spec.Grace = 500*time.Millisecond, 100*time.Millisecond
	r := mustRun(t, spec)
	var group int
	if _, err := fmt.Sscan(string(r.Stdout.Data), &group); err != nil || !r.TimedOut {
		t.Fatalf("%+v, %v", r, err)
	}
	eventually(t, "the end of the group", func() bool { return errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) })
}

func alive(pid int) bool {
	p, err := readProcess(pid)
	return err == nil && !p.zombie
}

// Run does not kill a daemon in a session of its own, and does not hang when the daemon holds the
// pipes.
func TestRunDetachedDaemon(t *testing.T) {
	r := mustRun(t, shell(`setsid sh -c 'echo $$; exec sleep 60' &
		while [ -e /proc/$! ] && [ "$(cut -d' ' -f6 /proc/$!/stat)" != $! ]; do :; done; sleep 0.2`))
	var pid int
	if _, err := fmt.Sscan(string(r.Stdout.Data), &pid); err != nil {
		t.Fatal(err)
	}
	if !r.Detached || !alive(pid) {
		t.Errorf("detached %v, alive %v", r.Detached, alive(pid))
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
}

func TestRunRefusals(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	noFormat := filepath.Join(dir, "no-format")
	if err := os.WriteFile(noFormat, []byte("no program\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	huge := strings.Repeat("x", 200<<10)
	for _, c := range []struct {
		name  string
		spec  Spec
		setup bool // the configuration is at fault, not the item
		want  string
	}{
		{"nothing", Spec{}, true, "command is empty"},
		{"not found", Spec{Args: []string{"no-such-program"}}, true, "program not found"},
		{"path not found", Spec{Args: []string{"/no/such/program"}}, true, "program not found"},
		{"not executable", Spec{Args: []string{plain}}, true, "permission denied"},
		{"no format", Spec{Args: []string{noFormat}}, true, "begin a script with #!"},
		{"no directory", Spec{Args: []string{"true"}, Dir: filepath.Join(dir, "none")}, true, "working directory"},
		{"file as directory", Spec{Args: []string{"true"}, Dir: plain}, true, "not a directory"},
		{"negative timeout", Spec{Args: []string{"true"}, Timeout: -1}, true, "timeout is"},
		{"NUL in argument", Spec{Args: []string{"true", "a\x00b"}}, false, "argument 1 holds a NUL byte"},
		{"NUL in environment", Spec{Args: []string{"true"}, Env: []string{"A=b\x00c"}}, false, `variable "A" holds a NUL byte`},
		{"argument too long", Spec{Args: []string{"true", huge}}, false, "standard input too"},
		{"variable too long", Spec{Args: []string{"true"}, Env: []string{"A=" + huge}}, false, "standard input too"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Run(t.Context(), c.spec)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			var start *StartError
			if errors.As(err, &start) != c.setup {
				t.Errorf("setup error: %v, want %v", !c.setup, c.setup)
			}
			outcome := nixie.OutcomeOf(err)
			if !c.setup && (outcome.Class != nixie.ClassPermanent || outcome.Reason != nixie.ReasonValidation) {
				t.Errorf("class %q, reason %q", outcome.Class, outcome.Reason)
			}
		})
	}
}

func TestRunManyAtOnceLeaksNothing(t *testing.T) {
	before := openFiles(t)
	done := make(chan error)
	for i := range 64 {
		go func() {
			spec := shell("cat; exit " + fmt.Sprint(i%5))
			spec.Stdin = []byte(fmt.Sprint(i))
			r, err := Run(context.Background(), spec)
			if err == nil && (r.ExitCode != i%5 || string(r.Stdout.Data) != fmt.Sprint(i)) {
				err = fmt.Errorf("run %d: %+v", i, r)
			}
			done <- err
		}()
	}
	for range 64 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d files open before, %d after", before, after)
	}
}

func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
