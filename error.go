package nixie

import (
	"errors"
	"fmt"
)

// Code names the kind of an [Error]. A caller acts on the code and need not read the text.
type Code string

// The codes. A store returns no others.
const (
	CodeNotFound       Code = "not-found"       // nothing has that name or ID
	CodeConflict       Code = "conflict"        // the state forbids it, or a key is taken
	CodeInvalid        Code = "invalid"         // the caller's input is wrong; the text names field, limit and fix
	CodeLeaseLost      Code = "lease-lost"      // the lease is no longer the caller's; nothing was changed
	CodeOutcomeUnknown Code = "outcome-unknown" // the change may have happened or not; repeat it with the same key
	CodeDenied         Code = "denied"          // the actor has no permission
	CodeLimit          Code = "limit"           // a limit is reached; nothing was changed
	CodeUnavailable    Code = "unavailable"     // the store, or an ability of it, cannot be reached now
	CodeInternal       Code = "internal"        // an invariant is broken: a defect of ours, or damaged data
)

// ErrClosed is in the error chain of every call to a store or driver that is closed. No later call
// will succeed, so a worker ends with it.
var ErrClosed = errors.New("closed")

// ErrHeldUp is in the error chain of a settlement that its source cannot keep, however often it is
// repeated. A worker ends with it: it settles the rest, and leaves that message to its lease.
var ErrHeldUp = errors.New("it is not acknowledged, and comes again")

// Error is a code and a sentence for a person. The sentence includes the text of the cause.
type Error struct {
	Code  Code
	Text  string
	Err   error
	Queue string // the queue, or channel, that refused a message; empty if the error is about something else
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an [Error]. The error given for %w is kept as its cause, with its Queue.
func Errorf(code Code, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	e := &Error{Code: code, Text: err.Error(), Err: errors.Unwrap(err)}
	var cause *Error
	if errors.As(e.Err, &cause) {
		e.Queue = cause.Queue
	}
	return e
}

// CodeOf returns the code of the first [Error] in the chain of err. It returns [CodeInternal] if
// there is none, and the empty code for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var coded *Error
	if errors.As(err, &coded) {
		return coded.Code
	}
	return CodeInternal
}

// clip shortens s to at most n bytes for use inside an error text.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}

// DuplicateError answers an enqueue with [FailOnConflict] when another message holds the dedupe
// key.
type DuplicateError struct {
	Key      string
	Existing ID
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("dedupe key %q is held by message %s: choose another key or accept the existing message", e.Key, e.Existing)
}

// Unwrap makes CodeOf answer [CodeConflict].
func (e *DuplicateError) Unwrap() error { return &Error{Code: CodeConflict, Text: e.Error()} }
