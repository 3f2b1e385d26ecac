package command

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
)

// Exit codes with a meaning, after sysexits.h; 137 is what a shell says of a
// program that was killed.
const (
	ExitData        = 65  // the item is wrong: permanent, reason validation
	ExitUnavailable = 69  // something it needs is down: transient, reason dependency
	ExitTemporary   = 75  // try again: transient, reason handler
	ExitKilled      = 137 // killed, for want of memory most of the time: transient, reason resource
)

const maxLine = 1 << 10 // bytes of the line of stderr in an error's text

// ExitError is a command that did not succeed. Its text is the last non-empty
// line of stderr, or how the command ended if there is none.
type ExitError struct {
	Result  Result
	Message string // by which the command's own verdict replaces the line; may be empty
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

// lastLine returns the last line that has more than blanks, as valid UTF-8.
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

// Err is nil after exit code 0, else an *[ExitError] with the class and reason
// that the exit code stands for, and the evidence for the failure record: exit
// code and the ends of both outputs as attachments. A code in permanent is a
// permanent failure of reason command-failed; any other without a meaning is
// one whose class nobody knows.
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

// unknown marks err as one of which nobody knows whether it will go away.
func unknown(err error) error { return &nixie.Outcome{Class: nixie.ClassUnknown, Err: err} }

// evidence adds what a failure record keeps of the result.
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

// Judge is Err for a command that may have written a verdict. A verdict beats
// exit code and signal; nil is none. After a timeout or the end of the context
// it does not count, as the command may have written it before it was done.
// The steps of the verdict are the caller's to keep.
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

// JudgeBroken is Judge for a verdict that [ParseVerdict] or [ReadVerdict] did
// not accept: a failure of reason validation that keeps the result as evidence.
func (r Result) JudgeBroken(broken error, permanent []int) error {
	if r.TimedOut || r.Canceled {
		return r.Err(permanent)
	}
	return nixie.WithReason(r.evidence(&VerdictError{broken, r.ExitCode}), nixie.ReasonValidation)
}

// VerdictError is a verdict that cannot be read.
type VerdictError struct {
	Err      error
	ExitCode int // of the command that wrote it
}

func (e *VerdictError) Error() string { return "verdict of the command: " + e.Err.Error() }

// Unwrap returns what is wrong with it.
func (e *VerdictError) Unwrap() error { return e.Err }
