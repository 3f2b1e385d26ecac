package sqlite

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Messages implements store.Overview.
func (s *Store) Messages(ctx context.Context, filter nixie.Filter, page store.Page) ([]store.Record, string, error) {
	w := messageWhere(&filter, s.Now())
	if page.Cursor != "" {
		before, err := nixie.ParseID(page.Cursor)
		if err != nil {
			return nil, "", nixie.Errorf(nixie.CodeInvalid, "cursor %.40q is not one of ours: start without a cursor", page.Cursor)
		}
		w.add("c.id < ?", before)
	}
	limit := pageLimit(page)
	var list []store.Record
	size := 0
	err := s.read(ctx, func(c conn) error {
		return chosen(c.each("select "+currentColumns+" from current c where "+w.String()+" order by c.id desc limit ?", func(row rows) error {
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
		return r, c.each("select text from failure where pos = ? order by ordinal desc limit 1", func(f rows) error {
			r.LastFailure = f.ColumnText(0)
			return nil
		}, pos)
	}
	r.History, r.HistoryDropped, err = story(c, pos, &r.Message, &r.Damage)
	if n := len(r.History); n > 0 {
		r.LastFailure = r.History[n-1].Text
	}
	return r, err
}

// Queues implements store.Overview.
func (s *Store) Queues(ctx context.Context) ([]nixie.QueueInfo, error) {
	var list []nixie.QueueInfo
	now := s.now()
	err := s.read(ctx, func(c conn) error {
		var rowsOf []queueRow
		if err := c.each("select n, name, settings, cursor, last, fresh, succeeded, discarded, canceled, dead from queue order by name", func(row rows) error {
			q := nixie.QueueInfo{Name: row.ColumnText(1), Ready: row.ColumnInt64(5), Succeeded: row.ColumnInt64(6), Discarded: row.ColumnInt64(7), Canceled: row.ColumnInt64(8)}
			q.Total = q.Succeeded + q.Discarded + q.Canceled + row.ColumnInt64(9)
			rowsOf = append(rowsOf, queueRow{n: row.ColumnInt64(0), cursor: row.ColumnInt64(3), last: row.ColumnInt64(4)})
			err := fromJSON(row.ColumnText(2), &q.Settings)
			list = append(list, q)
			return err
		}); err != nil {
			return err
		}
		for i := range rowsOf {
			if err := countQueue(c, &rowsOf[i], now, &list[i]); err != nil {
				return err
			}
			list[i].Total += list[i].Unfinished()
		}
		return nil
	})
	return list, err
}

// countQueue counts what small tables hold; what is new and what has ended is
// counted in the row of the queue.
func countQueue(c conn, at *queueRow, now int64, q *nixie.QueueInfo) error {
	n := at.n
	first, last := n<<seqBits, n<<seqBits|maxSeq
	if q.Ready > 0 {
		oldest, err := c.number("select enqueued from message where pos > ? and pos <= ? and own = 0 order by pos limit 1", first|at.cursor, first|at.last)
		if err != nil {
			return err
		}
		q.OldestAt = moment(oldest)
	}
	leased, err := c.number("select coalesce(sum(left), 0) from batch where first > ? and last <= ?", first, last)
	if err != nil {
		return err
	}
	q.Leased = leased
	oldest := int64(0)
	if err := c.each(`select count(*) filter (where state = 0 and due <= ?2), count(*) filter (where state <> 1 and due > ?2), count(*) filter (where state = 1),
		min(case when state <> 1 and due > ?2 then due end), min(case when state = 0 and due <= ?2 then due end), count(*) filter (where state = 6 and due <= ?2)
		from pending where pos > ?1 and pos <= ?3`, func(row rows) error {
		q.Ready += row.ColumnInt64(0)
		q.Scheduled = row.ColumnInt64(1)
		q.Leased += row.ColumnInt64(2)
		q.NextAt = moment(row.ColumnInt64(3))
		oldest, q.Blocked = row.ColumnInt64(4), row.ColumnInt64(5)
		return nil
	}, first, now, last); err != nil {
		return err
	}
	if at := moment(oldest); !at.IsZero() && (q.OldestAt.IsZero() || at.Before(q.OldestAt)) {
		q.OldestAt = at
	}
	hourAgo := now - int64(time.Hour)
	return c.each(`select (select count(*) from letter where queue = ?1 and status in ('open', 'review', 'quarantined')),
		(select count(*) from failure where queue = ?1 and decision = 'retry' and at > ?2),
		(select count(*) from letter where queue = ?1 and died > ?2)`, func(row rows) error {
		q.Dead, q.Retried, q.Died = row.ColumnInt64(0), row.ColumnInt64(1), row.ColumnInt64(2)
		return nil
	}, n, hourAgo)
}

// Configure implements store.Overview.
func (s *Store) Configure(ctx context.Context, queue string, settings nixie.QueueSettings, actor, reason string) error {
	if queue == "" {
		return nixie.Errorf(nixie.CodeInvalid, "queue is empty: name the queue")
	}
	if actor == "" {
		return nixie.Errorf(nixie.CodeInvalid, "actor is empty: say who does it")
	}
	if err := nixie.CheckName("queue", queue); err != nil {
		return err
	}
	if err := settings.Check(); err != nil {
		return err
	}
	return s.write(ctx, 0, func(t *tx) error {
		q, err := t.openQueue(queue)
		if err != nil {
			return err
		}
		if q.settings == settings && !q.isNew {
			return nil
		}
		if err := t.reorder(q, &settings); err != nil {
			return err
		}
		q.settings = settings
		if err := t.saveSettings(q); err != nil {
			return err
		}
		t.wake(queue)
		return t.audit(q.n, actor, nixie.OnConfigure, nixie.ID{}, reason)
	})
}
