package sqlite

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Messages implements store.Overview.
func (s *Store) Messages(ctx context.Context, filter nixie.Filter, page store.Page) ([]store.Record, string, error) {
	w := messageWhere(&filter, s.look())
	if page.Cursor != "" {
		before, err := nixie.ParseID(page.Cursor)
		if err != nil {
			return nil, "", nixie.Errorf(nixie.CodeInvalid, "cursor %.40q is not one of ours: start without a cursor", page.Cursor)
		}
		w.add("c.id < ?", before)
	}
	limit := page.Rows()
	var list []store.Record
	size := 0
	err := s.read(ctx, func(c conn) error {
		order := "c.id"
		near, err := w.near(c, &filter)
		if err == nil && !near && page.Newest {
			near, err = w.newest(c, &filter)
		}
		if err != nil {
			return err
		}
		if near {
			order = "+c.id" // start from those positions instead of the newest message
		}
		query := "select " + sqlText("current_columns") + " from current c where " + w.String() + " order by " + order + " desc limit ?"
		return chosen(c.each(query, func(row rows) error {
			r, err := s.scanRecord(c, row, page.Whole)
			list = append(list, r)
			return fullPage(err, &size, &r.Message, r.History)
		}, append(w.args, limit)...))
	})
	if err != nil || len(list) < limit && size < maxPageSize {
		return list, "", err
	}
	return list, list[len(list)-1].ID.String(), nil
}

func (s *Store) scanRecord(c conn, row rows, whole bool) (store.Record, error) {
	var r store.Record
	var err error
	if r.Damage, err = s.scanCurrent(c, row, &r.Message); err != nil {
		return r, err
	}
	pos := row.ColumnInt64(0)
	if !whole {
		return r, c.each("select text, reason from failure where pos = +? order by ordinal desc limit 1", func(f rows) error {
			r.LastFailure, r.LastReason = f.ColumnText(0), nixie.Reason(f.ColumnText(1))
			return nil
		}, pos)
	}
	r.History, r.HistoryDropped, err = story(c, pos, &r.Message, &r.Damage)
	if n := len(r.History); n > 0 {
		r.LastFailure, r.LastReason = r.History[n-1].Text, r.History[n-1].Reason
	}
	return r, err
}
