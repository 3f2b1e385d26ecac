package memory

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// record adds a link to the chain of the queue.
func (q *queue) record(now time.Time, actor string, on nixie.Event, subject nixie.ID, reason string) {
	e := store.AuditEntry{
		Queue: q.name, Number: int64(len(q.chain) + 1), At: now,
		Actor: actor, Event: on, Subject: subject, Reason: reason,
	}
	var before nixie.Hash
	if len(q.chain) > 0 {
		before = q.chain[len(q.chain)-1].Hash
	}
	e.Hash = e.Sum(before)
	q.chain = append(q.chain, e)
}

// Entries lists the audit of a queue in the order of its chain.
func (s *Store) Entries(ctx context.Context, name string, page store.Page) ([]store.AuditEntry, string, error) {
	limit, from := pageLimit(page), 0
	if page.Cursor != "" {
		var err error
		if from, err = strconv.Atoi(page.Cursor); err != nil || from < 0 {
			return nil, "", badCursor(page.Cursor)
		}
	}
	if _, err := s.enter(ctx); err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	q := s.queues[name]
	if q == nil {
		return nil, "", nil
	}
	from = min(from, len(q.chain))
	end := min(from+limit, len(q.chain))
	next := ""
	if end < len(q.chain) {
		next = strconv.Itoa(end)
	}
	return slices.Clone(q.chain[from:end]), next, nil
}
