package policy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"regexp"
	"slices"
	"syscall"

	"github.com/nixie-go/nixie"
)

// Matcher picks failures. The zero Matcher is refused by [New]; make one with
// the functions beside it. A matcher that panics, because an error's own method
// does, holds for nothing.
type Matcher struct {
	words string
	holds func(*nixie.Failure) bool
}

// String says what it picks.
func (m Matcher) String() string { return m.words }

func (m Matcher) match(f *nixie.Failure) (held bool) {
	defer func() {
		if recover() != nil {
			held = false
		}
	}()
	return m.holds(f)
}

func anyHolds(matchers []Matcher, f *nixie.Failure) bool {
	return slices.ContainsFunc(matchers, func(m Matcher) bool { return m.match(f) })
}

// MatchError picks failures whose error is target or wraps it, as errors.Is
// has it.
func MatchError(target error) Matcher {
	text, _ := textOf(target)
	return Matcher{fmt.Sprintf("error is %q", cut(text, MaxLabel)), func(f *nixie.Failure) bool {
		return target != nil && errors.Is(f.Err, target)
	}}
}

// MatchType picks failures whose error is a T or wraps one, as errors.As has it.
func MatchType[T error]() Matcher {
	return Matcher{"error is a " + reflect.TypeFor[T]().String(), func(f *nixie.Failure) bool {
		var found T
		return errors.As(f.Err, &found)
	}}
}

// MatchCode picks failures with a [nixie.Error] of the code.
func MatchCode(code nixie.Code) Matcher {
	return Matcher{"error has code " + string(code), func(f *nixie.Failure) bool {
		var coded *nixie.Error
		return errors.As(f.Err, &coded) && coded.Code == code
	}}
}

// MatchReason picks failures of any of the reasons. In a [Rule] it holds for
// nothing, as rules are asked before the reason is known.
func MatchReason(reasons ...nixie.Reason) Matcher {
	reasons = slices.Clone(reasons)
	return Matcher{fmt.Sprintf("reason is one of %v", reasons), func(f *nixie.Failure) bool {
		return slices.Contains(reasons, f.Reason)
	}}
}

// MatchExit picks failures of commands that ended with any of the codes.
func MatchExit(codes ...int) Matcher {
	codes = slices.Clone(codes)
	return Matcher{fmt.Sprintf("exit code is one of %v", codes), func(f *nixie.Failure) bool {
		return f.ExitCode != nil && slices.Contains(codes, *f.ExitCode)
	}}
}

// MatchText picks failures whose text matches the pattern. It sees what is kept
// of the text, at most [nixie.MaxFailureText] bytes, and takes time linear in it.
func MatchText(pattern *regexp.Regexp) Matcher {
	return Matcher{"text matches " + pattern.String(), func(f *nixie.Failure) bool { return pattern.MatchString(f.Text) }}
}

// Rule says what failures are that its matcher picks. It fills in what the
// handler left open: an empty class or reason says nothing.
type Rule struct {
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
func (p *Policy) classify(f *nixie.Failure, marks nixie.Outcome) {
	known := finding{}
	if knownClass(marks.Class) {
		known.class = marks.Class
	}
	if marks.Reason != "" {
		known.reason = triageOf(marks.Reason).Reason
	}
	for _, r := range p.config.Rules {
		if r.When.match(f) {
			known = known.or(finding{r.Class, r.Reason})
			break
		}
	}
	if known.reason == "" { // a reason that somebody named outweighs what we would guess
		known = known.or(evidence(f)).or(finding{reason: nixie.ReasonHandler})
	}
	f.Reason = known.reason
	f.Class = orElse(known.class, triageOf(known.reason).Class)
}

// evidence reads what an error says in a form made for programs. Words in its
// text are no evidence: they are for rules that somebody wrote on purpose.
func evidence(f *nixie.Failure) finding {
	err := f.Err
	switch {
	case is(err, context.DeadlineExceeded), is(err, os.ErrDeadlineExceeded), says(err, func(e interface{ Timeout() bool }) bool { return e.Timeout() }):
		return finding{reason: nixie.ReasonTimeout}
	case is(err, context.Canceled):
		return finding{reason: nixie.ReasonCanceled}
	case f.ExitCode != nil:
		return finding{reason: nixie.ReasonCommandFailed}
	case is(err, syscall.ENOSPC), is(err, syscall.ENOMEM), is(err, syscall.EMFILE), is(err, syscall.EDQUOT):
		return finding{reason: nixie.ReasonResource}
	case says(err, func(*net.OpError) bool { return true }), says(err, func(*net.DNSError) bool { return true }):
		return finding{reason: nixie.ReasonTransportUnavailable}
	case says(err, func(e interface{ Temporary() bool }) bool { return e.Temporary() }):
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
