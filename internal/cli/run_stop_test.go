//go:build linux

package cli_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// running starts nixie run and waits until its commands have written n lines to
// the ledger.
func (d *workspace) running(n int, args ...string) *exec.Cmd {
	d.t.Helper()
	cmd := d.command("nixie", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	for name, to := range map[string]*io.Writer{"out": &cmd.Stdout, "err": &cmd.Stderr} {
		file, err := os.Create(d.path(name))
		if err != nil {
			d.t.Fatal(err)
		}
		d.t.Cleanup(func() { _ = file.Close() })
		*to = file
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	if !within(10*time.Second, func() bool { return strings.Count(d.read("ledger"), "\n") >= n }) {
		d.t.Fatalf("commands do not start\n%s%s", d.read("out"), d.read("err"))
	}
	return cmd
}

// heard lets the programs that a test starts hear a hangup, also if who started the tests does not
// hear one, as nohup: a program inherits what is ignored, and not what is handled.
func heard(t *testing.T, s os.Signal) {
	t.Helper()
	c := make(chan os.Signal, 1)
	signal.Notify(c, s)
	t.Cleanup(func() { signal.Stop(c) })
}

func (d *workspace) signal(cmd *exec.Cmd, s os.Signal) {
	d.t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
}

func ended(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	var exited *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exited) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// The first interrupt lets the commands finish that run; nothing else starts. The end of
// a terminal is one.
func TestRunFirstInterrupt(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) { firstInterrupt(t, sig) })
	}
}

func firstInterrupt(t *testing.T, sig os.Signal) {
	heard(t, syscall.SIGHUP)
	d := newWorkspace(t)
	d.write("items.txt", "a\nb\nc\nd\ne\nf\n")
	cmd := d.running(2, "run", "items.txt", "-p", "2", "--job", "j", "-o", "json", "--", "sh", "-c",
		`echo "$1" >> ledger; until [ -e go ]; do sleep 0.01; done; echo "$1" >> finished`, "sh", "{line}")
	d.signal(cmd, sig)
	if !within(5*time.Second, func() bool { return strings.Contains(d.read("err"), "may finish") }) {
		t.Fatal("the interrupt is not noticed")
	}
	d.write("go", "")
	if code := ended(t, cmd); code != 130 {
		t.Fatalf("exit %d\n%s%s", code, d.read("out"), d.read("err"))
	}
	s := d.summary(done{out: d.read("out")})
	if s.Succeeded != 2 || s.Unfinished != 4 || s.Attempts != 2 || len(d.ledger("finished")) != 2 {
		t.Errorf("summary %+v, finished %q", s, d.read("finished"))
	}
	within := " within 25s"
	if sig == os.Interrupt {
		within = "" // a person can interrupt again
	}
	if !strings.Contains(d.read("err"), "nixie: commands that run may finish"+within+"; interrupt again to end them now") {
		t.Errorf("stderr %q", d.read("err"))
	}
	d.noProcess()
	d.verify()
	if s := d.run(0, "items.txt", "--job", "j", "--", "true"); s.Succeeded != 6 || s.Attempts != 4 {
		t.Errorf("the next run: %+v", s)
	}
}

// SIGQUIT is for who wants to see where the program hangs: it says so and is gone, as after
// a crash. Commands do not outlive it, and it costs no attempt.
func TestRunQuit(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.write("items.txt", "a\nb\nc\n")
	cmd := d.running(2, "run", "items.txt", "-p", "2", "--job", "j", "--max-attempts", "1", "--", "sh", "-c",
		`echo "$1" >> ledger; sleep 1000`, "sh", "{line}")
	d.signal(cmd, syscall.SIGQUIT)
	if code := ended(t, cmd); code != 2 || !strings.Contains(d.read("err"), "SIGQUIT") || !strings.Contains(d.read("err"), "goroutine ") {
		t.Fatalf("exit %d\n%s", code, d.read("err"))
	}
	d.noProcess()
	if s := d.run(0, "items.txt", "--job", "j", "--max-attempts", "1", "--", "sh", "-c", `[ "$NIXIE_ATTEMPT" = 1 ]`); s.Succeeded != 3 {
		t.Errorf("the next run: %+v", s)
	}
	d.verify()
}

// The second interrupt ends them, also those that ignore SIGTERM and have left
// grandchildren. Their items are released: the attempt does not count.
func TestRunSecondInterrupt(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.write("items.txt", "a\nb\nc\n")
	cmd := d.running(2, "run", "items.txt", "-p", "2", "--job", "j", "-o", "json", "--", "sh", "-c",
		`trap '' TERM; (trap '' TERM; sleep 1000) & echo "$1" >> ledger; sleep 1000 & wait; sleep 1000`, "sh", "{line}")
	d.signal(cmd, syscall.SIGTERM)
	if !within(5*time.Second, func() bool { return strings.Contains(d.read("err"), "may finish") }) {
		t.Fatal("the first signal is not noticed")
	}
	d.signal(cmd, os.Interrupt)
	if code := ended(t, cmd); code != 130 {
		t.Fatalf("exit %d\n%s%s", code, d.read("out"), d.read("err"))
	}
	if s := d.summary(done{out: d.read("out")}); s.Unfinished != 3 || s.Dead != 0 {
		t.Errorf("summary %+v", s)
	}
	d.noProcess()
	d.verify()
	d.run(0, "items.txt", "--job", "j", "--max-attempts", "1", "--", "sh", "-c", `[ "$NIXIE_ATTEMPT" = 1 ]`)
}

// After the grace commands end, also those that ignore SIGTERM, and their items go back at no cost.
// Without a grace that is at once.
func TestRunGrace(t *testing.T) {
	t.Parallel()
	for _, grace := range []string{"0", "300ms"} {
		d := newWorkspace(t)
		d.write("items.txt", "a\nb\n")
		cmd := d.running(2, "run", "items.txt", "-p", "2", "--job", "j", "--grace", grace, "-o", "json", "--", "sh", "-c",
			`trap 'echo told >> told' TERM; echo "$1" >> ledger; until [ -e go ]; do sleep 0.05; done`, "sh", "{line}")
		d.signal(cmd, syscall.SIGTERM)
		if code := ended(t, cmd); code != 130 {
			t.Fatalf("exit %d\n%s%s", code, d.read("out"), d.read("err"))
		}
		if s := d.summary(done{out: d.read("out")}); s.Unfinished != 2 || s.Dead != 0 || len(d.ledger("told")) != 2 {
			t.Errorf("summary %+v, %q", s, d.read("told"))
		}
		d.noProcess()
		d.verify()
		d.write("go", "")
		if s := d.run(0, "items.txt", "--job", "j", "--max-attempts", "1", "--max-deliveries", "1", "--", "sh", "-c",
			`[ "$NIXIE_ATTEMPT" = 1 ]`); s.Succeeded != 2 {
			t.Errorf("the next run: %+v", s)
		}
	}
}

// An interrupt ends the waiting for a list that does not come.
func TestRunInterruptedList(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	if err := syscall.Mkfifo(d.path("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	fifo, err := os.OpenFile(d.path("fifo"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer fifo.Close() //nolint:errcheck // nothing is written to it any more
	for _, list := range []string{"-", "fifo"} {
		if _, err := fifo.WriteString("begun\n"); err != nil {
			t.Fatal(err)
		}
		cmd := d.command("nixie", "run", list, "--job", "j", "--", "true")
		var errs bytes.Buffer
		cmd.Stdin, cmd.Stderr = fifo, &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if !within(5*time.Second, func() bool { return unread(t, fifo) == 0 }) {
			t.Fatalf("%s is not read: %s", list, &errs)
		}
		d.signal(cmd, os.Interrupt)
		if code := ended(t, cmd); code != 130 || !strings.Contains(errs.String(), "nothing was enqueued") {
			t.Errorf("%s: exit %d: %s", list, code, &errs)
		}
	}
	if _, err := os.Stat(d.path("nixie.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a store was made: %v", err)
	}
}

// unread counts the bytes in a pipe.
func unread(t *testing.T, pipe *os.File) int {
	t.Helper()
	n, err := unix.IoctlGetInt(int(pipe.Fd()), unix.TIOCINQ)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Progress is lines off a terminal and a bar on one, and the bar is gone at the
// end.
func TestRunProgressBar(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("script is not installed: there is no terminal to look at")
	}
	d := newWorkspace(t)
	d.write("items.txt", strings.Repeat("x\n", 40))
	cmd := d.command("script", "-qec", "nixie run items.txt -p 2 --job j -- sleep 0.02", "/dev/null")
	cmd.Env = append(d.env, "TERM=xterm", "COLUMNS=80")
	r := d.finish(cmd)
	if r.code != 0 || !regexp.MustCompile(`\(\d+/40, \d+ it/(s|min|hr)\)`).MatchString(r.out) {
		t.Fatalf("exit %d, no bar in %q", r.code, r.out)
	}
	if strings.Contains(r.out, "\x1b[3") {
		t.Errorf("colours in spite of NO_COLOR: %q", r.out)
	}
	end := r.out[strings.LastIndex(r.out, "%"):]
	if !strings.Contains(end, "40 items: 40 succeeded") || !strings.Contains(end, "\x1b[2K\r") && !strings.Contains(end, "\r    ") {
		t.Errorf("the bar is not taken away before the summary: %q", end)
	}
	// What commands print has lines of its own, which neither the bar nor the command
	// can touch again.
	d.write("print", "#!/bin/sh\nsleep 0.02\nprintf 'said\\033[2J and no end'\n")
	cmd = d.command("script", "-qec", "nixie run items.txt -p 2 --job said -- ./print", "/dev/null")
	cmd.Env = append(d.env, "TERM=xterm", "COLUMNS=80")
	r = d.finish(cmd)
	if n := len(regexp.MustCompile(`(?m)(^|\r|\x1b\[2K)said\\x1b\[2J and no end\r\n`).FindAllString(r.out, -1)); n != 40 ||
		strings.Contains(r.out, "\x1b[2J") {
		t.Errorf("%d of 40 outputs are whole in %q", n, r.out)
	}
	cmd = d.command("script", "-qec", "nixie run items.txt -p 2 --job k -- true", "/dev/null")
	cmd.Env = append(d.env, "TERM=dumb")
	if r := d.finish(cmd); strings.Contains(r.out, "\x1b") {
		t.Errorf("a dumb terminal got %q", r.out)
	}
}

// A run that is frozen for longer than its lease loses its item to another one,
// whose outcome counts: the late one changes nothing. The other run cannot end a
// command whose owner is alive, and says so.
func TestRunFrozenPastItsLease(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	d.write("items.txt", "a\n")
	d.write("work", "#!/bin/sh\necho $NIXIE_LEASE >> ledger\nuntil [ -e go ]; do sleep 0.02; done\necho done >&2\n")
	line := []string{"run", "items.txt", "--job", "j", "--lease", "500ms", "--backoff", "0", "-o", "json", "--", "./work"}
	frozen := d.running(1, line...)
	d.signal(frozen, syscall.SIGSTOP)
	other := d.command("nixie", line...)
	var out, errs bytes.Buffer
	other.Stdout, other.Stderr = &out, &errs
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if !within(25*time.Second, func() bool { return len(d.ledger("ledger")) == 2 }) {
		t.Fatalf("the other run does not take over: %s", &errs)
	}
	d.write("go", "")
	if code := ended(t, other); code != 0 || !strings.Contains(errs.String(),
		"could not be ended, so an item may run twice at once; they see a lower NIXIE_LEASE") {
		t.Errorf("exit %d: %s", code, &errs)
	}
	if s := d.summary(done{out: out.String()}); s.Succeeded != 1 || s.Attempts != 1 {
		t.Errorf("summary %+v", s)
	}
	d.signal(frozen, syscall.SIGCONT)
	if code := ended(t, frozen); code != 0 {
		t.Errorf("the frozen run: exit %d\n%s", code, d.read("err"))
	}
	leases := d.ledger("ledger")
	if first, err := strconv.Atoi(leases[0]); err != nil || leases[1] <= strconv.Itoa(first) {
		t.Errorf("leases %v, %v", leases, err)
	}
	d.noProcess()
	d.verify()
}

// A process without work stops soon after SIGTERM: the best of some stops tells, on a machine that
// has other work.
func TestIdleStopsSoon(t *testing.T) {
	const limit = 200 * time.Millisecond
	d, best := newWorkspace(t), time.Hour
	for range 5 {
		cmd := d.running(0, "work", "q", "--", "true")
		if !within(10*time.Second, func() bool { return strings.Contains(d.read("err"), "does not exist yet") }) {
			t.Fatalf("it does not begin: %s", d.read("err"))
		}
		told := time.Now()
		d.signal(cmd, syscall.SIGTERM)
		if code := ended(t, cmd); code != 0 {
			t.Fatalf("exit %d: %s", code, d.read("err"))
		}
		best = min(best, time.Since(told))
	}
	t.Logf("an idle process stops in %s", best.Round(time.Millisecond))
	if best > limit {
		t.Errorf("an idle process stops in %s at best, want %s", best, limit)
	}
}
