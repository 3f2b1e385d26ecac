package policy

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/nixie-go/nixie"
)

// An error is foreign code: its methods may panic, on a nil receiver above all,
// and its chain may have no end. What is here survives both.

// marksOf is [nixie.OutcomeOf] for errors that nobody has looked at. Marks
// around an error that panics still count.
func marksOf(err error) (marks nixie.Outcome) {
	defer func() {
		if recover() != nil {
			marks = outerMarks(err)
		}
	}()
	return nixie.OutcomeOf(err)
}

func outerMarks(err error) nixie.Outcome {
	var marks nixie.Outcome
	for _, node := range path(nil, err) {
		if m, ok := node.(*nixie.Outcome); ok && m != nil {
			marks.Verb = orElse(marks.Verb, m.Verb)
			marks.Class = orElse(marks.Class, m.Class)
			marks.Reason = orElse(marks.Reason, m.Reason)
			marks.Evidence = orElse(marks.Evidence, m.Evidence)
			marks.After = max(marks.After, m.After)
		}
	}
	return marks
}

// find is errors.AsType.
func find[T error](err error) (found T, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return errors.AsType[T](err)
}

// is is errors.Is.
func is(err, target error) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return errors.Is(err, target)
}

// says asks the first T in the chain, if there is one.
func says[T error](err error, ask func(T) bool) (yes bool) {
	defer func() {
		if recover() != nil {
			yes = false
		}
	}()
	found, ok := find[T](err)
	return ok && ask(found)
}

// textOf reads the text of an error. Where the error's own method panics, the
// text says so and sound is false.
func textOf(err error) (text string, sound bool) {
	for m, ok := err.(*nixie.Outcome); ok && m != nil; m, ok = err.(*nixie.Outcome) {
		err = m.Err // whose text is the mark's own
	}
	if err == nil { // a mark around nothing would panic
		return "", false
	}
	defer func() {
		if cause := recover(); cause != nil {
			sound = false
			if v := reflect.ValueOf(err); v.Kind() == reflect.Pointer && v.IsNil() {
				text = fmt.Sprintf("a nil %T was returned as an error: return a plain nil for success", err)
				return
			}
			text = fmt.Sprintf("the text of an error of type %T cannot be read: its Error method panicked: %v", err, cause)
		}
	}()
	return err.Error(), true
}

// unwrap returns what err wraps: many errors, or one.
func unwrap(err error) (many []error, one error) {
	defer func() {
		if recover() != nil {
			many, one = nil, nil
		}
	}()
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		one = e.Unwrap()
	case interface{ Unwrap() []error }:
		many = e.Unwrap()
	}
	return many, one
}

// every shows err and all that it wraps, joined ones too. It is false when there are
// more than are looked at.
func every(err error, see func(error)) (ended bool) {
	open := append(make([]error, 0, usualChain), err)
	for seen := 0; len(open) > 0; seen++ {
		if seen == maxChain {
			return false
		}
		last := len(open) - 1
		next := open[last]
		open = open[:last]
		if next == nil {
			continue
		}
		see(next)
		many, one := unwrap(next)
		if len(many) > maxChain {
			return false
		}
		if one != nil {
			open = append(open, one)
		}
		open = append(open, many...)
	}
	return true
}

// usualChain is how many errors are wrapped in one at most, usually.
const usualChain = 8

// path adds err and what it wraps to nodes, outermost first, taking the first branch
// where errors are joined.
func path(nodes []error, err error) []error {
	for err != nil && len(nodes) < maxChain {
		nodes = append(nodes, err)
		many, next := unwrap(err)
		for _, w := range many {
			if next = w; w != nil {
				break
			}
		}
		err = next
	}
	return nodes
}

// typeOf names the innermost type of a chain that says more than "an error":
// wrappers and bare numbers of the system yield to what stands around them. An
// error that has a name of its own (see [MatchName]) goes by that.
func typeOf(nodes []error) string {
	if len(nodes) == 0 {
		return ""
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		switch name := nameOf(nodes[i]); name {
		case "*errors.errorString", "*errors.joinError", "*fmt.wrapError", "*fmt.wrapErrors",
			"*nixie.Outcome", "*nixie.stepError", "*os.SyscallError", "syscall.Errno":
		default:
			return name
		}
	}
	return reflect.TypeOf(nodes[len(nodes)-1]).String()
}

// nameOf is the name that an error gives itself, or else its type.
func nameOf(err error) (name string) {
	defer func() {
		if recover() != nil || name == "" {
			name = reflect.TypeOf(err).String()
		}
	}()
	if named, ok := err.(interface{ ErrorName() string }); ok {
		return named.ErrorName()
	}
	return ""
}

// trail lists what each wrapper adds to the text of what it wraps, outermost
// first; outer is the text of the first one. Texts that are longer than what is kept
// of one are not worth it.
func trail(nodes []error, outer string) []string {
	var lines []string
	for i := 0; i+1 < len(nodes) && i < 2*nixie.MaxContext; i++ {
		inner, _ := textOf(nodes[i+1])
		if len(outer) > nixie.MaxFailureText {
			return lines
		}
		added, wraps := strings.CutSuffix(outer, inner)
		added = strings.TrimRight(added, ": \t\r\n")
		if wraps && added != "" {
			lines = append(lines, added)
		}
		outer = inner
	}
	return lines
}
