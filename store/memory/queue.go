package memory

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// counted is the time for which an overview counts retries and deaths.
const counted = time.Hour

type queue struct {
	name     string
	settings nixie.QueueSettings
	all      []*message          // by position
	live     []*message          // queued or leased; ended ones leave at the next claim
	keys     map[string]*message // dedupe key to its holder
	retries  []retry             // of the last hour
	asked    time.Time           // when a claim was last noted
	top      map[string]int64    // by stream: the highest rank that was delivered
	chain    []store.AuditEntry  // the audit, from the oldest entry that is left

	gone           map[nixie.State]int64 // numbers of removed messages by their last state
	pruned, purged int64                 // numbers of messages removed by retention and by operators
	discards       map[nixie.Reason]int64
}

// retry is a failure that led to a retry.
type retry struct {
	at time.Time
	of *message
}

func (a *shared) queue(name string) *queue {
	q := a.queues[name]
	if q == nil {
		q = &queue{
			name: name, keys: map[string]*message{}, top: map[string]int64{},
			gone: map[nixie.State]int64{}, discards: map[nixie.Reason]int64{},
		}
		a.queues[name] = q
	}
	return q
}

// release frees the dedupe key of a message if the scope says so. Ended is false for a message that
// died and whose letter is unresolved.
func (q *queue) release(m *message, ended bool) {
	scope := q.settings.DedupeScope
	if !m.holdsKey || scope == nixie.DedupeEver || scope == nixie.DedupeUnresolved && !ended {
		return
	}
	q.drop(m)
}

// claimed frees the dedupe key of a message that was claimed, if the scope says so.
func (q *queue) claimed(m *message) {
	if lifecycle.FreesClaimed(q.settings.DedupeScope) && m.holdsKey {
		m.keyless = true
		q.drop(m)
	}
}

// drop takes the dedupe key away from the message that holds it.
func (q *queue) drop(m *message) {
	delete(q.keys, m.DedupeKey)
	m.holdsKey = false
}

// free returns an error if another message holds the dedupe key.
func (q *queue) free(m *message) error {
	if holder := q.keys[m.DedupeKey]; m.DedupeKey != "" && holder != nil && holder != m {
		return &nixie.DuplicateError{Key: m.DedupeKey, Existing: holder.ID}
	}
	return nil
}

// take gives a message its dedupe key, which is free.
func (q *queue) take(m *message) {
	if m.DedupeKey != "" {
		q.keys[m.DedupeKey], m.holdsKey = m, true
	}
}

// retried counts a failure that led to a retry.
func (q *queue) retried(m *message, now time.Time) {
	for len(q.retries) > 0 && !q.retries[0].at.After(now.Add(-counted)) {
		q.retries = q.retries[1:]
	}
	q.retries = append(q.retries, retry{now, m})
}

// Queues counts every queue by scanning its messages.
func (s *Store) Queues(ctx context.Context, query store.QueueQuery) ([]store.QueueInfo, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	infos := []store.QueueInfo{}
	for _, q := range s.queues {
		switch {
		case query.Names != nil && !slices.Contains(query.Names, q.name):
		case query.Settings:
			infos = append(infos, store.QueueInfo{Name: q.name, Settings: q.settings})
		default:
			infos = append(infos, q.info(now))
		}
	}
	slices.SortFunc(infos, func(a, b store.QueueInfo) int { return strings.Compare(a.Name, b.Name) })
	return infos, nil
}

func (q *queue) info(now time.Time) store.QueueInfo {
	since := now.Add(-counted)
	info := store.QueueInfo{
		Name: q.name, Settings: q.settings, Pruned: q.pruned, Purged: q.purged, Discards: maps.Clone(q.discards), AskedAt: q.asked,
		Total: q.pruned + q.purged, Succeeded: q.gone[nixie.Succeeded], Discarded: q.gone[nixie.Discarded],
		Canceled: q.gone[nixie.Canceled],
	}
	for _, m := range q.all {
		q.count(&info, m, now)
		if m.letter != nil && m.letter.DiedAt.After(since) {
			info.Died++
		}
	}
	for _, r := range q.retries {
		if r.at.After(since) {
			info.Retried++
		}
	}
	return info
}

// count adds one message to the numbers of its queue.
func (q *queue) count(info *store.QueueInfo, m *message, now time.Time) {
	info.Total++
	switch m.State {
	case nixie.Queued:
		if m.due.After(now) {
			info.Scheduled++
			info.Due[store.DueBand(m.due.Sub(now))]++
			if m.due.After(info.LastAt) {
				info.LastAt = m.due.UTC()
			}
			if info.NextAt.IsZero() || m.due.Before(info.NextAt) {
				info.NextAt = m.due
			}
			return
		}
		if m.ordered {
			if next, _ := q.next(m.Stream, now); next != m {
				info.Blocked++
				if info.BlockedAt.IsZero() || m.due.Before(info.BlockedAt) {
					info.BlockedAt = m.due
				}
				return
			}
		}
		info.Ready++
		if info.OldestAt.IsZero() || m.due.Before(info.OldestAt) {
			info.OldestAt = m.due
		}
	case nixie.Leased:
		info.Leased++
	case nixie.Succeeded:
		info.Succeeded++
	case nixie.Discarded:
		info.Discarded++
	case nixie.Canceled:
		info.Canceled++
	case nixie.Dead:
		if m.letter.Status.Unresolved() {
			info.Dead++
		}
	}
}
