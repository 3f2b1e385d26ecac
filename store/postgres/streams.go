package postgres

import (
	"context"
	"fmt"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
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

// Unblock implements store.Streams.
func (s *Store) Unblock(ctx context.Context, u store.Unblocking) (int64, error) {
	if err := u.Check(); err != nil {
		return 0, err
	}
	var n int64
	err := s.write(ctx, func(t *tx) (err error) {
		n, err = t.unblock(&u)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

func (t *tx) unblock(u *store.Unblocking) (n int64, err error) {
	var stream int64
	t.readQueues("name = $1", u.Queue)
	if err := t.send(); err != nil {
		return 0, err
	}
	q := t.named[u.Queue]
	if q == nil {
		return 0, store.NoStream(u.Queue, u.Stream)
	}
	if u.Mark {
		t.lockOrderedPaths(q.n)
	}
	t.number(&stream, "select s.n from @.stream s where s.queue + 0 = $1 and s.name = $2 for update of s", q.n, u.Stream)
	t.clock()
	if err := t.send(); err != nil {
		return 0, err
	}
	if stream == 0 {
		return 0, store.NoStream(u.Queue, u.Stream)
	}
	var list []store.Stream
	t.readStreams(&list, new([]string), "s.n = $3", 1, stream)
	if err := t.send(); err != nil {
		return 0, err
	}
	if len(list) == 0 {
		return 0, store.NoStream(u.Queue, u.Stream)
	}
	head := list[0].Head
	count := func(row) error { n++; return nil }
	switch {
	case !u.Mark:
		t.read(count, "free_stream.sql", stream)
	case q.settings.Order == nixie.OrderStrict:
		t.giveRowsToAll("s.n = $1", stream)
		t.read(count, "mark_passing.sql", uuids([]nixie.ID{head}), stream)
	}
	if err := t.send(); err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, u.Nothing()
	}
	t.markDirty(q.n, u.Stream)
	t.record(q.n, u.Actor, store.OnUnblock, head, u.Note())
	return n, nil
}
