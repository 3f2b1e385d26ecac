//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/command"
	"github.com/nixie-go/nixie/internal/lines"
	"github.com/nixie-go/nixie/lease"
)

const (
	atOnce      = 4 << 10                // bytes that an empty pipe takes on every system
	readGrace   = 200 * time.Millisecond // for a process that has answered to read the rest of its message
	extendEvery = time.Second            // between two renewals that lines of progress ask for
)

// errNotTaken reports that a process did not begin with its message: another one gets it, and the
// attempt goes on.
var errNotTaken = errors.New("the process took no message")

// converse gives the message of an attempt to a process of the i-th step, and to another one as
// long as none has begun with it.
func (a *attempt) converse(ctx context.Context, i int) error {
	c := a.steps[i].crew
	var pass io.Writer
	if a.printed != nil {
		pass = &a.printed.Stderr
	}
	for {
		p, err := c.take(ctx, a.env)
		switch {
		case err != nil:
		case p.Begin(pass):
			t := talk{attempt: a, crew: c, first: i == 0, p: p, written: make(chan struct{})}
			err = t.run(ctx)
		default:
			err = c.stale(p)
		}
		if !errors.Is(err, errNotTaken) {
			return err
		}
	}
}

// talk is a message in the hands of a process.
type talk struct {
	*attempt
	crew     *crew
	first    bool // of the steps
	p        *command.Resident
	begun    bool          // the process has begun to answer
	extended time.Time     // when a line of progress extended the lease last
	written  chan struct{} // closed when the message is written, or cannot be
}

// run writes the message and listens until its answer or the end of the process.
func (t *talk) run(ctx context.Context) error {
	deadline, inTime := t.watch(ctx)
	defer inTime()
	folder := ""
	if t.workplace != nil {
		folder = t.workplace.Dir()
	}
	line, err := lines.Append(nil, t.d, folder, deadline)
	if err != nil {
		t.crew.rest(t.p)
		return nixie.Permanent(err)
	}
	if len(line) <= atOnce {
		t.write(line)
	} else {
		go t.write(line) // it ends with the process at the latest
	}
	for {
		said := <-t.p.Lines()
		if said.Err != nil {
			return t.gone(&said)
		}
		answer, err := lines.Parse(said.Text, t.c.Clock())
		switch {
		case err != nil:
			return t.refuse(err)
		case answer.ID != t.d.ID.String():
			return t.mistaken(said.Text)
		case answer.Progress:
			t.begun = true
			err = t.progress(ctx, answer.Verdict.Steps)
		case len(answer.Then) > 0 && t.workplace != nil:
			err = nixie.Errorf(nixie.CodeInvalid, "nixie map takes no field then: an item that was merged before a kill is not run again, "+
				"and what should follow it would be lost")
		case !inTime():
			return t.late()
		default:
			if err = t.steps(answer.Verdict.Steps); err == nil {
				return t.answered(&answer)
			}
		}
		if err != nil {
			return t.refuse(lines.Wrong(said.Text, err))
		}
	}
}

// watch ends the process at the deadline of the attempt and when ctx ends. The function that it
// returns stops that, and reports whether neither has come.
func (t *talk) watch(ctx context.Context) (deadline time.Time, inTime func() bool) {
	deadline, _ = ctx.Deadline()
	stop := context.AfterFunc(ctx, func() { t.p.End(errors.Is(context.Cause(ctx), context.DeadlineExceeded)) })
	limit := t.c.Timeout
	if limit == 0 {
		return deadline, stop
	}
	if at := t.c.Clock().Add(limit); deadline.IsZero() || at.Before(deadline) {
		deadline = at
	}
	timer := time.AfterFunc(limit, func() { t.p.End(true) })
	return deadline, func() bool {
		quiet := stop()
		return timer.Stop() && quiet
	}
}

// write writes the message. An error ends the process, and its end is judged.
func (t *talk) write(line []byte) {
	_ = t.p.Write(line)
	close(t.written)
}

// end waits for the end of a process that gets no more messages, and returns how it ended.
func (t *talk) end(kill bool) (result command.Result, worked bool, err error) {
	worked = t.crew.dismiss(t.p, kill)
	<-t.written
	result, err = t.p.Result(t.c.Timeout)
	return result, worked, err
}

// counts notes that the attempt was made.
func (t *talk) counts() {
	t.crew.works(t.p)
	if t.first {
		t.count.attempts.Add(1)
	}
}

// late returns the error of an attempt that was told to end before its answer came.
func (t *talk) late() error {
	result, _, err := t.end(false)
	t.counts()
	return errors.Join(err, result.Err(t.c.PermanentExit))
}

// gone judges the end of a process, or of its output, before an answer.
func (t *talk) gone(said *command.Line) error {
	if errors.Is(said.Err, command.ErrLineTooLong) {
		return t.refuse(lines.Wrong(said.Text, lineError(said.Err)))
	}
	result, worked, err := t.end(false)
	if err != nil {
		return err
	}
	told := result.TimedOut || result.Canceled
	if len(said.Text) == 0 && !t.begun && !told && t.p.Unread() {
		why := failureOf(t.p)
		if !worked { // else it may end between two messages as it likes
			why = fmt.Errorf("it read none: %w", endOf(t.p))
		}
		return t.crew.lost(worked, why)
	}
	t.counts()
	if err := result.Err(t.c.PermanentExit); err != nil {
		return err
	}
	why := errors.New("the worker ended with exit status 0 and did not answer")
	if len(said.Text) > 0 {
		why = lines.Wrong(said.Text, lineError(said.Err))
	}
	return result.Fail(why, nixie.ReasonCommandFailed)
}

// refuse kills a process that wrote a line that is none. The attempt has failed.
func (t *talk) refuse(why error) error {
	log := t.p.Log()
	result, _, err := t.end(true)
	t.counts()
	if err != nil || result.TimedOut || result.Canceled {
		return errors.Join(err, result.Err(t.c.PermanentExit))
	}
	result.Stderr, result.Stays = log, true // that it was killed is no fact about the message
	return result.Fail(why, nixie.ReasonValidation)
}

// mistaken kills a process that answered for another message. The attempt does not count, unless
// the process had begun to answer for this one. It may have changed the folder of this one, which
// then comes back for a clean one.
func (t *talk) mistaken(line []byte) error {
	why := lines.Wrong(line, fmt.Errorf("it names another message than %s, which the process has", t.d.ID))
	if t.begun {
		return t.refuse(why)
	}
	result, worked, err := t.end(true)
	if err != nil || result.TimedOut || result.Canceled {
		t.counts()
		return errors.Join(err, result.Err(t.c.PermanentExit))
	}
	if err = t.crew.lost(worked, why); t.workplace != nil && errors.Is(err, errNotTaken) {
		return nixie.Verdict(nixie.Release, why)
	}
	return err
}

// progress saves the steps of a line and extends the lease.
func (t *talk) progress(ctx context.Context, steps []string) error {
	before := len(t.d.Steps)
	if err := t.steps(steps); err != nil {
		return err
	}
	now := t.c.Clock()
	if len(t.d.Steps) == before && now.Sub(t.extended) < extendEvery {
		return nil
	}
	t.extended = now
	// The worker renews the lease as well, and notices when it is lost.
	_ = t.source.Extend(ctx, []*nixie.Delivery{lease.Renewal(t.d, slices.Clone(t.d.Steps))}, t.c.Lease)
	return nil
}

func (t *talk) steps(steps []string) error {
	for _, step := range steps {
		if err := t.d.Step(step, func() error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// answered gives the process back and makes the outcome of the attempt of the answer.
func (t *talk) answered(answer *lines.Answer) error {
	verdict := &answer.Verdict
	var result command.Result
	if verdict.Outcome != nixie.Complete {
		var err error
		if result, err = t.p.Result(t.c.Timeout); err != nil {
			return err
		}
	}
	t.counts()
	t.giveBack()
	if err := t.keep(answer); err != nil {
		return err
	}
	switch {
	case verdict.Outcome != nixie.Complete:
		return result.Judge(verdict, nil)
	case len(answer.Then) == 0:
		return nil
	}
	if err := t.d.Then(answer.Then...); err != nil {
		return nixie.WithReason(nixie.Permanent(fmt.Errorf("answer of the worker: %w", err)), nixie.ReasonValidation)
	}
	return nil
}

// keep puts the result where a command would have written it: into the file of a workplace, else to
// its standard output.
func (t *talk) keep(answer *lines.Answer) error {
	switch {
	case t.workplace == nil && t.printed != nil:
		_, _ = t.printed.Stdout.Write(answer.Text()) // it never fails
	case t.workplace != nil && answer.Result != nil:
		if err := os.WriteFile(t.workplace.ResultFile(), answer.Result, 0o600); err != nil {
			return nixie.WithReason(nixie.Transient(fmt.Errorf("file of the result: %w", err)), nixie.ReasonResource)
		}
	}
	return nil
}

// giveBack gives the process back, unless it has not read its message: the next one would follow
// the rest of it.
func (t *talk) giveBack() {
	patience := time.NewTimer(readGrace)
	defer patience.Stop()
	select {
	case <-t.written:
		t.crew.rest(t.p)
	case <-patience.C:
		t.crew.dismiss(t.p, true)
		<-t.written
	}
}
