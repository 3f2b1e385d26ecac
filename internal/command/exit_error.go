package command

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/policy"
)

const maxLine = 1 << 10 // bytes of the line of the outputs in an error's text

// ExitError reports a command that failed. Its text is the line of its outputs that says why,
// see [policy.WhyOf], or the exit status or signal if there is none.
type ExitError struct {
	Result  Result
	Message string // of the command's verdict, or the line of its outputs that says why; may be empty
}

func (e *ExitError) Error() string {
	line := e.Message
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
	case line == "" && r.Stays:
		return "the worker did not say why"
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

// why returns the line of the outputs that says why the command failed, or "". It reads what the
// failure keeps of them.
func (r Result) why() string {
	stderr, _ := r.Stderr.Kept(nixie.MaxAttachment)
	stdout, _ := r.Stdout.Kept(nixie.MaxAttachment)
	return clip(policy.WhyOf(stderr, stdout), maxLine)
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
//	a signal                 as [policy.OfSignal] says
//	any other code           as [policy.OfCommand] says
func (r Result) Err(permanent []int) error {
	if r.ExitCode == 0 && !r.TimedOut && !r.Canceled {
		return nil
	}
	why := r.why()
	class, reason := policy.OfCommand(r.Program, r.ExitCode, why)
	switch {
	case r.TimedOut:
		class, reason = nixie.ClassTransient, nixie.ReasonTimeout
	case r.Canceled:
		class, reason = nixie.ClassTransient, nixie.ReasonCanceled
	case r.Signal != 0:
		class, reason = policy.OfSignal(int(r.Signal))
	case slices.Contains(permanent, r.ExitCode):
		class, reason = nixie.ClassPermanent, nixie.ReasonCommandFailed
	}
	return &nixie.Outcome{Class: class, Reason: reason, Err: r.evidence(&ExitError{Result: r, Message: why}, nixie.Failure{})}
}

// unknown gives err the class unknown.
func unknown(err error) error { return &nixie.Outcome{Class: nixie.ClassUnknown, Err: err} }

// Fail returns why as the failure of a command, of which the result is the evidence.
func (r Result) Fail(why error, reason nixie.Reason) error {
	return nixie.WithReason(r.evidence(why, nixie.Failure{}), reason)
}

// evidence adds the exit code and the outputs to the facts about a failure.
func (r Result) evidence(err error, facts nixie.Failure) error {
	if facts.Attachments = r.attachments(); !r.Stays {
		code := r.ExitCode
		facts.ExitCode = &code
	}
	return nixie.WithEvidence(err, facts)
}

func (r Result) attachments() []nixie.Attachment {
	var kept []nixie.Attachment
	for _, output := range [...]struct {
		name string
		tail Tail
	}{{"stderr", r.Stderr}, {"stdout", r.Stdout}} {
		data, dropped := output.tail.Kept(nixie.MaxAttachment)
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
	text := cmp.Or(verdict.Message, verdict.Text)
	if text == "" {
		text = r.why()
	}
	facts := nixie.Failure{Stack: verdict.Stack, Context: verdict.Context}
	return verdict.mark(r.evidence(&ExitError{Result: r, Message: clip(text, maxLine)}, facts))
}

// JudgeBroken returns the error of a command whose verdict [ParseVerdict] or [ReadVerdict] refused:
// a failure of reason validation, with the result as evidence. An exit that is transient by itself,
// as 75, stays what it is, with a note: a command that is cut short also cuts its verdict.
func (r Result) JudgeBroken(broken error, permanent []int) error {
	broken = &VerdictError{broken, r.ExitCode}
	if err := r.Err(permanent); err != nil && nixie.OutcomeOf(err).Class == nixie.ClassTransient {
		evidence := *nixie.OutcomeOf(err).Evidence
		evidence.Context = []string{broken.Error()}
		return nixie.WithEvidence(err, evidence)
	}
	return r.Fail(broken, nixie.ReasonValidation)
}

// VerdictError reports an unreadable verdict.
type VerdictError struct {
	Err      error
	ExitCode int // of the command that wrote it
}

func (e *VerdictError) Error() string { return "verdict of the command: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *VerdictError) Unwrap() error { return e.Err }
