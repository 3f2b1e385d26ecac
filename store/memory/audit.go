package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// record adds an entry to the audit chain of the queue.
func (q *queue) record(now time.Time, actor string, on store.Event, subject nixie.ID, reason string) {
	q.link(store.AuditEntry{At: now, Actor: actor, Event: on, Subject: subject, Reason: reason})
}

// resolved adds an entry for a resolution.
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

// Audit lists the entries of all queues that match.
func (s *Store) Audit(ctx context.Context, filter store.AuditFilter, page store.Page) ([]store.AuditEntry, string, error) {
	if filter.Chain != "" {
		return s.chain(ctx, filter.Chain, page)
	}
	if _, err := s.enter(ctx); err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	var found []store.AuditEntry
	for _, q := range s.queues {
		for i := range q.chain {
			if filter.Match(&q.chain[i]) {
				found = append(found, q.chain[i])
			}
		}
	}
	order := func(a, b store.AuditEntry) int {
		c := cmp.Or(a.At.Compare(b.At), strings.Compare(a.Queue, b.Queue), cmp.Compare(a.Number, b.Number))
		if filter.Oldest {
			return c
		}
		return -c
	}
	slices.SortFunc(found, order)
	if page.Cursor != "" {
		at, err := parseAuditCursor(page.Cursor)
		if err != nil {
			return nil, "", err
		}
		found = slices.DeleteFunc(found, func(e store.AuditEntry) bool { return order(e, at) <= 0 })
	}
	limit := page.Rows()
	if len(found) <= limit {
		return found, "", nil
	}
	last := &found[limit-1]
	return found[:limit], fmt.Sprintf("%d.%d.%s", last.At.UnixNano(), last.Number, last.Queue), nil
}

// parseAuditCursor returns the key of the last entry of the page before.
func parseAuditCursor(cursor string) (e store.AuditEntry, err error) {
	parts := strings.SplitN(cursor, ".", 3)
	var at int64
	if len(parts) < 3 {
		return e, store.BadCursor(cursor)
	}
	if _, err := fmt.Sscan(parts[0]+" "+parts[1], &at, &e.Number); err != nil {
		return e, store.BadCursor(cursor)
	}
	e.At, e.Queue = time.Unix(0, at), parts[2]
	return e, nil
}
