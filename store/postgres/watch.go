package postgres

import (
	"context"
	"time"

	"github.com/nixie-go/nixie/store"
)

// While the listener hears what others tell, a look that finds nothing is repeated once a
// second, for what was not told; without a listener every 50 ms.
const (
	lookEvery = time.Second
	askEvery  = 50 * time.Millisecond
)

// watchFor is Watch of store.Features.
func (s *Store) watchFor(queues ...string) (stop func()) {
	s.listener.start(s)
	return s.watch.Watch(queues...)
}

// lookFor looks for work of queues by one statement that changes nothing.
func (s *Store) lookFor(ctx context.Context, queues []string) (sight store.Sight, err error) {
	if err := s.enter(ctx); err != nil {
		return sight, err
	}
	defer s.gate.leave()
	ctx, stop := context.WithTimeout(ctx, s.opts.AnswerWait)
	defer stop()
	rows, err := s.pool.Query(ctx, s.looking, queues, s.clockArg(), s.looks.sinceIdle())
	if err != nil {
		return sight, err
	}
	defer rows.Close()
	sight.Next = askEvery
	if s.listener.hears.Load() {
		sight.Next = lookEvery
	}
	for rows.Next() {
		var queue *string // none is for leases that end
		var in int64
		if err := rows.Scan(&queue, &in); err != nil {
			return sight, err
		}
		switch {
		case in > 0:
			sight.Next = min(sight.Next, time.Duration(in))
		case queue == nil:
			sight.Ready = queues // whichever claims first ends the leases
		default:
			sight.Ready = append(sight.Ready, *queue)
		}
	}
	return sight, rows.Err()
}

// looking says of the queues $1 in how many nanoseconds each has something that a claim finds, if it
// has, and of no queue when the next lease ends; $2 is the clock that was set, and $3 for sinceOf.
// It looks where claims look, and at the first of each index alone.
func looking() string {
	return `with c as materialized (select now, ` + sinceOf("$3") + ` as since from (select coalesce($2::bigint, ` + databaseClock + `) as now offset 0) x)
	select q.name, first.due - c.now from c, @.queue q
		cross join lateral (select * from @.cursor where queue = q.n order by moves desc limit 1) at
		cross join lateral (select min(due) as due from (
			select f.due from generate_series(-4, 4) as pr (priority) cross join lateral (
				(select p.due from @.pending p where p.queue = q.n and p.state = 0 and p.crashes = 0 and p.stream is null and p.priority = pr.priority::smallint order by p.due limit 1)
				union all (select p.due from @.pending p where p.queue = q.n and p.state = 0 and p.crashes = 0 and p.stream is not null and p.priority = pr.priority::smallint order by p.due limit 1)) f
			union all (select p.due from @.pending p where p.queue = q.n and p.state = 0 and p.crashes > 0 order by p.due limit 1)
			union all (select r.due from @.ready r where q.strict and r.queue = q.n and r.due >= at.low order by r.due limit 1)
			union all (select 0 where q.strict and exists (select from @.turn t where t.queue = q.n and (t.tx >= at.tx or t.tx = any(at.late))))
			union all (select 0 where coalesce(q.settings ->> 'order', 'none') in ('', 'none') and ` + unread + `)) x) first
		where q.name = any($1) and not q.paused and first.due is not null
	union all select null, min(until) - c.now from c cross join lateral (
		(select until from @.pending where until > c.since and until > 0 order by until limit 1)
		union all (select until from @.batch where until > c.since order by until limit 1)
		union all (select 0 where exists (select from @.owner o where ` + deadOwner + `))) x group by c.now`
}

// unread is the condition that ranges of a queue q have not reached a message: beyond the
// cursor at, or of a transaction that had not ended when the cursor passed it.
const unread = `(exists (select from @.message m where m.queue = q.n and not m.apart and (m.tx, m.pos) > (at.tx, at.pos))
	or exists (select from unnest(at.late, at.done) l (x, done) where pg_visible_in_snapshot(l.x, pg_current_snapshot())
		and exists (select from @.message m where m.queue = q.n and not m.apart and m.tx = l.x and m.pos > l.done)))`
