package worker

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/policy"
)

// judge settles what must not be run.
func (c *Config) judge(d *nixie.Delivery, now time.Time) (nixie.Settlement, bool) {
	var f *nixie.Failure
	if d.Abandoned {
		f = c.rules.of(d.Queue).Abandoned(d, now)
	} else {
		f = c.rules.of(d.Queue).Admit(d, now)
	}
	if f == nil {
		return nixie.Settlement{}, false
	}
	f.Node = c.Node
	if c.Mask != nil {
		c.Mask(f)
	}
	return c.ask(d, f, now), true
}

// decide turns the outcome of a handler into a settlement. That of one that was
// interrupted by us does not count, unless it says explicitly what it is.
func (c *Config) decide(d *nixie.Delivery, err error, interrupted bool, started, ended time.Time) nixie.Settlement {
	if err == nil {
		return c.succeeded(d, ended)
	}
	f := c.rules.of(d.Queue).Diagnose(d, err, policy.Attempt{StartedAt: started, FailedAt: ended, Worker: c.Name, Node: c.Node, Mask: c.Mask})
	if interrupted && !explicit(f) {
		return nixie.Settlement{Delivery: d, Verb: nixie.Release}
	}
	return c.ask(d, f, ended)
}

// succeeded asks about a success. What a handler has done well is not undone by
// a decider that fails.
func (c *Config) succeeded(d *nixie.Delivery, now time.Time) nixie.Settlement {
	st, err := c.question(d, nil, now)
	if err != nil {
		masked := c.rules.of(d.Queue).Diagnose(d, err, policy.Attempt{StartedAt: now, FailedAt: now, Mask: c.Mask})
		c.trouble(failing, nixie.Errorf(nixie.CodeInternal, "message %s succeeded and is completed, although %s", d.ID, masked.Text))
		st = nixie.Settlement{Verb: nixie.Complete}
	}
	st.Delivery = d
	return st
}

func (c *Config) ask(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
	st, err := c.question(d, f, now)
	if err != nil {
		st = c.undecided(d, f, err, now)
	}
	st.Delivery = d
	if c.Mask != nil && st.Failure != nil && st.Failure.Err != nil {
		st.Failure.Err = &maskedError{st.Failure.Text, st.Failure.Err}
	}
	return st
}

// question asks the decider, which may be foreign code.
func (c *Config) question(d *nixie.Delivery, f *nixie.Failure, now time.Time) (st nixie.Settlement, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the decider panicked: %v", v)
		}
	}()
	st = c.Decider.Decide(d, f, now)
	switch st.Verb {
	case nixie.Retry, nixie.Release, nixie.Discard, nixie.Complete:
		return st, nil
	case nixie.Bury, nixie.Hold, nixie.Halt:
		if st.Burial != nil {
			return st, nil
		}
		return st, fmt.Errorf("the decider said %s without a burial", st.Verb)
	}
	return st, fmt.Errorf("the decider said %q, which is no verb", st.Verb)
}

// ruleUndecided is the rule of a letter whose decider failed.
const ruleUndecided = "decider:failed"

// undecided holds a message whose decider failed, for a person to see: the next
// one would most likely fail as well. It may be redriven once that is mended.
func (c *Config) undecided(d *nixie.Delivery, f *nixie.Failure, err error, now time.Time) nixie.Settlement {
	failure := *f
	failure.Decision = nixie.Hold
	second := c.rules.of(d.Queue).Diagnose(d, nixie.WithReason(nixie.Permanent(err), nixie.ReasonPolicy), policy.Attempt{StartedAt: now, FailedAt: now, Worker: c.Name, Node: c.Node, Mask: c.Mask})
	second.Decision = nixie.Hold
	burial := nixie.Burial{Cause: nixie.CausePermanent, Status: nixie.StatusReview, Redrivable: true, NeedsReview: true, Rule: ruleUndecided}
	burial.Signature, burial.Fingerprint = policy.Signature(second)
	return nixie.Settlement{Verb: nixie.Hold, Failure: &failure, Second: second, Burial: &burial}
}

// maskedError is an error whose text must not be read any more, for whoever
// observes settlements: it says what its failure says. For errors.Is and
// errors.As it is what it was.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }

// Is looks for target in what is masked.
func (e *maskedError) Is(target error) bool { return errors.Is(e.err, target) }

// As looks for a target in what is masked.
func (e *maskedError) As(target any) bool { return errors.As(e.err, target) }

// explicit reports whether the handler said what its failure is. The error in a
// diagnosed failure is safe to read.
func explicit(f *nixie.Failure) bool {
	marks := nixie.OutcomeOf(f.Err)
	return f.Reason != nixie.ReasonCanceled && (marks.Verb != "" || marks.Class != "" || marks.Reason != "")
}

// PanicError is a panic of a handler.
type PanicError struct {
	Value any
	Stack string
}

// Error says what the value was.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// panicked is the error of a panic. Of the stack the frames between it and the call
// of the handler are kept: those of the user.
func panicked(value any) error {
	whole := string(debug.Stack())
	stack, where := policy.PanicStack(whole)
	for _, ours := range [...]string{callFrame, handleFrame} {
		if at := strings.Index(stack, ours); at >= 0 {
			stack = stack[:at+1]
		}
	}
	evidence := nixie.Failure{Stack: stack}
	if where != "" {
		evidence.Context = []string{"panicked in " + where}
	}
	return nixie.WithEvidence(nixie.WithReason(&PanicError{value, whole}, nixie.ReasonPanic), evidence)
}

// Beginnings of the frames that call handlers, each on a line of its own.
const (
	callFrame   = "\ngithub.com/nixie-go/nixie/worker.(*Worker).call("
	handleFrame = "\ngithub.com/nixie-go/nixie.HandlerFunc.Handle("
)

// lateError is the error of a handler whose time was up.
type lateError struct {
	limit time.Duration
	err   error
}

func (e *lateError) Error() string { return fmt.Sprintf("no end after %s: %s", e.limit, e.err) }
func (e *lateError) Unwrap() error { return e.err }

// Timeout lets policy see what it is.
func (e *lateError) Timeout() bool { return true }

// errGoexit is a handler that ended its goroutine instead of returning.
var errGoexit = errors.New("handler ended its goroutine: it has to return")

// errDamaged is a body that is not the one that was accepted.
var errDamaged = errors.New("body is damaged: its hash is not the one taken when it was accepted")

// damaged compares the body with its hash, if it has one.
func damaged(d *nixie.Delivery) error {
	if d.Hash == (nixie.Hash{}) || lease.Intact(d) {
		return nil
	}
	return nixie.WithReason(nixie.Permanent(errDamaged), nixie.ReasonSerialization)
}
