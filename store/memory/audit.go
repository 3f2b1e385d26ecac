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
func (q *queue) record(now time.Time, actor string, on store.Event, subject nixie.ID, reason string) {
	q.link(store.AuditEntry{At: now, Actor: actor, Event: on, Subject: subject, Reason: reason})
}

// resolved adds a link about what an operator did to a letter.
func (q *queue) resolved(now time.Time, r *store.Resolution) {
	q.link(store.AuditEntry{At: now, Actor: r.Actor, Event: r.Event, Subject: r.Letter, Reason: r.Reason, Operation: r.Operation})
}

func (q *queue) link(e store.AuditEntry) {
	e.Queue, e.Number = q.name, 1
	if n := len(q.chain); n > 0 {
		e.Number, e.Before = q.chain[n-1].Number+1, q.chain[n-1].Hash
	}
	e.Hash = e.Sum(e.Before)
	q.chain = append(q.chain, e)
}

// chain lists the audit of a queue in the order of its chain.
func (s *Store) chain(ctx context.Context, name string, page store.Page) ([]store.AuditEntry, string, error) {
	limit, after := page.Rows(), int64(0)
	if page.Cursor != "" {
		var err error
		if after, err = strconv.ParseInt(page.Cursor, 10, 64); err != nil || after < 0 {
			return nil, "", store.BadCursor(page.Cursor)
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
	rest := q.chain
	for len(rest) > 0 && rest[0].Number <= after {
		rest = rest[1:]
	}
	if len(rest) <= limit {
		return slices.Clone(rest), "", nil
	}
	return slices.Clone(rest[:limit]), strconv.FormatInt(rest[limit-1].Number, 10), nil
}
