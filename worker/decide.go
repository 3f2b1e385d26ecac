package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/policy"
)

// judge makes the settlement of a delivery that must not run. It returns false for any other.
func (c *Config) judge(ctx context.Context, d *nixie.Delivery, now time.Time) (nixie.Settlement, bool) {
	var f *nixie.Failure
	if d.Abandoned {
		f = c.policies.of(d.Queue).Abandoned(d, now)
	} else {
		f = c.policies.of(d.Queue).Admit(d, now)
	}
	if f == nil {
		return nixie.Settlement{}, false
	}
	policy.Recall(f, func() *nixie.Failure { return c.lastFailure(ctx, d) })
	f.Node = c.Node
	if c.Mask != nil {
		c.Mask(f)
	}
	return c.ask(d, f, now), true
}

// lastFailure asks the source what a delivery failed of before, nil if it does not know.
func (c *Config) lastFailure(ctx context.Context, d *nixie.Delivery) *nixie.Failure {
	source, ok := c.Source.(lease.Historian)
	if !ok {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, min(c.Lease, callLimit))
	defer stop()
	last, err := source.LastFailure(ctx, d)
	if err != nil {
		c.trouble(unexpected, nixie.Errorf(nixie.CodeOf(err),
			"message %s dies in a group of its limit: its last failure cannot be read: %w", d.ID, err))
	}
	return last
}

// decide makes the settlement from the outcome of a handler. The error of a handler that the worker
// interrupted does not count, unless its marks tell what it is; a worker that stops costs the
// message nothing.
func (c *Config) decide(d *nixie.Delivery, err, interrupted error, started, ended time.Time) nixie.Settlement {
	if err == nil {
		return c.followed(c.succeeded(d, ended), started, ended)
	}
	f := c.policies.of(d.Queue).Diagnose(d, err, c.attempt(started, ended))
	if interrupted != nil && !explicit(f) {
		st := nixie.Settlement{Delivery: d, Verb: nixie.Release}
		if errors.Is(interrupted, ErrStopping) {
			st.Waiver = nixie.WaiveStopping
		}
		return st
	}
	return c.ask(d, f, ended)
}

// attempt describes an attempt of this worker.
func (c *Config) attempt(started, ended time.Time) policy.Attempt {
	return policy.Attempt{StartedAt: started, FailedAt: ended, Worker: c.Name, Node: c.Node, Mask: c.Mask}
}

// succeeded asks the decider about a success. A decider that fails does not undo the success.
func (c *Config) succeeded(d *nixie.Delivery, now time.Time) nixie.Settlement {
	st, err := c.callDecider(d, nil, now)
	if err != nil {
		masked := c.policies.of(d.Queue).Diagnose(d, err, policy.Attempt{StartedAt: now, FailedAt: now, Mask: c.Mask})
		c.trouble(unexpected, nixie.Errorf(nixie.CodeInternal, "message %s succeeded and is completed, although %s", d.ID, masked.Text))
		st = nixie.Settlement{Verb: nixie.Complete}
	}
	st.Delivery = d
	return st
}

// followed adds the messages of the handler to a settlement that completes the delivery. If these
// are more than one settlement may have, the attempt has failed.
func (c *Config) followed(st nixie.Settlement, started, ended time.Time) nixie.Settlement {
	d := st.Delivery
	if st.Verb != nixie.Complete || len(d.Tracking.Then) == 0 {
		return st
	}
	st.Then = slices.Concat(d.Tracking.Then, st.Then)
	if err := nixie.CheckThen(st.Then); err != nil {
		return c.ask(d, c.policies.of(d.Queue).Diagnose(d, nixie.Permanent(err), c.attempt(started, ended)), ended)
	}
	return st
}

// refused makes the settlement of a delivery whose Then the source refused: the attempt has failed.
// If that was already decided, the delivery is settled without what goes to the queue that refused.
// So it is not lost, and what other queues take still follows.
func (c *Config) refused(st *nixie.Settlement, err error) nixie.Settlement {
	now := c.Clock()
	if st.Verb == nixie.Complete {
		return c.ask(st.Delivery, c.policies.of(st.Delivery.Queue).Diagnose(st.Delivery, err, c.attempt(now.Add(-st.Took), now)), now)
	}
	less, queue := *st, refuser(st.Then, err)
	less.Then = slices.DeleteFunc(slices.Clone(st.Then), func(m nixie.Message) bool { return m.Queue == queue })
	c.trouble(unexpected, nixie.Errorf(nixie.CodeOf(err), "message %s: %s without the %d messages that were to follow to %s: %w",
		st.Delivery.ID, st.Verb, len(st.Then)-len(less.Then), queue, err))
	return less
}

// refuser returns the queue that refused its messages: the first one if the error names none of
// them.
func refuser(then []nixie.Message, err error) string {
	var told *nixie.Error
	if errors.As(err, &told) && slices.ContainsFunc(then, func(m nixie.Message) bool { return m.Queue == told.Queue }) {
		return told.Queue
	}
	return then[0].Queue
}

// refusesThen reports whether a source refused a settlement for the messages that follow it.
func refusesThen(st *nixie.Settlement, err error) bool {
	switch nixie.CodeOf(err) {
	case nixie.CodeConflict, nixie.CodeInvalid, nixie.CodeNotFound: // closed, of no use there, or no such channel
		return len(st.Then) > 0
	}
	return false
}

func (c *Config) ask(d *nixie.Delivery, f *nixie.Failure, now time.Time) nixie.Settlement {
	st, err := c.callDecider(d, f, now)
	if err != nil {
		st = c.undecided(d, f, err, now)
	}
	st.Delivery = d
	if c.Mask != nil && st.Failure != nil && st.Failure.Err != nil {
		st.Failure.Err = &maskedError{st.Failure.Text, st.Failure.Err}
	}
	return st
}

// callDecider asks the decider, which may be foreign code.
func (c *Config) callDecider(d *nixie.Delivery, f *nixie.Failure, now time.Time) (st nixie.Settlement, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the decider panicked: %v", v)
		}
	}()
	st = c.Decider.Decide(d, f, now)
	if err := nixie.CheckThen(st.Then); err != nil {
		return st, fmt.Errorf("the decider's settlement: %w", err)
	}
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

// undecided holds a message whose decider failed, for a person to review: the decider would
// probably fail again. The letter may be redriven once the decider is repaired.
func (c *Config) undecided(d *nixie.Delivery, f *nixie.Failure, err error, now time.Time) nixie.Settlement {
	failure := *f
	failure.Decision = nixie.Hold
	err = nixie.WithReason(nixie.Permanent(err), nixie.ReasonPolicy)
	second := c.policies.of(d.Queue).Diagnose(d, err, c.attempt(now, now))
	second.Decision = nixie.Hold
	burial := nixie.Burial{
		Cause: nixie.CausePermanent, Status: nixie.StatusReview, Redrivable: true, NeedsReview: true, Rule: ruleUndecided,
	}
	burial.Signature, burial.Fingerprint = policy.SignatureOf(second, &d.Message)
	return nixie.Settlement{Verb: nixie.Hold, Failure: &failure, Second: second, Burial: &burial}
}

// maskedError hides the text of an error from observers of settlements: its text is the masked one
// of the failure. The functions errors.Is and errors.As still find the error.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }

// Is looks for target in the error that is masked.
func (e *maskedError) Is(target error) bool { return errors.Is(e.err, target) }

// As looks for a target in the error that is masked.
func (e *maskedError) As(target any) bool { return errors.As(e.err, target) }

// explicit reports whether marks of the handler tell the verb, class or reason of a failure. The
// error in a diagnosed failure is safe to read.
func explicit(f *nixie.Failure) bool {
	marks := nixie.OutcomeOf(f.Err)
	return f.Reason != nixie.ReasonCanceled && (marks.Verb != "" || marks.Class != "" || marks.Reason != "")
}

// PanicError is the error of an attempt whose handler panicked.
type PanicError struct {
	Value any
	Stack string
}

// Error describes the value.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// panicked makes the error of a panic. Of the stack it keeps the user's frames: those between the
// panic and the call of the handler.
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

// Timeout makes the policy give it reason timeout.
func (e *lateError) Timeout() bool { return true }

// errGoexit is the error of a handler that ended its goroutine instead of returning.
var errGoexit = errors.New("handler ended its goroutine: it has to return")

// errDamaged is the error of a body that has changed since the store accepted it.
var errDamaged = errors.New("body is damaged: its hash is not the one taken when it was accepted")

// damaged compares the body with its hash, if it has one.
func damaged(d *nixie.Delivery) error {
	if d.Hash == (nixie.Hash{}) || lease.Intact(d) {
		return nil
	}
	return nixie.WithReason(nixie.Permanent(errDamaged), nixie.ReasonSerialization)
}
