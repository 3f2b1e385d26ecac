package sqlite

import (
	"context"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Streams implements store.Streams.
func (s *Store) Streams(ctx context.Context, query store.StreamQuery, page store.Page) ([]store.Stream, string, error) {
	where, args := "q.name = +?", []any{query.Queue}
	if query.Name != "" {
		where, args = where+" and s.name = +?", append(args, query.Name)
	}
	if page.Cursor != "" {
		after, err := streamCursor(page.Cursor)
		if err != nil {
			return nil, "", err
		}
		where, args = where+" and (s.blocked, s.due, -s.n) < (?, ?, ?)", append(args, after...)
	}
	limit := page.Rows()
	var list []store.Stream
	var last string
	err := s.read(ctx, func(c conn) error {
		return c.each(sqlText("streams")+" "+where+" order by s.blocked desc, s.due desc, s.n limit ?", func(row rows) error {
			v, err := s.viewStream(c, row)
			list = append(list, v)
			last = strings.Join([]string{row.ColumnText(4), row.ColumnText(5), row.ColumnText(1)}, ".")
			return err
		}, append(args, limit)...)
	})
	if err != nil || len(list) < limit {
		last = ""
	}
	return list, last, err
}

func streamCursor(cursor string) ([]any, error) {
	var numbers []any
	for _, part := range strings.Split(cursor, ".") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			break
		}
		numbers = append(numbers, n)
	}
	if len(numbers) != 3 {
		return nil, nixie.Errorf(nixie.CodeInvalid, "cursor %.40q is not one of ours: start without a cursor", cursor)
	}
	numbers[2] = -numbers[2].(int64)
	return numbers, nil
}

// viewStream reads a stream for a list.
func (s *Store) viewStream(c conn, row rows) (store.Stream, error) {
	n := row.ColumnInt64(1)
	v := store.Stream{Queue: row.ColumnText(2), Name: row.ColumnText(3)}
	var set nixie.QueueSettings
	if err := fromJSON(row.ColumnText(0), &set); err != nil {
		return v, err
	}
	if err := c.each(sqlText("stream_counts"), func(row rows) error {
		v.Followers, v.Passing, v.Dead = row.ColumnInt64(0), row.ColumnInt64(1), row.ColumnInt64(2)
		return nil
	}, n); err != nil {
		return v, err
	}
	head, err := s.headOf(queries{c}, &set, n, &v)
	if err != nil || head == 0 {
		return v, err
	}
	if v.State == store.StreamBlocked {
		v.Dead--
	} else {
		v.Followers--
	}
	return v, c.each(sqlText("stream_head"), func(row rows) error {
		v.Head, v.Attempts, v.Failure, v.LeasedBy = columnID(row, 0), row.ColumnInt(1), row.ColumnText(2), row.ColumnText(3)
		return nil
	}, head)
}

// headOf finds the message that is leased or that the others wait for, and sets the state of the
// stream.
func (s *Store) headOf(on queries, set *nixie.QueueSettings, stream int64, v *store.Stream) (pos int64, err error) {
	leased, err := on.ahead(sqlText("stream_leased"), stream)
	if err != nil || leased.pos != 0 {
		v.State = store.StreamLeased
		return leased.pos, err
	}
	first, err := on.first(set, stream)
	if err != nil {
		return 0, err
	}
	if err := on.each(sqlText("stream_blocking_letter"), func(row rows) error {
		v.State, v.Letter = store.StreamBlocked, columnID(row, 1)
		pos = row.ColumnInt64(0)
		return nil
	}, stream, first.rank); err != nil || pos != 0 {
		return pos, err
	}
	switch now := s.look(); {
	case first.pos == 0:
		v.State = store.StreamIdle
	case first.due > now.store:
		v.State, v.Due = store.StreamWaiting, now.shown(first.due)
	default:
		v.State = store.StreamReady
	}
	return first.pos, nil
}

// Unblock implements store.Streams.
func (s *Store) Unblock(ctx context.Context, u store.Unblocking) (int64, error) {
	if err := u.Check(); err != nil {
		return 0, err
	}
	var n int64
	err := s.write(ctx, 0, func(t *tx) (err error) {
		n, err = t.unblock(&u)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

func (t *tx) unblock(u *store.Unblocking) (int64, error) {
	q, err := t.queue(u.Queue)
	if err != nil {
		return 0, err
	}
	if q == nil {
		return 0, store.NoStream(u.Queue, u.Stream)
	}
	if err := t.recomputeHeads(); err != nil {
		return 0, err
	}
	stream, err := t.number("select n from stream where queue = ? and name = ?", q.n, u.Stream)
	if err != nil {
		return 0, err
	}
	if stream == 0 {
		return 0, store.NoStream(u.Queue, u.Stream)
	}
	var v store.Stream
	head, err := t.store.headOf(t.queries, &q.settings, stream, &v)
	if err != nil {
		return 0, err
	}
	changed := 0
	switch {
	case !u.Mark:
		changed, err = t.change("update letter set blocks = 0 where stream = ? and blocks = 1", stream)
	case q.settings.Order == nixie.OrderStrict:
		changed, err = t.change("update pending set may_pass = 1 where stream = ? and state <> 1 and may_pass = 0 and pos <> ?", stream,
			head)
	}
	if err != nil {
		return 0, err
	}
	if changed == 0 {
		return 0, u.Nothing()
	}
	t.markDirty(q, stream)
	var id nixie.ID
	if err := t.each("select id from message where pos = ?", func(row rows) error {
		id = columnID(row, 0)
		return nil
	}, head); err != nil {
		return 0, err
	}
	return int64(changed), t.audit(q.n, u.Actor, store.OnUnblock, id, u.Note())
}
