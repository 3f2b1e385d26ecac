package nixie

import (
	"errors"
	"fmt"
)

// Code says what kind of answer an [Error] is, so that a caller can act on it
// without reading its text. One table in the faces maps codes to exit and HTTP
// status.
type Code string

// The codes. A store returns no others.
const (
	CodeNotFound       Code = "not-found"       // nothing of that name or ID
	CodeConflict       Code = "conflict"        // the state of the thing forbids it, or a key is taken
	CodeInvalid        Code = "invalid"         // the caller's input; the text names field, limit and fix
	CodeLeaseLost      Code = "lease-lost"      // the claim is no longer the caller's; nothing was changed
	CodeOutcomeUnknown Code = "outcome-unknown" // it may or may not have happened; repeat with the same key
	CodeDenied         Code = "denied"          // the actor may not
	CodeLimit          Code = "limit"           // a named bound is reached; nothing was changed
	CodeUnavailable    Code = "unavailable"     // the store or an ability of it cannot be reached now
	CodeInternal       Code = "internal"        // a violated invariant: a defect of ours or damaged data
)

// ErrClosed is in the chain of errors of a store or driver that was closed: nothing
// that is asked of it will succeed any more. A worker ends with it.
var ErrClosed = errors.New("closed")

// Error is a code and a sentence for a person. The sentence already holds the
// words of its cause, if there is one.
type Error struct {
	Code Code
	Text string
	Err  error
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an [Error]. The error given for %w is kept as its cause.
func Errorf(code Code, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Text: err.Error(), Err: errors.Unwrap(err)}
}

// CodeOf returns the code of the first [Error] in err's chain: the empty code
// for nil and [CodeInternal] for an error without one.
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

// DuplicateError is returned by an enqueue with [FailOnConflict]. It names the
// message that holds the key.
type DuplicateError struct {
	Key      string
	Existing ID
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("dedupe key %q is held by message %s: choose another key or accept the existing message", e.Key, e.Existing)
}

// Unwrap makes CodeOf answer [CodeConflict].
func (e *DuplicateError) Unwrap() error { return &Error{Code: CodeConflict, Text: e.Error()} }
