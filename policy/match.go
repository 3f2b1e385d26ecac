package policy

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
)

// Matcher picks failures. Make one with [MatchError], [MatchType] and the other functions; [New]
// refuses the zero Matcher. A matcher that panics, because a method of the error does, picks
// nothing.
type Matcher struct {
	words string
	exact bool
	holds func(f *nixie.Failure, exact bool) bool
}

// String describes the failures that m picks.
func (m Matcher) String() string {
	if m.exact {
		return m.words + " exactly"
	}
	return m.words
}

// Exact returns a matcher that looks at the error itself, inside the marks of package nixie, and
// not at errors that it wraps. It makes a difference for MatchError, MatchType, MatchName and
// MatchCode.
func (m Matcher) Exact() Matcher {
	m.exact = true
	return m
}

// Holds reports whether m picks a failure.
func (m Matcher) Holds(f *nixie.Failure) (held bool) {
	defer func() {
		if recover() != nil {
			held = false
		}
	}()
	return m.holds(f, m.exact)
}

// AnyHolds reports whether one of the matchers picks a failure.
func AnyHolds(matchers []Matcher, f *nixie.Failure) bool {
	return slices.ContainsFunc(matchers, func(m Matcher) bool { return m.Holds(f) })
}

// MatchError picks failures whose error is target or wraps it, like errors.Is.
func MatchError(target error) Matcher {
	text, _ := textOf(target)
	return Matcher{words: fmt.Sprintf("error is %q", cut(text, MaxLabel)), holds: func(f *nixie.Failure, exact bool) bool {
		if exact {
			return target != nil && marksOf(f.Err).Err == target
		}
		return target != nil && errors.Is(f.Err, target)
	}}
}

// MatchType picks failures whose error is a T or wraps one, like errors.AsType.
func MatchType[T error]() Matcher {
	return Matcher{words: "error is a " + reflect.TypeFor[T]().String(), holds: func(f *nixie.Failure, exact bool) bool {
		if exact {
			_, ok := marksOf(f.Err).Err.(T)
			return ok
		}
		_, ok := errors.AsType[T](f.Err)
		return ok
	}}
}

// MatchName picks failures whose error, or one that it wraps, has one of the names. An error from
// another language returns its name from a method ErrorName() string; the name of any other error
// is its Go type. The part before the last point does not count: "RateLimitError" picks
// *provider.RateLimitError as well as weakincentives.adapters.RateLimitError.
func MatchName(names ...string) Matcher {
	names = slices.Clone(names)
	return Matcher{words: "error is named " + strings.Join(names, ", "), holds: func(f *nixie.Failure, exact bool) bool {
		if exact {
			err := marksOf(f.Err).Err
			return err != nil && slices.Contains(names, lastName(nameOf(err)))
		}
		held := slices.Contains(names, lastName(f.Type))
		every(f.Err, func(err error) { held = held || slices.Contains(names, lastName(nameOf(err))) })
		return held
	}}
}

func lastName(qualified string) string {
	return qualified[strings.LastIndexByte(qualified, '.')+1:]
}

// MatchCode picks failures with a [nixie.Error] of the code.
func MatchCode(code nixie.Code) Matcher {
	return Matcher{words: "error has code " + string(code), holds: func(f *nixie.Failure, exact bool) bool {
		var coded *nixie.Error
		if exact {
			coded, _ = marksOf(f.Err).Err.(*nixie.Error)
			return coded != nil && coded.Code == code
		}
		return errors.As(f.Err, &coded) && coded.Code == code
	}}
}

// MatchReason picks failures of any of the reasons. In a [ClassRule] it picks nothing: class rules
// are applied before the reason is known.
func MatchReason(reasons ...nixie.Reason) Matcher {
	reasons = slices.Clone(reasons)
	return Matcher{words: fmt.Sprintf("reason is one of %v", reasons), holds: func(f *nixie.Failure, _ bool) bool {
		return slices.Contains(reasons, f.Reason)
	}}
}

// MatchExit picks failures of commands that ended with any of the codes.
func MatchExit(codes ...int) Matcher {
	codes = slices.Clone(codes)
	return Matcher{words: fmt.Sprintf("exit code is one of %v", codes), holds: func(f *nixie.Failure, _ bool) bool {
		return f.ExitCode != nil && slices.Contains(codes, *f.ExitCode)
	}}
}

// MatchText picks failures whose text matches the pattern. It sees the text of the record, at most
// [nixie.MaxFailureText] bytes, and takes time linear in that.
func MatchText(pattern *regexp.Regexp) Matcher {
	return Matcher{words: "text matches " + pattern.String(), holds: func(f *nixie.Failure, _ bool) bool {
		return pattern.MatchString(f.Text)
	}}
}
