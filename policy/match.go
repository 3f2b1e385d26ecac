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

// Matcher picks failures. The zero Matcher is refused by [New]; make one with
// the functions beside it. A matcher that panics, because an error's own method
// does, holds for nothing.
type Matcher struct {
	words string
	exact bool
	holds func(f *nixie.Failure, exact bool) bool
}

// String says what it picks.
func (m Matcher) String() string {
	if m.exact {
		return m.words + " exactly"
	}
	return m.words
}

// Exact returns the matcher that looks at the error itself, below the marks of
// package nixie, and not at what that wraps. It makes a difference for
// MatchError, MatchType, MatchName and MatchCode.
func (m Matcher) Exact() Matcher {
	m.exact = true
	return m
}

func (m Matcher) match(f *nixie.Failure) (held bool) {
	defer func() {
		if recover() != nil {
			held = false
		}
	}()
	return m.holds(f, m.exact)
}

func anyHolds(matchers []Matcher, f *nixie.Failure) bool {
	return slices.ContainsFunc(matchers, func(m Matcher) bool { return m.match(f) })
}

// MatchError picks failures whose error is target or wraps it, as errors.Is
// has it.
func MatchError(target error) Matcher {
	text, _ := textOf(target)
	return Matcher{words: fmt.Sprintf("error is %q", cut(text, MaxLabel)), holds: func(f *nixie.Failure, exact bool) bool {
		if exact {
			return target != nil && marksOf(f.Err).Err == target
		}
		return target != nil && errors.Is(f.Err, target)
	}}
}

// MatchType picks failures whose error is a T or wraps one, as errors.AsType has it.
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

// MatchName picks failures whose error, or one that it wraps, has one of the
// names. The name of an error is what its method ErrorName() string says, as
// errors from other languages have it, or else its Go type; what stands before
// the last point of it does not count. So "RateLimitError" picks
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

// MatchReason picks failures of any of the reasons. In a [ClassRule] it holds for
// nothing, as rules are asked before the reason is known.
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

// MatchText picks failures whose text matches the pattern. It sees what is kept
// of the text, at most [nixie.MaxFailureText] bytes, and takes time linear in it.
func MatchText(pattern *regexp.Regexp) Matcher {
	return Matcher{words: "text matches " + pattern.String(), holds: func(f *nixie.Failure, _ bool) bool { return pattern.MatchString(f.Text) }}
}
