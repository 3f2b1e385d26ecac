package postgres

import "github.com/nixie-go/nixie"

// The lane of a strict stream are those of its messages that are plain but for that: no
// delay, priority or dedupe key. They have no rows of their own, and are numbered under
// the lock of their stream, so that these numbers are their ranks. As long as a stream
// has nothing else, its row hands them out: it says which one is ready, and after a
// claim who has it and until when. A success is a row of log, and makes the next one
// ready. Whatever else happens to a message gives it a row of pending, and the stream is
// arranged as others are.

// streamRow is what a call knows of a stream whose lock it holds.
type streamRow struct {
	n     int64
	mixed bool
	idle  bool // nothing of its lane is ready or handed out
}

// laneColumns are the columns of pending that a message of a lane begins with.
const laneColumns = `state, pos, queue, priority, due, place, attempts, deliveries, crashes, generation, redrives, number, owner, until, received, claimed, stream, rank, may_pass, gap`

// laneRow are their values but for the state, for a message m that was not handed out.
const laneRow = `m.pos, m.queue, 0, m.enqueued, m.pos, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, m.lane, m.pos, false, false`

// join puts a new message at the end of its stream.
func (e *enqueuing) join(m *message, given *nixie.Message) {
	own := streamKey{m.queue, m.stream}
	s, opened := e.streams[own]
	if !opened || m.q.settings.Order != nixie.OrderStrict || !mayBePlain(given) {
		e.stir(m.queue, m.stream)
		return
	}
	m.in, m.lane = inLane, s.n
	if e.firsts == nil {
		e.firsts = map[streamKey]*message{}
	}
	if e.firsts[own] == nil {
		e.firsts[own] = m
	}
}

// openLanes lets streams hand out what came to them. One that has more than its lane is
// arranged, and so is one that nothing came to.
func (e *enqueuing) openLanes() {
	var streams, places, due []int64
	for own, s := range e.streams {
		m := e.firsts[own]
		switch {
		case m == nil || s.mixed:
			e.stir(own.queue, own.name)
		case s.idle && !e.work.stirred[own]:
			streams, places, due = append(streams, s.n), append(places, m.pos), append(due, m.due)
			if m.due <= e.now {
				e.wake(m.q.name)
			}
		}
	}
	if len(streams) > 0 {
		e.run(`update @.stream s set ready = u.place, due = u.due from unnest($1::bigint[], $2::bigint[], $3::bigint[]) u (n, place, due) where s.n = u.n`, streams, places, due)
	}
}

// enterAll gives all messages of lanes of streams s rows of their own, also those that
// are handed out.
func (t *tx) enterAll(streams string, args ...any) {
	t.run(`insert into @.pending (`+laneColumns+`) select 6, `+laneRow+` from @.stream s cross join lateral (select * from @.message m where m.lane = s.n and m.pos > s.at order by m.pos) m where `+streams, args...)
	t.run(`insert into @.pending (`+laneColumns+`) select 1, s.at, s.queue, 0, s.claimed, s.at, 1, 1, 0, 1, 0, 1, s.owner, s.until, s.claimed, s.claimed, s.n, s.at, false, false from @.stream s where s.until > 0 and `+streams, args...)
	t.run("update @.stream s set owner = 0, until = 0, ready = 0, at = greatest(s.at, coalesce((select m.pos from @.message m where m.lane = s.n order by m.pos desc limit 1), 0)) where "+streams, args...)
}

// flushLanes notes which messages of lanes have rows of their own from now on, or have
// ended.
func (t *tx) flushLanes() {
	if len(t.work.skipped) > 0 {
		t.run("update @.message set lane = null where pos = any($1)", t.work.skipped)
	}
	if len(t.work.left) > 0 {
		t.run(leaveLane, t.work.left)
	}
}

// laneCompletion settles what streams $1, which are locked, handed out of their lanes:
// the messages $2. It answers with those that it settled, null if these are all, and
// whether a stream has more. A mixed stream is left to be arranged. Rows are changed where they were found,
// by their ctid: no plan goes through all of one side for each of the other then.
const laneCompletion = `with
	clock as materialized (select coalesce($3::bigint, ` + databaseClock + `) as now),
	own as materialized (select s.*, clock.now, f.pos as ready, f.enqueued from clock cross join unnest($1::bigint[], $2::bigint[]) u (n, place)
		cross join lateral (select s.ctid as row, s.queue, s.n, s.at, s.claimed from @.stream s where s.n = u.n and s.at = u.place and s.until > clock.now and not s.mixed limit 1) s
		left join lateral (select m.pos, m.enqueued from @.message m where m.lane = s.n and m.pos > s.at order by m.pos limit 1) f on true),
	ended as (delete from @.stream s using own where s.ctid = own.row and own.ready is null),
	moved as (update @.stream s set owner = 0, until = 0, ready = own.ready, due = own.enqueued from own where s.ctid = own.row and own.ready is not null),
	counted as (insert into @.counter (queue, state, reason, n) select queue, 2, '', count(*) from own group by queue),
	logged as (insert into @.log (pos, queue, state, ended, received) select at, queue, 2, now, claimed from own)
	select case when count(*) < cardinality($2::bigint[]) then array(select at from own) end, coalesce(bool_or(ready is not null), false) from own`

// ofLanes are the statements about leases of lanes.
func (c *completing) ofLanes() []stmt {
	if len(c.streams) == 0 {
		return nil
	}
	return []stmt{
		{query: c.s.named("select from @.stream where n = any($1) order by queue, name for update"), args: []any{c.streams}},
		{query: c.s.named(laneCompletion), args: []any{c.streams, c.lanes, c.s.clockArg()}, each: func(r row) error {
			var some []int64
			var more bool
			if err := r.Scan(&some, &more); err != nil {
				return err
			}
			if some == nil {
				some = c.lanes
			}
			c.note(some...)
			for _, pos := range some {
				if more {
					c.woken[c.settlements[c.at[pos]].Delivery.Queue] = true
				}
			}
			return nil
		}},
	}
}

// sweepLanes ends leases of lanes: their messages are queued again to be judged.
func (t *tx) sweepLanes(dead []int64) error {
	var over []int64
	t.read(func(r row) error {
		var n int64
		var own streamKey
		err := r.Scan(&n, &own.queue, &own.name)
		over = append(over, n)
		t.stir(own.queue, own.name)
		return err
	}, "select n, queue, name from @.stream where until > 0 and (until <= $1 or owner = any($2)) order by n for update skip locked", t.now, dead)
	if err := t.send(); err != nil || len(over) == 0 {
		return err
	}
	t.run(`insert into @.pending (`+laneColumns+`, abandoned)
		select 6, p.at, p.queue, 0, $2, p.at, 1, 1, 1, 1, 0, 1, 0, 0, p.claimed, p.claimed, p.n, p.at, false, false, `+abandoner+` from @.stream p where p.n = any($1)`, over, t.now)
	t.run(leaveLane, over)
	return nil
}

// leaveLane ends leases of lanes by the numbers of their streams.
const leaveLane = "update @.stream set owner = 0, until = 0 where n = any($1)"
