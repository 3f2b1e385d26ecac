package office

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Stats counts letters. Dlq stats prints it. Open letters, those in review and quarantined ones
// wait for an operator; the fields from Redrivable to OldestAgeS, ByReason and ByQueue count only
// them.
type Stats struct {
	Open           int64            `json:"open"`
	Review         int64            `json:"review"`
	Quarantined    int64            `json:"quarantined"`
	Redriving      int64            `json:"redriving"`
	Resolved       int64            `json:"resolved"`
	Discarded      int64            `json:"discarded"`
	Redrivable     int64            `json:"redrivable"`
	NeedsReview    int64            `json:"needs_review"`
	OldestDiedAt   Timestamp        `json:"oldest_died_at"`
	OldestAgeS     *int64           `json:"oldest_age_s"`
	DeadPerHour    int64            `json:"dead_per_hour"`    // deaths of the last 60 minutes
	RetriedPerHour int64            `json:"retried_per_hour"` // retries decided in the last 60 minutes
	ByReason       map[string]int64 `json:"by_reason"`
	ByQueue        map[string]int64 `json:"by_queue"`
	Coverage       *store.Coverage  `json:"looked_at"` // null: all that may match were counted
}

// Waiting counts the letters that wait for an operator.
func (s Stats) Waiting() int64 { return s.Open + s.Review + s.Quarantined }

// Stats counts the letters that match. The two rates are of the filter's queues, or of all. When it
// covers only the newest letters, Coverage says how many; the counts of waiting letters cover as
// many of those.
func (o *Office) Stats(ctx context.Context, f nixie.Filter, scan store.Scan) (Stats, error) {
	var s Stats
	statuses, coverage, err := o.store.Count(ctx, f, store.Counting{By: []store.GroupBy{store.ByStatus}, Scan: scan, Described: true})
	if err != nil {
		return s, err
	}
	s.Coverage = partialCoverage(coverage)
	s.countStatuses(statuses[0])
	s.OldestAgeS = o.ageS(s.OldestDiedAt.Time)
	waiting := f
	if len(f.Statuses) == 0 {
		waiting.Statuses = waitingStatuses()
	}
	counts, _, err := o.store.Count(ctx, waiting,
		store.Counting{By: []store.GroupBy{store.ByRedrivable, store.ByReview, store.ByReason, store.ByQueue}, Scan: scan})
	if err != nil {
		return s, err
	}
	s.Redrivable, s.NeedsReview = store.Sizes(counts[0])["yes"], store.Sizes(counts[1])["yes"]
	s.ByReason, s.ByQueue = store.Sizes(counts[2]), store.Sizes(counts[3])
	queues, err := o.store.Queues(ctx, store.QueueQuery{})
	for _, q := range queues {
		if len(f.Queues) == 0 || slices.Contains(f.Queues, q.Name) {
			s.DeadPerHour += q.Died
			s.RetriedPerHour += q.Retried
		}
	}
	return s, err
}

func (s *Stats) countStatuses(groups []store.Group) {
	into := map[nixie.Status]*int64{
		nixie.StatusOpen: &s.Open, nixie.StatusReview: &s.Review, nixie.StatusQuarantined: &s.Quarantined,
		nixie.StatusRedriving: &s.Redriving, nixie.StatusResolved: &s.Resolved, nixie.StatusDiscarded: &s.Discarded,
	}
	for _, g := range groups {
		status := nixie.Status(g.Key)
		if n := into[status]; n != nil {
			*n = g.Count
		}
		if slices.Contains(waitingStatuses(), status) && (s.OldestDiedAt.IsZero() || g.FirstAt.Before(s.OldestDiedAt.Time)) {
			s.OldestDiedAt = Timestamp{g.FirstAt}
		}
	}
}

func sortCounts(list []Count) {
	slices.SortFunc(list, func(a, b Count) int { return cmp.Compare(a.Value, b.Value) })
}

// QueueView shows a queue. Queue list prints it.
type QueueView struct {
	Queue           string            `json:"queue"`
	Ready           int64             `json:"ready"`
	Blocked         int64             `json:"blocked"` // due, but another of its stream comes first
	Scheduled       int64             `json:"scheduled"`
	Leased          int64             `json:"leased"`
	Dead            int64             `json:"dead"`
	Succeeded       int64             `json:"succeeded"`
	Discarded       int64             `json:"discarded"`
	Canceled        int64             `json:"canceled"`
	Total           int64             `json:"total"`
	OldestAt        Timestamp         `json:"oldest_at"` // since when the longest ready message is due
	OldestAgeS      *int64            `json:"oldest_age_s"`
	BlockedAt       Timestamp         `json:"blocked_at"` // since when the longest blocked message is due
	BlockedAgeS     *int64            `json:"blocked_age_s"`
	NextAt          Timestamp         `json:"next_at"` // earliest time of a scheduled one
	DiedLastHour    int64             `json:"died_last_hour"`
	RetriedLastHour int64             `json:"retried_last_hour"`
	Paused          bool              `json:"paused"`
	PausedNote      string            `json:"paused_note"`
	Closed          bool              `json:"closed"` // takes no new messages
	ClosedNote      string            `json:"closed_note"`
	Lease           string            `json:"lease"`
	DedupeScope     nixie.DedupeScope `json:"dedupe_scope"`
	Order           nixie.Order       `json:"order"`
	DeadHead        nixie.DeadHead    `json:"dead_head"` // block or free; empty without a strict order

	Pruned           int64            `json:"pruned"`             // of total: removed by retention
	Purged           int64            `json:"purged"`             // of total: removed with their letters by an operator
	DiscardsByReason map[string]int64 `json:"discards_by_reason"` // discarded, by the reason of the last failure
	Retention        string           `json:"retention"`          // of ended messages without a letter
	LetterRetention  string           `json:"letter_retention"`   // of resolved and discarded letters
	AuditRetention   string           `json:"audit_retention"`
	Policy           []string         `json:"policy"` // for workers without a policy of their own, NAME=VALUE
}

// ViewQueue makes the view of a queue as of now.
func (o *Office) ViewQueue(q *store.QueueInfo) QueueView {
	v := QueueView{
		Queue: q.Name, Ready: q.Ready, Blocked: q.Blocked, Scheduled: q.Scheduled, Leased: q.Leased, Dead: q.Dead, Succeeded: q.Succeeded,
		Discarded: q.Discarded, Canceled: q.Canceled, Total: q.Total, OldestAt: Timestamp{q.OldestAt}, NextAt: Timestamp{q.NextAt},
		DiedLastHour: q.Died, RetriedLastHour: q.Retried, Paused: q.Settings.Paused, PausedNote: q.Settings.PausedNote,
		Closed: q.Settings.Closed, ClosedNote: q.Settings.ClosedNote,
		Lease: q.Settings.LeaseOrDefault().String(), DedupeScope: q.Settings.DedupeScope,
		Pruned: q.Pruned, Purged: q.Purged, DiscardsByReason: map[string]int64{}, Policy: policyLines(q.Settings),
	}
	for reason, n := range q.Discards {
		v.DiscardsByReason[string(reason)] = n
	}
	messages, letters, audit := q.Settings.Kept()
	v.Retention, v.LetterRetention, v.AuditRetention = retentionText(messages), retentionText(letters), retentionText(audit)
	if v.DedupeScope == "" {
		v.DedupeScope = nixie.DedupeActive
	}
	switch v.Order = q.Settings.Order; {
	case v.Order == "":
		v.Order = nixie.OrderNone
	case q.Settings.Blocks():
		v.DeadHead = nixie.DeadBlocks
	case v.Order == nixie.OrderStrict:
		v.DeadHead = nixie.DeadFrees
	}
	v.OldestAgeS = o.ageS(q.OldestAt)
	v.BlockedAt, v.BlockedAgeS = Timestamp{q.BlockedAt}, o.ageS(q.BlockedAt)
	return v
}

// byCount compares by count, largest first, then by name.
func byCount(a int64, aName string, b int64, bName string) int {
	if c := cmp.Compare(b, a); c != 0 {
		return c
	}
	return cmp.Compare(aName, bName)
}

// retentionText writes a retention in the form that queue set reads.
func retentionText(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == nixie.Forever:
		return "forever"
	case d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	}
	return d.String()
}
