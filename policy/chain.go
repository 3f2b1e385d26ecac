package policy

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/nixie-go/nixie"
)

// An error is foreign code: its methods may panic, above all on a nil receiver, and its chain may
// have no end. The functions of this file survive both.

// marksOf is [nixie.OutcomeOf] for an error that may panic. It still reads the marks around such
// an error.
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
			marks.Verb = cmp.Or(marks.Verb, m.Verb)
			marks.Class = cmp.Or(marks.Class, m.Class)
			marks.Reason = cmp.Or(marks.Reason, m.Reason)
			marks.Timed, marks.Within = marks.Timed || m.Timed, max(marks.Within, m.Within)
			marks.Group = cmp.Or(marks.Group, m.Group)
			marks.Evidence = cmp.Or(marks.Evidence, m.Evidence)
			marks.After = max(marks.After, m.After)
		}
	}
	return marks
}

// find is errors.AsType for an error that may panic.
func find[T error](err error) (found T, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return errors.AsType[T](err)
}

// is is errors.Is for an error that may panic.
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

// textOf reads the text of an error. If the error's own method panics, the text tells that and
// sound is false.
func textOf(err error) (text string, sound bool) {
	for m, ok := err.(*nixie.Outcome); ok && m != nil; m, ok = err.(*nixie.Outcome) {
		err = m.Err // a mark has the text of the error that it wraps
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

// every calls see with err and with all errors that it wraps, joined ones too. It returns false
// if there are more than maxChain.
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

// usualChain is the room that callers reserve for the errors of a chain.
const usualChain = 8

// path appends err and the errors that it wraps to nodes, outermost first. Of joined errors it
// follows the first.
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

// typeOf names the innermost type of a chain that says more than "an error". It passes over
// wrappers and over numbers of the system. An error that names itself (see [MatchName]) has that
// name.
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

// nameOf returns the name that an error gives itself, or else its type.
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

// contextOf lists the words that each wrapper adds to the text of the error that it wraps,
// outermost first. Outer is the text of the first node. It ends at a text that is longer than the
// text that a failure keeps, because comparing such texts costs too much.
func contextOf(nodes []error, outer string) []string {
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
