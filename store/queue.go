package store

import (
	"time"

	"github.com/nixie-go/nixie"
)

// QueueInfo shows a queue to an operator. Total, Succeeded, Discarded and Canceled still count
// messages that were pruned or purged.
type QueueInfo struct {
	Name      string              `json:"queue"`
	Settings  nixie.QueueSettings `json:"settings"`
	Total     int64               `json:"total"`     // messages that were ever enqueued
	Ready     int64               `json:"ready"`     // queued, due and next in its stream
	Blocked   int64               `json:"blocked"`   // queued and due, but another of its stream comes first
	Scheduled int64               `json:"scheduled"` // queued and not due yet
	Leased    int64               `json:"leased"`
	Succeeded int64               `json:"succeeded"`
	Discarded int64               `json:"discarded"`
	Canceled  int64               `json:"canceled"`
	Dead      int64               `json:"dead"`                // messages whose letter is not resolved
	OldestAt  time.Time           `json:"oldest_at,omitzero"`  // since when the longest ready message is due
	BlockedAt time.Time           `json:"blocked_at,omitzero"` // since when the longest blocked message is due
	Retried   int64               `json:"retried_last_hour"`   // failures of the last 60 minutes that led to a retry
	Died      int64               `json:"died_last_hour"`      // deaths of the last 60 minutes
	NextAt    time.Time           `json:"next_at,omitzero"`    // earliest time of a scheduled one
	LastAt    time.Time           `json:"last_at,omitzero"`    // latest time of a scheduled one
	AskedAt   time.Time           `json:"asked_at,omitzero"`   // when a worker last claimed; see [AskedEvery]
	Due       DueCounts           `json:"due"`                 // scheduled ones by when they are due

	Pruned   int64                  `json:"pruned"`             // of Total: removed by retention
	Purged   int64                  `json:"purged"`             // of Total: removed with their letters by an operator
	Discards map[nixie.Reason]int64 `json:"discards,omitempty"` // Discarded by the reason of the last failure
}

// AskedEvery is the time in which a store notes once that workers claim from a queue, so that the
// note costs a claim nothing. So AskedAt may be earlier than the last claim by as much. A claim of
// a paused queue is not noted.
const AskedEvery = 5 * time.Minute

// NeverAsked reports whether messages wait that no worker has ever claimed from: it runs elsewhere,
// or the name of the queue is misspelled. A queue of an earlier build, which noted no claims, was
// asked if a message succeeded or is leased.
func (q QueueInfo) NeverAsked() bool {
	return q.AskedAt.IsZero() && q.Unfinished() > 0 && q.Leased == 0 && q.Succeeded == 0 && !q.Settings.Paused
}

// Unfinished counts the messages that are queued or leased.
func (q QueueInfo) Unfinished() int64 { return q.Ready + q.Blocked + q.Scheduled + q.Leased }

// DueCounts counts scheduled messages by the time until they are due: one number for each band of
// [DueBands], and the last for messages beyond all bands.
type DueCounts [8]int64

// DueBands returns the upper bounds of the bands of [DueCounts].
func DueBands() [len(DueCounts{}) - 1]time.Duration {
	return [...]time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}
}

// DueBand returns the index of the band for a message that is due after d.
func DueBand(d time.Duration) int {
	bands := DueBands()
	for i, end := range bands {
		if d <= end {
			return i
		}
	}
	return len(bands)
}
