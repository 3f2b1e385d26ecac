//go:build unix

package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/sqlite"
)

// childArg as the first argument makes the test binary one of the processes
// that tests kill and stop: child <role> <store> <seed>.
const childArg = "child"

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == childArg {
		os.Exit(childMain(os.Args[2], os.Args[3], os.Args[4]))
	}
	os.Exit(m.Run())
}

// childMain plays a role until the process is killed or the role is over.
func childMain(role, path, seed string) int {
	n, err := strconv.ParseInt(seed, 10, 64)
	if err != nil {
		return fail(err)
	}
	c := &childProcess{in: bufio.NewScanner(os.Stdin)}
	opts := sqlite.Options{Reserve: -1}
	if role == "prune" {
		if opts.Clock, err = fastClock(path); err != nil {
			return fail(err)
		}
	}
	if role == "reopen" {
		c.say("opening")
	}
	s, err := sqlite.Open(path, opts)
	if err != nil {
		return fail(err)
	}
	c.s = s
	switch role {
	case "life", "reopen":
		err = c.life(n, 0, nil)
	case "redrive":
		err = c.life(n, 3, (*liver).redriveTheDead)
	case "prune":
		err = c.life(n, 3, (*liver).prune)
	case "checkpoint":
		err = c.life(n, 4, (*liver).checkpoint)
	case "hold":
		err = c.hold(time.Duration(n) * time.Millisecond)
	case "outbox":
		err = c.outbox()
	case "effects":
		err = c.effects()
	case "drain":
		err = c.drain(int(n))
	default:
		err = fmt.Errorf("no role %q", role)
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
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
	s  *sqlite.Store
	in *bufio.Scanner
	mu sync.Mutex
}

// say prints one line of words, at once and whole.
func (c *childProcess) say(words ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := make([]string, len(words))
	for i, w := range words {
		line[i] = fmt.Sprint(w)
	}
	if _, err := os.Stdout.WriteString(strings.Join(line, "\t") + "\n"); err != nil {
		os.Exit(fail(err)) // nobody listens any more
	}
}

// hold claims what there is for the given time, waits until it is told to go
// on, and settles everything in every way.
func (c *childProcess) hold(lease time.Duration) error {
	ctx := context.Background()
	ds, err := c.s.Claim(ctx, "q", nixie.Want{Max: 100, Lease: lease})
	if err != nil {
		return err
	}
	c.say("held", len(ds))
	if !c.in.Scan() {
		return c.in.Err()
	}
	extended := c.s.Extend(ctx, ds, time.Minute)
	for i, d := range ds {
		st := nixie.Settlement{Delivery: d, Verb: everyVerb()[i%len(everyVerb())], Failure: &nixie.Failure{Text: "late"}}
		if st.Verb == nixie.Complete || st.Verb == nixie.Release {
			st.Failure = nil
		}
		if st.Verb == nixie.Bury || st.Verb == nixie.Hold {
			st.Burial = &nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusOpen, Fingerprint: "f", Redrivable: true}
		}
		err := c.s.Settle(ctx, []nixie.Settlement{st})[0]
		c.say("settled", d.Key, st.Verb, orOK(nixie.CodeOf(extended[i])), orOK(nixie.CodeOf(err)))
	}
	return nil
}

func everyVerb() []nixie.Verb {
	return []nixie.Verb{nixie.Complete, nixie.Retry, nixie.Release, nixie.Discard, nixie.Bury, nixie.Hold}
}

func orOK(c nixie.Code) nixie.Code {
	if c == "" {
		return "ok"
	}
	return c
}

// process is a running child as the test sees it.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan []string // closed when the child has ended
	ended bool
}

func startChild(t *testing.T, role, path string, seed int64) *process {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), exe, childArg, role, path, fmt.Sprint(seed)), lines: make(chan []string, 1<<16)}
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
