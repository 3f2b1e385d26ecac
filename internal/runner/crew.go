//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/lines"
)

const (
	readyWithin = 30 * time.Second // from the start of a process to its first line
	mostUseless = 5                // processes in a row that took no message, until the work ends
	restGrace   = 5 * time.Second  // from the end of its input to SIGTERM
)

// crew keeps the processes that stay. Each has one message at a time. A process is started when a
// message needs one, so there are at most as many as messages that run at once.
type crew struct {
	r    *Runner
	spec command.Spec

	mu      sync.Mutex
	idle    []*command.Resident
	all     map[*command.Resident]bool // with true once it has worked on a message
	useless int                        // processes in a row that ended and never did
	haste   chan struct{}
	hasty   bool // haste is closed
}

// newCrew makes the crew of a step.
func (r *Runner) newCrew(s *step) (*crew, error) {
	args, err := s.Expand(nil)
	if err != nil {
		return nil, err
	}
	return &crew{r: r, all: map[*command.Resident]bool{}, haste: make(chan struct{}), spec: command.Spec{
		Args: args, Path: s.file, Grace: commandGrace, Guard: r.guard,
	}}, nil
}

// take returns a process that is ready for a message, or errNotTaken if one ended before that and
// the work should go on. All attempts of a run have the same environment.
func (c *crew) take(ctx context.Context, env command.Environment) (*command.Resident, error) {
	if p := c.pop(); p != nil {
		return p, nil
	}
	spec := c.spec
	spec.Env = env.For(command.ItemVariables{})
	return c.start(ctx, spec)
}

// pop returns the process that rested last, which is the one in the caches; nil if none rests.
func (c *crew) pop() *command.Resident {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := len(c.idle) - 1
	if last < 0 {
		return nil
	}
	p := c.idle[last]
	c.idle = c.idle[:last]
	return p
}

// start starts a process and waits until it is ready; see take.
func (c *crew) start(ctx context.Context, spec command.Spec) (*command.Resident, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if why := c.r.whyHalted(); why != nil {
		return nil, nixie.Verdict(nixie.Release, why)
	}
	p, err := command.StartResident(spec, lines.MaxAnswer)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.all[p] = false
	c.mu.Unlock()
	late := time.NewTimer(readyWithin)
	defer late.Stop()
	var why error
	select {
	case line := <-p.Lines():
		if line.Err == nil {
			why = lines.CheckReady(line.Text)
		}
		if line.Err == nil && why == nil {
			p.Rest()
			return p, nil
		}
		if why == nil && len(line.Text) > 0 {
			why = lines.Wrong(line.Text, lineError(line.Err))
		}
	case <-late.C:
		why = fmt.Errorf("it did not write %s within %s", lines.Ready, readyWithin)
	case <-ctx.Done():
		c.dismiss(p, true)
		return nil, ctx.Err()
	case <-c.r.noMore():
		c.dismiss(p, true)
		return nil, nixie.Verdict(nixie.Release, errors.New("the work ended before a process was ready"))
	}
	worked := c.dismiss(p, why != nil)
	if why == nil {
		why = fmt.Errorf("it ended before it wrote %s: %w", lines.Ready, endOf(p))
	}
	return nil, c.lost(worked, why)
}

// dismiss waits until a process is gone that gets no more messages, and reports whether it has
// worked on any. It kills one that does not keep to the protocol; others may end by themselves.
func (c *crew) dismiss(p *command.Resident, kill bool) (worked bool) {
	p.Ignore()
	if kill {
		p.Kill()
	} else {
		late := time.AfterFunc(commandGrace, p.Kill)
		defer late.Stop()
	}
	<-p.Gone()
	c.mu.Lock()
	defer c.mu.Unlock()
	worked = c.all[p]
	delete(c.all, p)
	return worked
}

// lost tells a person why a process is gone, if there is a reason. It returns errNotTaken, or the
// error of work whose processes never work on a message.
func (c *crew) lost(worked bool, why error) error {
	c.mu.Lock()
	if !worked {
		c.useless++
	}
	n := c.useless
	c.mu.Unlock()
	if !worked && n >= mostUseless {
		return &command.StartError{Program: c.spec.Args[0], Err: fmt.Errorf("%d processes in a row took no message; the last: %w", n, why)}
	}
	if why != nil {
		c.r.c.Warn("a worker process is gone, which costs no message: %v; another one starts", why)
	}
	return errNotTaken
}

// stale dismisses a process that ended, or wrote a line, while it had no message.
func (c *crew) stale(p *command.Resident) error {
	line, strayed := p.Stray()
	worked := c.dismiss(p, false)
	why := failureOf(p)
	switch {
	case strayed:
		why = lines.Wrong(line, errors.New("it came while the process had no message"))
	case !worked:
		why = endOf(p)
	}
	return c.lost(worked, why)
}

// works notes that a process works on a message.
func (c *crew) works(p *command.Resident) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.useless = 0
	if _, known := c.all[p]; known {
		c.all[p] = true
	}
}

// rest gives a process back that has answered.
func (c *crew) rest(p *command.Resident) {
	p.Rest()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = append(c.idle, p)
}

// hasten ends the wait of close.
func (c *crew) hasten() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hasty {
		c.hasty = true
		close(c.haste)
	}
}

// close ends all processes, after their messages: with the end of their input, then SIGTERM, then
// SIGKILL.
func (c *crew) close() {
	c.mu.Lock()
	var left []*command.Resident
	for p := range c.all {
		left = append(left, p)
	}
	c.mu.Unlock()
	for _, p := range left {
		p.CloseInput()
	}
	patience := time.NewTimer(restGrace)
	defer patience.Stop()
	for _, p := range left {
		select {
		case <-p.Gone():
			continue
		case <-patience.C:
			c.hasten()
		case <-c.haste:
		}
		for _, p := range left {
			p.End(false)
		}
		<-p.Gone()
	}
}

// endOf tells how a process ended that is gone.
func endOf(p *command.Resident) error {
	if err := failureOf(p); err != nil {
		return err
	}
	return errors.New("it ended with exit status 0")
}

// failureOf returns nil for a process that ended with 0.
func failureOf(p *command.Resident) error {
	result, err := p.Result(0)
	if err != nil {
		return err
	}
	return result.Err(nil)
}

// lineError says what is wrong with a line that is not whole.
func lineError(err error) error {
	switch {
	case errors.Is(err, command.ErrLineTooLong):
		return nixie.Errorf(nixie.CodeLimit, "it has more than %d bytes, the limit: keep what is large elsewhere, and answer where",
			lines.MaxAnswer)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the output ended before the end of the line")
	}
	return errors.New("the output ended")
}
