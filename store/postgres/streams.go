package postgres

import (
	"context"
	"fmt"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// readStreams reads streams with the cursors of their positions in the list.
func (t *tx) readStreams(list *[]store.Stream, cursors *[]string, where string, limit int, args ...any) {
	t.read(func(r row) error {
		var v store.Stream
		var blocked, due, n, until int64
		if err := r.Scan(&v.Queue, &v.Name, &blocked, &due, &n, &v.Followers, &v.Passing, &v.Dead, &v.State, &until, (*idColumn)(&v.Letter),
			(*idColumn)(&v.Head), &v.Attempts, &v.Failure, &v.LeasedBy); err != nil {
			return err
		}
		v.Due = lifecycle.Moment(until)
		switch v.State {
		case store.StreamIdle:
		case store.StreamBlocked:
			v.Dead--
		default:
			v.Followers--
		}
		*list, *cursors = append(*list, v), append(*cursors, fmt.Sprintf("%d.%d.%d", blocked, due, n))
		return nil
	}, fill("list_streams.sql", "where", where), append([]any{t.now, limit}, args...)...)
}

// Streams implements store.Streams.
func (s *Store) Streams(ctx context.Context, look store.StreamQuery, page store.Page) ([]store.Stream, string, error) {
	where, args := "q.name = $3 and ($4 = '' or s.name = $4)", []any{look.Queue, look.Name}
	if page.Cursor != "" {
		after, err := cursorNumbers(page.Cursor, 3)
		if err != nil {
			return nil, "", err
		}
		where, args = where+" and (s.blocked::int, s.due, -s.n) < ($5, $6, $7)", append(args, after[0], after[1], -after[2])
	}
	limit := page.Rows()
	var list []store.Stream
	var cursors []string
	err := s.view(ctx, func(t *tx) error {
		if err := t.time(); err != nil {
			return err
		}
		t.readStreams(&list, &cursors, where, limit+1, args...)
		return t.send()
	})
	if err != nil || len(list) <= limit {
		return list, "", err
	}
	return list[:limit], cursors[limit-1], nil
}

// loadStream locks and reads a stream and its head.
func (v *verb) loadStream(w *store.Unblocking) error {
	var n int64
	v.readQueues("name = $1", w.Queue)
	if err := v.send(); err != nil {
		return err
	}
	q := v.named[w.Queue]
	if q == nil {
		return nil
	}
	if w.Mark {
		v.lockOrderedPaths(q.n)
	}
	v.number(&n, "select s.n from @.stream s where s.queue + 0 = $1 and s.name = $2 for update of s", q.n, w.Stream)
	v.clock()
	if err := v.send(); err != nil || n == 0 {
		return err
	}
	var list []store.Stream
	v.readStreams(&list, new([]string), "s.n = $3", 1, n)
	if err := v.send(); err != nil || len(list) == 0 {
		return err
	}
	v.facts.Stream = &engine.Stream{Number: n, Name: w.Stream, Queue: v.queue(q), Head: list[0].Head}
	return nil
}

// LetGo implements engine.Tx.
func (v *verb) LetGo(s *engine.Stream, mark bool) (n int64, err error) {
	count := func(row) error { n++; return nil }
	if mark {
		v.giveRowsToAll("s.n = $1", s.Number)
		v.read(count, "mark_passing.sql", uuids([]nixie.ID{s.Head}), s.Number)
	} else {
		v.read(count, "free_stream.sql", s.Number)
	}
	v.markDirty(s.Queue.Number, s.Name)
	err = v.send()
	return n, err
}
