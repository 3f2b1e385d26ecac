package store

import (
	"time"

	"github.com/nixie-go/nixie"
)

// Group is a set of letters with something in common.
type Group struct {
	Key      string       `json:"key"` // the value that they share
	Label    string       `json:"label,omitempty"`
	Reason   nixie.Reason `json:"reason,omitempty"`
	Count    int64        `json:"count"`
	Leased   int64        `json:"leased,omitempty"`  // of messages that still retry: their next attempt runs
	FirstAt  time.Time    `json:"first_at,omitzero"` // earliest death
	LastAt   time.Time    `json:"last_at,omitzero"`  // latest death
	Examples []nixie.ID   `json:"examples,omitempty"`
}

// GroupBy names what letters can be grouped by.
type GroupBy string

// The groupings.
const (
	ByFingerprint GroupBy = "fingerprint" // label: signature
	ByReason      GroupBy = "reason"
	ByClass       GroupBy = "class"
	ByType        GroupBy = "type"
	ByQueue       GroupBy = "queue"
	ByStatus      GroupBy = "status"
	ByHour        GroupBy = "hour" // of death, UTC, as 2006-01-02T15
	ByRedrivable  GroupBy = "redrivable"
	ByReview      GroupBy = "needs_review"
	ByAttempts    GroupBy = "attempts" // in its last life
)

// RetryingBy lists what messages that still retry can be counted by.
func RetryingBy() []GroupBy { return []GroupBy{ByAttempts, ByReason, ByType, ByQueue} }
