package nixie

import "time"

// Failure records one attempt that failed, or one claim whose holder vanished.
type Failure struct {
	Generation  int           `json:"generation"`
	Attempt     int           `json:"attempt"` // within the generation, the first is 1
	StartedAt   time.Time     `json:"started_at"`
	FailedAt    time.Time     `json:"failed_at"`
	Took        time.Duration `json:"-"` // printed as duration_ms
	Class       Class         `json:"class"`
	Reason      Reason        `json:"reason"`
	Type        string        `json:"type"`            // qualified type of the error
	Text        string        `json:"message"`         // at most [MaxFailureText] bytes
	Context     []string      `json:"context"`         // lines that say what was being done, outermost first
	Stack       string        `json:"stack"`           // at most [MaxStack] bytes
	Step        string        `json:"step"`            // name of the step that failed
	Group       string        `json:"group,omitempty"` // its name by hand, see [WithGroup]; empty: text, type and stack make it
	Worker      string        `json:"worker"`
	Node        string        `json:"node"`
	ExitCode    *int          `json:"exit_code"`    // of a command; nil when there was none
	LogLocation string        `json:"log_location"` // where more can be read
	Steps       []string      `json:"steps"`        // steps done before it failed
	Decision    Verb          `json:"decision"`
	NextAt      time.Time     `json:"next_at,omitzero"` // of a retry
	Attachments []Attachment  `json:"attachments,omitempty"`

	Err error `json:"-"` // the error itself, for matchers; never stored
}

// Attachment is data kept with a failure, for example the end of a log or a diff.
type Attachment struct {
	Name      string `json:"name"`
	Data      []byte `json:"data"`                // at most [MaxAttachment] bytes
	Truncated int64  `json:"truncated,omitempty"` // bytes that did not fit
}

// Class says whether another attempt may help.
type Class string

// The classes.
const (
	ClassTransient Class = "transient" // another attempt may succeed
	ClassPermanent Class = "permanent" // no attempt will succeed
	ClassUnknown   Class = "unknown"   // policy cannot tell, and retries it like a transient failure
)

// Classes lists every class once.
func Classes() []Class { return []Class{ClassTransient, ClassPermanent, ClassUnknown} }

// Reason names the kind of a failure, from a closed list.
type Reason string

// The reasons.
const (
	ReasonUnknown              Reason = "unknown"
	ReasonTransportUnavailable Reason = "transport-unavailable"
	ReasonHandler              Reason = "handler"
	ReasonValidation           Reason = "validation"
	ReasonTimeout              Reason = "timeout"
	ReasonSerialization        Reason = "serialization"
	ReasonDependency           Reason = "dependency"
	ReasonPoison               Reason = "poison"
	ReasonCommandFailed        Reason = "command-failed"
	ReasonWorktree             Reason = "worktree"
	ReasonMergeConflict        Reason = "merge-conflict"
	ReasonNoCommit             Reason = "no-commit"
	ReasonResource             Reason = "resource"
	ReasonThrottled            Reason = "throttled"
	ReasonAuth                 Reason = "auth"
	ReasonPolicy               Reason = "policy"
	ReasonLeaseExpired         Reason = "lease-expired"
	ReasonPanic                Reason = "panic"
	ReasonMaxAge               Reason = "max-age"
	ReasonCanceled             Reason = "canceled"
	ReasonUnknownType          Reason = "unknown-type"
)

// Reasons lists every reason once.
func Reasons() []Reason {
	return []Reason{
		ReasonUnknown, ReasonTransportUnavailable, ReasonHandler, ReasonValidation, ReasonTimeout,
		ReasonSerialization, ReasonDependency, ReasonPoison, ReasonCommandFailed, ReasonWorktree,
		ReasonMergeConflict, ReasonNoCommit, ReasonResource, ReasonThrottled, ReasonAuth, ReasonPolicy,
		ReasonLeaseExpired, ReasonPanic, ReasonMaxAge, ReasonCanceled, ReasonUnknownType,
	}
}
