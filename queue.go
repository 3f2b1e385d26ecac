package nixie

import "time"

// QueueSettings are kept by the store with the queue. Zero fields mean the
// defaults, which nixie policy show prints.
type QueueSettings struct {
	Paused      bool          `json:"paused"`
	PausedNote  string        `json:"paused_note,omitempty"`  // why and by whom
	Lease       time.Duration `json:"lease,omitempty"`        // 0 is [DefaultLease]
	DedupeScope DedupeScope   `json:"dedupe_scope,omitempty"` // empty is [DedupeActive]
	Closed      bool          `json:"closed,omitempty"`       // takes no new messages; those that are there go on
	ClosedNote  string        `json:"closed_note,omitempty"`  // why and by whom
}

// LeaseOrDefault is how long a claim holds when the receiver does not say.
func (q QueueSettings) LeaseOrDefault() time.Duration {
	if q.Lease == 0 {
		return DefaultLease
	}
	return q.Lease
}

// Check says what is wrong with settings.
func (q QueueSettings) Check() error {
	if q.Lease != 0 && (q.Lease < MinLease || q.Lease > MaxLease) {
		return Errorf(CodeInvalid, "lease is %s: give one from %s to %s, or 0 for %s", q.Lease, MinLease, MaxLease, DefaultLease)
	}
	switch q.DedupeScope {
	case "", DedupeActive, DedupeUnresolved, DedupeEver:
		return nil
	}
	return Errorf(CodeInvalid, "dedupe scope is %q: give active, unresolved or ever", q.DedupeScope)
}

// Defaults of a queue.
const (
	DefaultLease = 30 * time.Second
	Heartbeat    = 10 * time.Second // of a lease of 30 s: a third
)

// QueueInfo is a queue as an operator sees it.
type QueueInfo struct {
	Name      string        `json:"queue"`
	Settings  QueueSettings `json:"settings"`
	Total     int64         `json:"total"`     // messages that the store knows, in any state
	Ready     int64         `json:"ready"`     // queued and due
	Scheduled int64         `json:"scheduled"` // queued and not due yet
	Leased    int64         `json:"leased"`
	Succeeded int64         `json:"succeeded"`
	Discarded int64         `json:"discarded"`
	Canceled  int64         `json:"canceled"`
	Dead      int64         `json:"dead"`               // messages whose letter is not resolved
	OldestAt  time.Time     `json:"oldest_at,omitzero"` // enqueue time of the oldest ready message
	Retried   int64         `json:"retried_last_hour"`  // failures of the last 60 minutes that led to a retry
	Died      int64         `json:"died_last_hour"`     // deaths of the last 60 minutes
	NextAt    time.Time     `json:"next_at,omitzero"`   // earliest time of a scheduled one
	LastAt    time.Time     `json:"last_at,omitzero"`   // latest time of a scheduled one
	Due       DueCounts     `json:"due"`                // scheduled ones by when they are due
}

// Unfinished is how many messages are still on their way.
func (q QueueInfo) Unfinished() int64 { return q.Ready + q.Scheduled + q.Leased }

// Group is a set of letters with something in common.
type Group struct {
	Key      string    `json:"key"` // the value that they share
	Label    string    `json:"label,omitempty"`
	Reason   Reason    `json:"reason,omitempty"`
	Count    int64     `json:"count"`
	FirstAt  time.Time `json:"first_at,omitzero"` // earliest death
	LastAt   time.Time `json:"last_at,omitzero"`  // latest death
	Examples []ID      `json:"examples,omitempty"`
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
)
