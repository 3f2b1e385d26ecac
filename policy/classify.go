package policy

import (
	"context"
	"net"
	"os"
	"syscall"

	"github.com/nixie-go/nixie"
)

// ClassRule says what failures are that its matcher picks. It fills in what the
// handler left open: an empty class or reason says nothing.
type ClassRule struct {
	When   Matcher
	Class  nixie.Class
	Reason nixie.Reason
}

// finding is what is known of class and reason so far.
type finding struct {
	class  nixie.Class
	reason nixie.Reason
}

func (k finding) or(other finding) finding {
	return finding{orElse(k.class, other.class), orElse(k.reason, other.reason)}
}

// classify fills in class and reason of a failure whose other fields are set.
func (p *Policy) classify(d *nixie.Delivery, f *nixie.Failure, marks nixie.Outcome, can ability) {
	known := finding{}
	if knownClass(marks.Class) {
		known.class = marks.Class
	}
	if marks.Reason != "" {
		known.reason = triageOf(marks.Reason).Reason
	}
	for _, r := range p.of(d.Type, "").ClassRules {
		if r.When.match(f) {
			known = known.or(finding{r.Class, r.Reason})
			break
		}
	}
	if known.reason == "" { // a reason that somebody named outweighs what we would guess
		known = known.or(evidence(f, can)).or(finding{reason: nixie.ReasonHandler})
	}
	f.Reason = known.reason
	f.Class = orElse(known.class, triageOf(known.reason).Class)
}

// What errors may say of themselves.
type (
	late interface {
		error
		Timeout() bool
	}
	passing interface {
		error
		Temporary() bool
	}
	stepped interface {
		error
		Step() string
	}
	exited interface {
		error
		ExitCode() int
	}
)

// evidence reads what an error says in a form made for programs. Words in its
// text are no evidence: they are for rules that somebody wrote on purpose.
func evidence(f *nixie.Failure, can ability) finding {
	if !can.has(canTell) {
		if f.ExitCode != nil {
			return finding{reason: nixie.ReasonCommandFailed}
		}
		return finding{}
	}
	err := f.Err
	switch {
	case is(err, context.DeadlineExceeded), is(err, os.ErrDeadlineExceeded), says(err, func(e late) bool { return e.Timeout() }):
		return finding{reason: nixie.ReasonTimeout}
	case is(err, context.Canceled):
		return finding{reason: nixie.ReasonCanceled}
	case f.ExitCode != nil:
		return finding{reason: nixie.ReasonCommandFailed}
	case is(err, syscall.ENOSPC), is(err, syscall.ENOMEM), is(err, syscall.EMFILE), is(err, syscall.EDQUOT):
		return finding{reason: nixie.ReasonResource}
	case says(err, func(*net.OpError) bool { return true }), says(err, func(*net.DNSError) bool { return true }):
		return finding{reason: nixie.ReasonTransportUnavailable}
	case says(err, func(e passing) bool { return e.Temporary() }):
		return finding{class: nixie.ClassTransient}
	}
	if coded, ok := find[*nixie.Error](err); ok && coded != nil {
		return finding{reason: reasonOfCode(coded.Code)}
	}
	return finding{}
}

func reasonOfCode(code nixie.Code) nixie.Reason {
	switch code {
	case nixie.CodeUnavailable, nixie.CodeOutcomeUnknown:
		return nixie.ReasonDependency
	case nixie.CodeInvalid:
		return nixie.ReasonValidation
	case nixie.CodeDenied:
		return nixie.ReasonAuth
	case nixie.CodeLimit:
		return nixie.ReasonResource
	}
	return ""
}
