//go:build unix

package postgres_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/postgres"
)

// childArg as the first argument makes the test binary one of the processes that
// tests kill and stop: child <role> <url> <schema>.
const childArg = "child"

// childMain plays a role until the process is killed or the role is over.
func childMain(role, url, schema string) int {
	s, err := postgres.Open(context.Background(), url, postgres.Options{Schema: schema})
	if err != nil {
		return fail(err)
	}
	c := &childProcess{s: s, url: url, schema: schema, in: bufio.NewScanner(os.Stdin)}
	switch role {
	case "hold":
		err = c.hold()
	case "streams":
		err = c.streams()
	default:
		err = fmt.Errorf("no role %q", role)
	}
	if err != nil {
		return fail(err)
	}
	if err := s.Close(); err != nil {
		return fail(err)
	}
	return 0
}

func fail(err error) int {
	fmt.Fprintln(os.Stderr, "child:", err)
	return 1
}

// childProcess is the inside of a process that tests start.
type childProcess struct {
	s           *postgres.Store
	url, schema string
	in          *bufio.Scanner
	mu          sync.Mutex
}

// say prints one line of words, at once and whole.
func (c *childProcess) say(words ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := os.Stdout.WriteString(strings.ReplaceAll(fmt.Sprintln(words...), " ", "\t")); err != nil {
		os.Exit(fail(err)) // nobody listens any more
	}
}

// holdLease is for how long the role hold has its messages.
const holdLease = 400 * time.Millisecond

// hold claims what there is, waits until it is told to go on, and settles
// everything in every way.
func (c *childProcess) hold() error {
	ctx := context.Background()
	ds, err := c.s.Claim(ctx, "q", nixie.Want{Max: 100, Lease: holdLease})
	if err != nil {
		return err
	}
	c.say("held", len(ds))
	if !c.in.Scan() {
		return c.in.Err()
	}
	verbs := []nixie.Verb{nixie.Complete, nixie.Retry, nixie.Release, nixie.Discard, nixie.Bury, nixie.Hold}
	extended := c.s.Extend(ctx, ds, time.Minute)
	for i, d := range ds {
		st := nixie.Settlement{Delivery: d, Verb: verbs[i%len(verbs)], Failure: &nixie.Failure{Text: "late"}}
		if st.Verb == nixie.Complete || st.Verb == nixie.Release {
			st.Failure = nil
		}
		if st.Verb == nixie.Bury || st.Verb == nixie.Hold {
			st.Burial = &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen, Redrivable: true}
		}
		err := c.s.Settle(ctx, []nixie.Settlement{st})[0]
		c.say("settled", nixie.CodeOf(extended[i]), nixie.CodeOf(err))
	}
	return nil
}

// process is a running child as the test sees it.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan []string // closed when the child has ended
	ended bool
}

func startChild(t *testing.T, role, schema string) *process {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), exe, childArg, role, server.URL, schema), lines: make(chan []string, 1<<16)}
	p.cmd.Stderr = os.Stderr
	p.in, err = p.cmd.StdinPipe()
	must(t, err)
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	go func() {
		defer close(p.lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return // a cut line was never said
			}
			p.lines <- strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		}
	}()
	t.Cleanup(func() {
		if !p.ended {
			p.kill()
		}
	})
	return p
}

// line waits for the child's next line.
func (p *process) line() []string {
	p.t.Helper()
	words, open := <-p.lines
	if !open {
		p.t.Fatal("child ended early")
	}
	return words
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	must(p.t, p.cmd.Process.Signal(sig))
}

// kill ends the child as nothing else would and returns what it still said.
func (p *process) kill() [][]string {
	p.ended = true
	_ = p.cmd.Process.Kill() // it may have ended by itself
	var rest [][]string
	for words := range p.lines {
		rest = append(rest, words)
	}
	_ = p.cmd.Wait() // killed is what it should be
	return rest
}

// wait lets the child end by itself.
func (p *process) wait() {
	p.t.Helper()
	p.ended = true
	for range p.lines { //nolint:revive // until it is closed
	}
	must(p.t, p.cmd.Wait())
}
