package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// ended implements Ended of store.Features.
func (s *Store) ended(ctx context.Context, q store.EndedQuery, page store.Page) ([]store.Ended, string, error) {
	if err := q.Check(); err != nil {
		return nil, "", err
	}
	type row struct {
		store.Ended
		at, pos int64
	}
	before := row{}
	if page.Cursor != "" {
		var err error
		if before.at, before.pos, err = store.ParseEndCursor(page.Cursor); err != nil {
			return nil, "", err
		}
	}
	if _, err := s.enter(ctx); err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	newest := func(a, b row) int { return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.pos, a.pos)) }
	var rows []row
	for _, m := range s.messages {
		for _, e := range m.ends() {
			r := row{e, e.At.UnixNano(), m.position}
			if q.Has(&e) && (page.Cursor == "" || newest(before, r) < 0) {
				rows = append(rows, r)
			}
		}
	}
	slices.SortFunc(rows, newest)
	next := ""
	if limit := page.Rows(); len(rows) > limit {
		rows = rows[:limit]
		next = store.EndCursor(rows[limit-1].at, rows[limit-1].pos)
	}
	list := make([]store.Ended, len(rows))
	for i := range rows {
		list[i] = rows[i].Ended
	}
	return list, next, nil
}

// ends returns the generations of a message that ended.
func (m *message) ends() (list []store.Ended) {
	e := store.Ended{Message: m.ID, Key: m.Key, Queue: m.Queue}
	if m.State == nixie.Succeeded || m.State == nixie.Discarded || m.State == nixie.Canceled {
		e.State, e.At = m.State, m.EndedAt
		list = append(list, e)
	}
	if m.letter == nil {
		return list
	}
	e.State, e.At = nixie.Dead, m.letter.DiedAt
	latest := m.Generation
	if m.State != nixie.Dead {
		latest--
	}
	for i := len(m.history) - 1; i >= 0; i-- {
		f := &m.history[i]
		if f.Generation == latest {
			e.Type, e.Text = f.Type, f.Text
			break
		}
	}
	list = append(list, e)
	for i := range m.history {
		f := &m.history[i]
		dead := f.Decision == nixie.Bury || f.Decision == nixie.Hold || f.Decision == nixie.Halt
		if last := i+1 == len(m.history) || m.history[i+1].Generation != f.Generation; dead && last && f.Generation < latest {
			e.At, e.Type, e.Text = f.FailedAt, f.Type, f.Text
			list = append(list, e)
		}
	}
	return list
}
