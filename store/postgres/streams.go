package postgres

import (
	"context"
	"fmt"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// isUsed is the condition that there is something in a stream s.
const isUsed = "(s.mixed or not " + laneEnded + ")"

// streamView is a query for streams s as they stand at the moment $1; more follows.
const streamView = `select s.queue_name, s.name, s.blocked::int, s.due, s.n,
	(select count(*) from @.pending p where p.stream = s.n) + (select count(*) from @.follower f where f.stream = s.n) + coalesce(leased.lane, false)::int, (select count(*) from @.pending p where p.stream = s.n and p.may_pass), (select count(*) from @.letter l where l.stream = s.n),
	case when leased.pos is not null then 'leased' when blocker.pos is not null then 'blocked' when first.pos is null then 'idle' when first.due > $1 then 'waiting' else 'ready' end,
	case when leased.pos is null and blocker.pos is null and first.due > $1 then first.due else 0 end, case when leased.pos is null then blocker.id end,
	c.id, coalesce(c.attempts, 0), coalesce(` + newestText + `, ''), coalesce((select o.name from @.owner o where o.n = c.owner), '')
	from (select s.*, q.name as queue_name, q.strict from @.stream s join @.queue q on q.n = s.queue where %s and ` + isUsed + ` order by s.blocked desc, s.due desc, s.n limit $2) s
	` + leasedOf + ` ` + firstOf + `
	left join lateral (select l.pos, l.id from @.letter l where l.stream = s.n and l.blocks and (first.pos is null or l.rank < first.rank) order by l.rank limit 1) blocker on true
	left join @.current c on c.pos = coalesce(leased.pos, blocker.pos, first.pos)
	order by s.blocked desc, s.due desc, s.n`

// readStreams reads streams with the cursors of their places.
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
	}, fmt.Sprintf(streamView, where), append([]any{t.now, limit}, args...)...)
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
		t.lockLanes(q.n)
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
		t.read(count, "update @.letter set blocks = false where pos = any(array(select pos from @.letter where stream = $1 and blocks order by pos for update)) returning pos", stream)
	case q.settings.Order == nixie.OrderStrict:
		t.enterAll("s.n = $1", stream)
		t.read(count, "update @.pending set may_pass = true where stream = $2 and state <> 1 and not may_pass and pos <> all(array("+placesOf+")) returning pos", uuids([]nixie.ID{head}), stream)
	}
	if err := t.send(); err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, u.Nothing()
	}
	t.stir(q.n, u.Stream)
	t.record(q.n, u.Actor, nixie.OnUnblock, head, u.Note())
	return n, nil
}
