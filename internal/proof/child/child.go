// Package child starts processes of a test's own binary, for tests that kill and
// stop them, and is the voice of such a process inside. The two speak lines of
// words: what a process has said it has said whole, whenever it dies.
package child

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// argument as the first one makes a test binary a child.
const argument = "child"

// Main returns what a child was started with, and reports whether this process is
// one. TestMain asks it before all else.
func Main() (args []string, is bool) {
	if len(os.Args) < 2 || os.Args[1] != argument {
		return nil, false
	}
	return os.Args[2:], true
}

// Code is the exit code of a child that ended with err, which it prints.
func Code(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "child:", err)
	return 1
}

// Process is a running child as its test sees it.
type Process struct {
	Lines <-chan []string // what it says, word by word; closed when it has ended

	t     testing.TB
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended bool
}

// Start starts a child, which is killed at the end of the test unless it has ended.
func Start(t testing.TB, args ...string) *Process {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	lines := make(chan []string, 1<<16)
	p := &Process{Lines: lines, t: t, cmd: exec.CommandContext(t.Context(), exe, append([]string{argument}, args...)...)}
	p.cmd.Stderr = os.Stderr
	p.in, err = p.cmd.StdinPipe()
	must(t, err)
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	go func() {
		defer close(lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return // a cut line was never said
			}
			lines <- strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		}
	}()
	t.Cleanup(func() {
		if !p.ended {
			p.Kill()
		}
	})
	return p
}

// Line waits for the next line.
func (p *Process) Line() []string {
	p.t.Helper()
	words, open := <-p.Lines
	if !open {
		p.t.Fatal("child ended early")
	}
	return words
}

// GoOn lets a child go on that waits in [Voice.Wait].
func (p *Process) GoOn() {
	p.t.Helper()
	_, err := fmt.Fprintln(p.in, "go on")
	must(p.t, err)
}

// Signal sends a signal to the child.
func (p *Process) Signal(sig os.Signal) {
	p.t.Helper()
	must(p.t, p.cmd.Process.Signal(sig))
}

// Kill ends the child as nothing else would and returns what it still said.
func (p *Process) Kill() (rest [][]string) {
	p.ended = true
	_ = p.cmd.Process.Kill() // it may have ended by itself
	for words := range p.Lines {
		rest = append(rest, words)
	}
	_ = p.cmd.Wait() // it was killed, which is no success
	return rest
}

// Wait lets the child end by itself.
func (p *Process) Wait() {
	p.t.Helper()
	p.ended = true
	for range p.Lines { //nolint:revive // until it is closed
	}
	must(p.t, p.cmd.Wait())
}

// Died waits until the child has ended by itself, however it did, and returns how.
func (p *Process) Died() string {
	p.ended = true
	for range p.Lines { //nolint:revive // until it is closed
	}
	_ = p.cmd.Wait() // its state tells the same
	return p.cmd.ProcessState.String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Voice is a child's own end. It may be used by several goroutines, but for Wait.
// The zero value is ready.
type Voice struct {
	mu sync.Mutex
	in *bufio.Scanner
}

// Say prints one line of words, at once and whole. A child dies of it when its
// parent does not listen any more.
func (v *Voice) Say(words ...any) {
	line := make([]string, len(words))
	for i, w := range words {
		line[i] = fmt.Sprint(w)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	_, _ = os.Stdout.WriteString(strings.Join(line, "\t") + "\n") // a pipe without a reader ends the process
}

// Wait waits for [Process.GoOn].
func (v *Voice) Wait() error {
	if v.in == nil {
		v.in = bufio.NewScanner(os.Stdin)
	}
	if !v.in.Scan() {
		return cmp.Or(v.in.Err(), io.ErrUnexpectedEOF)
	}
	return nil
}

// Hold claims what the queue q has and says how much, waits, and then extends the
// leases and settles everything, in every way, and says of each how it was answered.
func (v *Voice) Hold(s store.Store, lease time.Duration) error {
	ctx := context.Background()
	ds, err := s.Claim(ctx, "q", nixie.Want{Max: 100, Lease: lease})
	if err != nil {
		return err
	}
	v.Say("held", len(ds))
	if err := v.Wait(); err != nil {
		return err
	}
	verbs := Verbs()
	extended := s.Extend(ctx, ds, time.Minute)
	for i, d := range ds {
		st := nixie.Settlement{Delivery: d, Verb: verbs[i%len(verbs)]}
		if st.Verb != nixie.Complete && st.Verb != nixie.Release {
			st.Failure = &nixie.Failure{Text: "late"}
		}
		if st.Verb == nixie.Bury || st.Verb == nixie.Hold {
			st.Burial = &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen, Fingerprint: "f", Redrivable: true}
		}
		err := s.Settle(ctx, []nixie.Settlement{st})[0]
		v.Say("settled", answer(extended[i]), answer(err))
	}
	return nil
}

// Verbs are all ways to settle.
func Verbs() []nixie.Verb {
	return []nixie.Verb{nixie.Complete, nixie.Retry, nixie.Release, nixie.Discard, nixie.Bury, nixie.Hold}
}

// answer is the code of an error, or ok.
func answer(err error) string { return cmp.Or(string(nixie.CodeOf(err)), "ok") }
