package store

import (
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// AuditFilter chooses entries of the audit, of all queues together. All parts
// that are set have to hold; the zero filter matches all.
type AuditFilter struct {
	Queues []string  // exact
	Since  time.Time // not before
	Until  time.Time // before
	Actor  string    // exact
	Events []nixie.Event

	Subjects []nixie.ID // messages and letters that it was done to
	Oldest   bool       // oldest first, else newest first
}

// Match reports whether the filter matches an entry: it is the meaning of an
// AuditFilter.
func (f *AuditFilter) Match(e *AuditEntry) bool {
	return (len(f.Queues) == 0 || slices.Contains(f.Queues, e.Queue)) &&
		nixie.Times{After: f.Since, Before: f.Until}.Holds(e.At) &&
		(f.Actor == "" || f.Actor == e.Actor) &&
		(len(f.Events) == 0 || slices.Contains(f.Events, e.Event)) &&
		(len(f.Subjects) == 0 || slices.Contains(f.Subjects, e.Subject))
}
