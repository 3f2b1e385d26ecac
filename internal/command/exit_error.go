package command

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// Exit codes with a meaning, after sysexits.h. A shell ends with 137 when its program was killed.
const (
	ExitData        = 65  // the item is wrong: permanent, reason validation
	ExitUnavailable = 69  // something it needs is down: transient, reason dependency
	ExitTemporary   = 75  // try again: transient, reason handler
	ExitKilled      = 137 // killed, mostly for lack of memory: transient, reason resource
)

const maxLine = 1 << 10 // bytes of the line of stderr in an error's text

// ExitError reports a command that failed. Its text is the last non-empty line of stderr, or the
// exit status or signal if there is none.
type ExitError struct {
	Result  Result
	Message string // of the command's verdict, which replaces the line; may be empty
}

func (e *ExitError) Error() string {
	line := e.Message
	if line == "" {
		line = lastLine(e.Result.Stderr.Data)
	}
	how := ""
	switch r := e.Result; {
	case r.TimedOut && r.Timeout > 0:
		how = "timed out after " + r.Timeout.String()
	case r.TimedOut:
		how = "timed out"
	case r.Canceled:
		how = "canceled"
	case r.Signal != 0:
		how = fmt.Sprintf("killed by signal %d (%s)", int(r.Signal), r.Signal)
	case line == "":
		return fmt.Sprintf("exit status %d", r.ExitCode)
	default:
		return line
	}
	if line == "" {
		return how
	}
	return how + ": " + line
}

// lastLine returns the last line that is not blank, as valid UTF-8.
func lastLine(data []byte) string {
	data = bytes.TrimSpace(data)
	data = data[bytes.LastIndexAny(data, "\n\r")+1:]
	return clip(strings.TrimSpace(strings.ToValidUTF8(string(data), "\uFFFD")), maxLine)
}

// clip cuts s to at most n bytes between two characters and marks the cut. Bytes that
// are no UTF-8 may be cut anywhere.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for least := n - utf8.UTFMax; n > least && !utf8.RuneStart(s[n]); {
		n--
	}
	return s[:n] + "…"
}

// Err returns nil after exit code 0, and otherwise an *[ExitError] with a class and a reason. Its
// evidence for the failure record is the exit code and the ends of both outputs.
//
//	timeout                  transient  timeout
//	end of the context       transient  canceled
//	a code in permanent      permanent  command-failed
//	a signal, or 137         transient  resource
//	65                       permanent  validation
//	69                       transient  dependency
//	75                       transient  handler
//	any other code           unknown    command-failed
func (r Result) Err(permanent []int) error {
	if r.ExitCode == 0 && !r.TimedOut && !r.Canceled {
		return nil
	}
	err := r.evidence(&ExitError{Result: r})
	switch {
	case r.TimedOut:
		return nixie.WithReason(nixie.Transient(err), nixie.ReasonTimeout)
	case r.Canceled:
		return nixie.WithReason(nixie.Transient(err), nixie.ReasonCanceled)
	case r.Signal == 0 && slices.Contains(permanent, r.ExitCode):
		return nixie.WithReason(nixie.Permanent(err), nixie.ReasonCommandFailed)
	case r.Signal != 0, r.ExitCode == ExitKilled:
		return nixie.WithReason(nixie.Transient(err), nixie.ReasonResource)
	case r.ExitCode == ExitData:
		return nixie.WithReason(nixie.Permanent(err), nixie.ReasonValidation)
	case r.ExitCode == ExitUnavailable:
		return nixie.WithReason(nixie.Transient(err), nixie.ReasonDependency)
	case r.ExitCode == ExitTemporary:
		return nixie.WithReason(nixie.Transient(err), nixie.ReasonHandler)
	}
	return nixie.WithReason(unknown(err), nixie.ReasonCommandFailed)
}

// unknown gives err the class unknown.
func unknown(err error) error { return &nixie.Outcome{Class: nixie.ClassUnknown, Err: err} }

// evidence adds the exit code and the outputs to a failure.
func (r Result) evidence(err error) error {
	code := r.ExitCode
	return nixie.WithEvidence(err, nixie.Failure{ExitCode: &code, Attachments: r.attachments()})
}

func (r Result) attachments() []nixie.Attachment {
	var kept []nixie.Attachment
	for _, output := range [...]struct {
		name string
		tail Tail
	}{{"stderr", r.Stderr}, {"stdout", r.Stdout}} {
		data, dropped := output.tail.Data, output.tail.Dropped
		if over := len(data) - nixie.MaxAttachment; over > 0 {
			data, dropped = data[over:], dropped+int64(over)
		}
		if len(data) > 0 {
			kept = append(kept, nixie.Attachment{Name: output.name, Data: data, Truncated: dropped})
		}
	}
	return kept
}

// Judge returns the error of a command that may have written a verdict. A verdict, unless it is
// nil, wins over exit code and signal. After a timeout or the end of the context it does not count:
// the command may have written it before it was done. The caller keeps the steps of the verdict.
func (r Result) Judge(verdict *Verdict, permanent []int) error {
	if verdict == nil || r.TimedOut || r.Canceled {
		return r.Err(permanent)
	}
	if verdict.Outcome == nixie.Complete {
		return nil
	}
	text := verdict.Message
	if text == "" {
		text = verdict.Text
	}
	return verdict.mark(r.evidence(&ExitError{Result: r, Message: clip(text, maxLine)}))
}

// JudgeBroken returns the error of a command whose verdict [ParseVerdict] or [ReadVerdict] refused:
// a failure of reason validation, with the result as evidence.
func (r Result) JudgeBroken(broken error, permanent []int) error {
	if r.TimedOut || r.Canceled {
		return r.Err(permanent)
	}
	return nixie.WithReason(r.evidence(&VerdictError{broken, r.ExitCode}), nixie.ReasonValidation)
}

// VerdictError reports an unreadable verdict.
type VerdictError struct {
	Err      error
	ExitCode int // of the command that wrote it
}

func (e *VerdictError) Error() string { return "verdict of the command: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *VerdictError) Unwrap() error { return e.Err }
