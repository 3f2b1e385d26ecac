package office

import (
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/policy"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Words of the packages below that questions and answers of an office have. A face, such as package
// console, names them here and imports office alone.
type (
	Page        = store.Page
	Coverage    = store.Coverage
	QueueInfo   = store.QueueInfo
	Operation   = store.Operation
	AuditFilter = store.AuditFilter
	FilterError = filter.Error
	PolicyRow   = policy.Row
	Event       = store.Event
)

// Values of these words.
const (
	ByFingerprint = store.ByFingerprint
	ByReason      = store.ByReason
	ByType        = store.ByType
	ByQueue       = store.ByQueue
	ByStatus      = store.ByStatus
	ByHour        = store.ByHour
	ByQueueHour   = store.ByQueueHour

	HourForm = store.HourForm

	OnRedrive   = store.OnRedrive
	OnDiscard   = store.OnDiscard
	OnHold      = store.OnHold
	OnUnhold    = store.OnUnhold
	OnRequalify = store.OnRequalify
	OnRestore   = store.OnRestore
	OnNote      = store.OnNote

	Cancel        = store.Cancel
	HoldMessage   = store.Hold
	RetryNow      = store.RetryNow
	ResetAttempts = store.ResetAttempts
	Reschedule    = store.Reschedule
	Move          = store.Move
	MayPass       = store.MayPass

	System = store.System

	StreamBlocked = store.StreamBlocked
	StreamWaiting = store.StreamWaiting
)

// ParseFilter reads the text of a filter; see [filter.Parse]. Errors are a [FilterError].
func ParseFilter(text string, now time.Time) (nixie.Filter, error) { return filter.Parse(text, now) }

// FilterText writes a filter so that ParseFilter reads it again.
func FilterText(f nixie.Filter) string { return filter.Text(f) }

// ParseMoment reads a day in UTC, a moment or a time before now, such as now-2h; "" is zero. The
// error goes on after the name of what was read.
func ParseMoment(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	f, err := filter.Parse("died:>="+strings.NewReplacer(" ", "?", ",", "?", `"`, "?").Replace(text), now)
	if err != nil {
		return time.Time{}, nixie.Errorf(nixie.CodeInvalid, "%q: give 2026-01-31, 2026-01-31T10:00:00Z or now-2h", text)
	}
	return f.Died.After, nil
}

// Events lists what can be done to letters, messages and queues.
func Events() []Event { return store.Events() }

// May reports whether the status of a letter allows an event of an operator.
func May(status nixie.Status, on store.Event) bool { return lifecycle.May(status, on) }
