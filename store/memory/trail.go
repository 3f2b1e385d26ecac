package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie/store"
)

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
		at, err := parseTrail(page.Cursor)
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

// parseTrail reads a cursor as the entry that it stands for.
func parseTrail(cursor string) (e store.AuditEntry, err error) {
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
