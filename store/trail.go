package store

import (
	"encoding/hex"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// Replaced is what the audit says of a message that a newer one with its dedupe key took
// the place of, as [OnAmend] of nobody: the hash of the body that it had.
func Replaced(body nixie.Hash) string {
	return "replaced by a newer one with its dedupe key, its body was sha256 " + hex.EncodeToString(body[:])
}

// AuditFilter chooses entries of the audit, of all queues together. All parts
// that are set have to hold; the zero filter matches all.
type AuditFilter struct {
	Queues []string  // exact
	Since  time.Time // not before
	Until  time.Time // before
	Actor  string    // exact
	Events []Event

	Subjects []nixie.ID // messages and letters that it was done to
	Oldest   bool       // oldest first, else newest first

	// Chain asks for the audit of one queue in the order of its chain, from the oldest
	// entry that was not pruned; nothing else is looked at then.
	Chain string
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
