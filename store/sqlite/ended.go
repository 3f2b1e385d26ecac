package sqlite

import (
	"context"
	"strings"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// ended implements Ended of store.Features. It reads the log, the letters and the failures that
// killed: an index by time would cost each success.
func (s *Store) ended(ctx context.Context, q store.EndedQuery, page store.Page) ([]store.Ended, string, error) {
	if err := q.Check(); err != nil {
		return nil, "", err
	}
	w := &where{}
	oneOf(w, "q.name", q.Queues)
	w.times("e.at", q.At)
	if len(q.States) > 0 {
		args := make([]any, len(q.States))
		for i, state := range q.States {
			args[i] = int64(lifecycle.Number(state))
		}
		w.add("e.state in (?"+strings.Repeat(", ?", len(args)-1)+")", args...)
	}
	if page.Cursor != "" {
		at, pos, err := store.ParseEndCursor(page.Cursor)
		if err != nil {
			return nil, "", err
		}
		w.add("(e.at, e.pos) < (?, ?)", at, pos)
	}
	limit := page.Rows()
	var list []store.Ended
	var at, pos []int64
	err := s.read(ctx, func(c conn) error {
		query := sqlText("list_ended") + " where " + w.String() + " order by e.at desc, e.pos desc limit ?"
		return c.each(query, func(row rows) error {
			e := store.Ended{Key: row.ColumnText(3), Queue: row.ColumnText(4), State: lifecycle.State(row.ColumnInt(2)),
				At: lifecycle.Moment(row.ColumnInt64(0)), Type: row.ColumnText(5), Text: row.ColumnText(6)}
			row.ColumnBytes(7, e.Message[:])
			list, at, pos = append(list, e), append(at, row.ColumnInt64(0)), append(pos, row.ColumnInt64(1))
			return nil
		}, append(w.args, limit+1)...)
	})
	if err != nil || len(list) <= limit {
		return list, "", err
	}
	return list[:limit], store.EndCursor(at[limit-1], pos[limit-1]), nil
}
