package policy

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// Facts are what is known of an attempt beside its error.
type Facts struct {
	StartedAt time.Time // when the handler began
	FailedAt  time.Time // when it returned
	Worker    string
	Node      string
}

// Diagnose makes the record of a failed attempt: what it was, where, and of
// which class and reason. All its texts are valid UTF-8 and within the limits
// of package nixie, a cut one has a mark. A nil error is no failure: the answer
// is nil. It survives errors whose methods panic or whose chain has no end;
// such an error is replaced in Err by one that is harmless.
func (p *Policy) Diagnose(d *nixie.Delivery, err error, at Facts) *nixie.Failure {
	if err == nil {
		return nil
	}
	f := newFailure(d, at)
	f.Err = err
	marks, nodes := nixie.Outcome{}, []error{err}
	text, sound := "an error wraps too many others, or itself", finite(err)
	if sound {
		marks, nodes = marksOf(err), path(err)
		text, sound = textOf(err)
	}
	f.Text = orElse(cut(text, nixie.MaxFailureText), "an error without text")
	f.Type = cut(typeOf(nodes), nixie.MaxName)
	if sound {
		f.Context = trail(nodes)
	} else {
		marks.Err = errors.New(f.Text)
		f.Err = &marks
	}
	addEvidence(f, err, marks.Evidence)
	bound(f)
	p.classify(d, f, marks)
	return f
}

// Abandoned makes the record of an attempt whose holder vanished: reason
// lease-expired, Worker the holder. Nobody saw it end, so that both its times
// are the moment when that was found out.
func (p *Policy) Abandoned(d *nixie.Delivery, now time.Time) *nixie.Failure {
	f := newFailure(d, Facts{StartedAt: now, FailedAt: now, Worker: d.AbandonedBy})
	f.Text = "the holder vanished without an outcome: killed, crashed, or silent for longer than its lease"
	f.Reason = nixie.ReasonLeaseExpired
	f.Class = triageOf(f.Reason).Class
	return f
}

// Admit says why a delivery must not be run at all: damaged, past its own
// expiry, past max_age after an earlier attempt of this life, or claimed or
// executed more often than the limits allow, where the most generous case of its
// type counts. It is nil when the delivery may run; otherwise Decide makes a
// settlement of it. A claim of an abandoned message is not for Admit but for
// [Policy.Abandoned].
func (p *Policy) Admit(d *nixie.Delivery, now time.Time) *nixie.Failure {
	text, reason := "", nixie.ReasonUnknown
	switch {
	case len(d.Damage) > 0:
		return damaged(d, now)
	case past(d.ExpiresAt, now):
		text, reason = "the message was past its expiry before it could be run", nixie.ReasonMaxAge
	case d.Attempts > 1 && p.inEveryCase(d, func(c *Config) bool { return c.aged(d, now) }):
		text, reason = "the message was past max_age before it could be run again", nixie.ReasonMaxAge
	case p.inEveryCase(d, func(c *Config) bool { return c.MaxDeliveries != none && d.Deliveries > c.MaxDeliveries }):
		text = "the message was claimed max_deliveries times without an outcome"
	case p.inEveryCase(d, func(c *Config) bool { return c.MaxAttempts != none && c.executed(d) > c.MaxAttempts }):
		text = "the message was executed max_attempts times before"
	default:
		return nil
	}
	f := newFailure(d, Facts{StartedAt: now, FailedAt: now})
	f.Text, f.Reason, f.Class = text, reason, nixie.ClassUnknown
	return f
}

// damaged makes the record of a message that its store could not read whole.
func damaged(d *nixie.Delivery, now time.Time) *nixie.Failure {
	f := newFailure(d, Facts{StartedAt: now, FailedAt: now})
	f.Text = "the stored record is damaged and was not run: " + strings.Join(d.Damage, "; ")
	f.Reason = nixie.ReasonSerialization
	f.Class = nixie.ClassPermanent
	bound(f)
	return f
}

func newFailure(d *nixie.Delivery, at Facts) *nixie.Failure {
	return &nixie.Failure{
		Generation: max(d.Generation, 1),
		Attempt:    max(d.Attempts, 1),
		StartedAt:  at.StartedAt,
		FailedAt:   at.FailedAt,
		Took:       took(at),
		Worker:     cut(at.Worker, nixie.MaxName),
		Node:       cut(at.Node, nixie.MaxName),
		Steps:      slices.Clone(d.Steps),
	}
}

// took is never negative, though clocks go back.
func took(at Facts) time.Duration {
	if at.StartedAt.IsZero() {
		return 0
	}
	return max(at.FailedAt.Sub(at.StartedAt), 0)
}

// addEvidence fills in what the handler attached and what errors of a known
// form tell.
func addEvidence(f *nixie.Failure, err error, given *nixie.Failure) {
	if given != nil {
		f.Step, f.LogLocation, f.Stack = given.Step, given.LogLocation, given.Stack
		f.ExitCode = given.ExitCode
		f.Context = append(f.Context, given.Context...)
		f.Attachments = given.Attachments
	}
	if f.Err != err {
		return // not an error to be asked
	}
	if f.Step == "" {
		says(err, func(e interface{ Step() string }) bool { f.Step = e.Step(); return true })
	}
	if f.ExitCode == nil {
		says(err, func(e interface{ ExitCode() int }) bool {
			code := e.ExitCode()
			f.ExitCode = &code
			return true
		})
	}
}

// bound keeps every part of a failure within its limit, in copies of its own.
func bound(f *nixie.Failure) {
	f.Step = cut(f.Step, nixie.MaxName)
	f.LogLocation = cut(f.LogLocation, maxContextLine)
	f.Stack = cut(f.Stack, nixie.MaxStack)
	if f.ExitCode != nil {
		code := *f.ExitCode
		f.ExitCode = &code
	}
	f.Context = slices.Clone(f.Context[:min(len(f.Context), nixie.MaxContext)])
	for i, line := range f.Context {
		f.Context[i] = cut(line, maxContextLine)
	}
	f.Attachments = slices.Clone(f.Attachments[:min(len(f.Attachments), maxAttachments)])
	for i := range f.Attachments {
		a := &f.Attachments[i]
		a.Name = cut(a.Name, nixie.MaxName)
		gone := max(len(a.Data)-nixie.MaxAttachment, 0) // the end of a log says more than its beginning
		a.Data = slices.Clone(a.Data[gone:])
		a.Truncated += int64(gone)
	}
}
