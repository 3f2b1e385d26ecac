package sqlite

import (
	"context"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
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

// loadStream reads a stream and its head.
func (v *verb) loadStream(w *engine.Want, facts *engine.Facts) error {
	if w.Stream == nil {
		return nil
	}
	q, err := v.queue(w.Stream.Queue)
	if q == nil || err != nil {
		return err
	}
	if err := v.recomputeHeads(); err != nil {
		return err
	}
	n, err := v.number("select n from stream where queue = ? and name = ?", q.n, w.Stream.Stream)
	if n == 0 || err != nil {
		return err
	}
	pos, err := v.store.headOf(v.queries, &q.settings, n, &store.Stream{})
	if err != nil {
		return err
	}
	s := &engine.Stream{Number: n, Name: w.Stream.Stream, Queue: q.fact()}
	facts.Stream = s
	return v.each("select id from message where pos = ?", func(row rows) error {
		s.Head = columnID(row, 0)
		return nil
	}, pos)
}

// LetGo implements engine.Tx.
func (v *verb) LetGo(s *engine.Stream, mark bool) (int64, error) {
	v.markDirty(v.queues[s.Queue.Name], s.Number)
	if !mark {
		n, err := v.change("update letter set blocks = 0 where stream = ? and blocks = 1", s.Number)
		return int64(n), err
	}
	n, err := v.change(sqlText("mark_passing"), s.Number, s.Head)
	return int64(n), err
}
