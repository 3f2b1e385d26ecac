package postgres

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// statuses are the words of the log of jobs for the states of what ended.
var statuses = map[nixie.State]string{
	nixie.Succeeded: "successful", nixie.Discarded: "deleted", nixie.Canceled: "canceled", nixie.Dead: "exception",
}

// ended implements Ended of store.Features, from the log of jobs. Purged letters are not in it.
func (s *Store) ended(ctx context.Context, q store.EndedQuery, page store.Page) ([]store.Ended, string, error) {
	if err := q.Check(); err != nil {
		return nil, "", err
	}
	w := &where{terms: []string{"pos is not null"}}
	oneOf(w, "entrypoint", q.Queues)
	if len(q.States) > 0 { // as constants: PostgreSQL leaves out the parts of the view that cannot have them
		words := make([]string, len(q.States))
		for i, state := range q.States {
			words[i] = "'" + statuses[state] + "'"
		}
		w.add("status in (" + strings.Join(words, ", ") + ")")
	}
	if !q.At.After.IsZero() {
		w.add("created >= ?", q.At.After)
	}
	if !q.At.Before.IsZero() {
		w.add("created < ?", q.At.Before)
	}
	if page.Cursor != "" {
		at, pos, err := store.ParseEndCursor(page.Cursor)
		if err != nil {
			return nil, "", err
		}
		w.add("created <= ?", time.UnixMicro(at)) // for the index
		w.add("(created, pos) < (?, ?)", time.UnixMicro(at), pos)
	}
	limit := page.Rows()
	var list []store.Ended
	var positions []int64
	err := s.view(ctx, func(t *tx) error {
		t.read(func(r row) error {
			var e store.Ended
			var pos int64
			var status string
			if err := r.Scan((*idColumn)(&e.Message), &e.Key, &e.Queue, &status, &e.Type, &e.Text, &e.At, &pos); err != nil {
				return err
			}
			for state, word := range statuses {
				if word == status {
					e.State = state
				}
			}
			e.At = e.At.UTC()
			list, positions = append(list, e), append(positions, pos)
			return nil
		}, fill("list_ended.sql", "where", w.String(), "limit", strconv.Itoa(limit+1)), w.args...)
		return t.send()
	})
	if err != nil || len(list) <= limit {
		return list, "", err
	}
	return list[:limit], store.EndCursor(list[limit-1].At.UnixMicro(), positions[limit-1]), nil
}
