package nixie

import (
	"cmp"
	"time"
)

// QueueSettings are kept by the store with the queue. Zero fields mean the
// defaults, which nixie policy show prints.
type QueueSettings struct {
	Paused      bool          `json:"paused"`
	PausedNote  string        `json:"paused_note,omitempty"`  // why and by whom
	Lease       time.Duration `json:"lease,omitempty"`        // 0 is [DefaultLease]
	DedupeScope DedupeScope   `json:"dedupe_scope,omitempty"` // empty is [DedupeActive]

	// How long is kept what has ended, at least; [Forever] is for ever.
	Retention       time.Duration `json:"retention,omitempty"`        // ended messages without a letter; 0 is [DefaultRetention]
	LetterRetention time.Duration `json:"letter_retention,omitempty"` // resolved and discarded letters with their messages; 0 is for ever
	AuditRetention  time.Duration `json:"audit_retention,omitempty"`  // entries of the audit; 0 is [DefaultAuditRetention]
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
	if err := q.checkRetentions(); err != nil {
		return err
	}
	switch q.DedupeScope {
	case "", DedupeActive, DedupeUnresolved, DedupeEver:
		return nil
	}
	return Errorf(CodeInvalid, "dedupe scope is %q: give active, unresolved or ever", q.DedupeScope)
}

func (q QueueSettings) checkRetentions() error {
	for _, r := range [...]struct {
		name string
		set  time.Duration
	}{{"retention", q.Retention}, {"letter retention", q.LetterRetention}, {"audit retention", q.AuditRetention}} {
		if r.set != 0 && r.set != Forever && r.set < MinRetention {
			return Errorf(CodeInvalid, "%s is %s: give at least %s, 0 for the default, or −1 for ever", r.name, r.set, MinRetention)
		}
	}
	return nil
}

// Kept is how long the queue keeps what has ended: messages without a letter,
// resolved and discarded letters, and the audit. [Forever] is for ever.
func (q QueueSettings) Kept() (messages, letters, audit time.Duration) {
	return cmp.Or(q.Retention, DefaultRetention), cmp.Or(q.LetterRetention, Forever), cmp.Or(q.AuditRetention, DefaultAuditRetention)
}

// Defaults and bounds of a queue.
const (
	DefaultLease = 30 * time.Second
	Heartbeat    = 10 * time.Second // of a lease of 30 s: a third

	DefaultRetention      = 7 * 24 * time.Hour
	DefaultAuditRetention = 90 * 24 * time.Hour
	MinRetention          = time.Minute

	Forever time.Duration = -1 // a retention that never removes anything
)

// QueueInfo is a queue as an operator sees it. What has ended is counted for
// ever: Total, Succeeded, Discarded and Canceled go on counting messages that
// were pruned or purged.
type QueueInfo struct {
	Name      string        `json:"queue"`
	Settings  QueueSettings `json:"settings"`
	Total     int64         `json:"total"`     // messages that were ever enqueued
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

	Pruned   int64            `json:"pruned"`             // of Total: removed by retention
	Purged   int64            `json:"purged"`             // of Total: removed with their letters by an operator
	Discards map[Reason]int64 `json:"discards,omitempty"` // Discarded by the reason of the last failure
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
