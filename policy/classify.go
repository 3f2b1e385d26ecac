package policy

import (
	"cmp"
	"context"
	"net"
	"os"
	"syscall"

	"github.com/nixie-go/nixie"
)

// ClassRule gives a class and a reason to the failures that its matcher picks. It fills in what
// the handler left open. An empty class or reason fills in nothing.
type ClassRule struct {
	When   Matcher
	Class  nixie.Class
	Reason nixie.Reason
}

// classification holds the class and the reason that are known so far.
type classification struct {
	class  nixie.Class
	reason nixie.Reason
}

func (k classification) or(other classification) classification {
	return classification{cmp.Or(k.class, other.class), cmp.Or(k.reason, other.reason)}
}

// classify fills in class and reason of a failure whose other fields are set.
func (p *Policy) classify(d *nixie.Delivery, f *nixie.Failure, marks nixie.Outcome) {
	known := classification{}
	if knownClass(marks.Class) {
		known.class = marks.Class
	}
	if marks.Reason != "" {
		known.reason = triageOf(marks.Reason).Reason
	}
	for _, r := range p.of(d.Type, "").ClassRules {
		if r.When.Holds(f) {
			known = known.or(classification{r.Class, r.Reason})
			break
		}
	}
	if known.reason == "" { // a reason that the handler or a rule named outweighs a guess
		known = known.or(evidence(f))
		if known.reason == "" && known.class != nixie.ClassPermanent {
			known.reason = passingReason(f.Type, f.Text)
		}
		known = known.or(classification{reason: nixie.ReasonHandler})
	}
	f.Reason = known.reason
	f.Class = cmp.Or(known.class, triageOf(known.reason).Class)
}

// Methods by which an error describes itself.
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

// evidence reads what an error says in a form made for programs. Words in its text are no
// evidence: a [ClassRule] looks at those, and they may tell that time heals the cause.
func evidence(f *nixie.Failure) classification {
	err := f.Err
	switch {
	case is(err, context.DeadlineExceeded), is(err, os.ErrDeadlineExceeded), says(err, func(e late) bool { return e.Timeout() }):
		return classification{reason: nixie.ReasonTimeout}
	case is(err, context.Canceled):
		return classification{reason: nixie.ReasonCanceled}
	case f.ExitCode != nil:
		return ofExit(*f.ExitCode)
	case is(err, syscall.ENOSPC), is(err, syscall.ENOMEM), is(err, syscall.EMFILE), is(err, syscall.EDQUOT):
		return classification{reason: nixie.ReasonResource}
	case says(err, func(*net.OpError) bool { return true }), says(err, func(*net.DNSError) bool { return true }):
		return classification{reason: nixie.ReasonTransportUnavailable}
	case says(err, func(e passing) bool { return e.Temporary() }):
		return classification{class: nixie.ClassTransient}
	}
	if coded, ok := find[*nixie.Error](err); ok && coded != nil {
		return classification{reason: reasonOfCode(coded.Code)}
	}
	return classification{}
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
