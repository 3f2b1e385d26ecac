package postgres

import (
	"maps"
	"slices"

	"github.com/nixie-go/nixie"
)

// The lane of a strict stream are those of its messages that are plain but for that: no
// delay, priority or dedupe key. They have no rows of their own, and are numbered under
// the lock of their stream, so that these numbers are their ranks. As long as a stream
// has nothing else, the first of them has a turn, which a claim takes: from then on it
// is a member of a batch. A success is a row of log, and gives the next one a turn. Whatever
// else happens to a message gives it a row of pending, and the stream is arranged as others
// are.
//
// Turns are given under the lock of the stream and taken under that of the cursor of
// the queue. So whoever changes a message of a lane that is not out holds both, and
// whoever changes one that is out holds the lock of the batch in place of the cursor's.
//
// A transaction of a caller adds to a lane while others go on, and neither sees what the
// other does: whether its message is the next, or whether there is a next one. Then both
// give a turn that is yet to be found, with a place below zero: the first of the lane from that
// place on has its turn if all before it have ended. A claim reads each of them once, and
// the first one that sees both finds it.

// streamRow is what a call knows of a stream whose lock it holds.
type streamRow struct {
	n     int64
	mixed bool
	idle  bool // all of its lane have ended
}

// laneColumns are the columns of pending that a message of a lane begins with.
const laneColumns = `state, pos, queue, priority, due, place, attempts, deliveries, crashes, generation, redrives, number, owner, until, received, claimed, stream, rank, may_pass, gap`

// laneRow are their values but for the state, for a message m that was not handed out.
const laneRow = `m.pos, m.queue, 0, m.enqueued, m.pos, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, m.lane, m.pos, false, false`

// mayGoByLane reports whether a message in a stream goes by its lane.
func mayGoByLane(q *queueRow, m *nixie.Message) bool {
	return q.settings.Order == nixie.OrderStrict && mayBePlain(m)
}

// join puts a new message at the end of its stream.
func (e *enqueuing) join(m *message, given *nixie.Message) {
	own := streamKey{m.queue, m.stream}
	s, opened := e.streams[own]
	if !opened || !mayGoByLane(m.q, given) {
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

// openLanes gives turns to streams that were idle, or beside others to all. One that has more
// than its lane is arranged.
func (e *enqueuing) openLanes() {
	turns := map[int64]*turn{}
	var idle []int64
	for own, s := range e.streams {
		m := e.firsts[own]
		if turns[own.queue] == nil {
			turns[own.queue] = &turn{}
		}
		switch {
		case e.beside:
			turns[own.queue].add(s.n, -m.pos)
		case s.mixed:
			e.stir(own.queue, own.name)
		case s.idle && e.work.stirred[own]:
			idle = append(idle, s.n) // what came may go before the first of its lane
		case s.idle && m != nil:
			turns[own.queue].add(s.n, m.pos)
			if m.Due <= e.now {
				e.wake(m.q.name)
			}
		}
	}
	for queue, t := range turns {
		if len(t.streams) == 0 {
			continue
		}
		e.run("insert into @.turn (queue, streams, places) values ($1, $2, $3)", queue, t.streams, t.places)
	}
	if len(idle) > 0 {
		e.run("update @.stream set turned = false where n = any($1)", idle)
	}
}

// turn is a row of turns.
type turn struct{ streams, places []int64 }

func (t *turn) add(stream, pos int64) {
	t.streams, t.places = append(t.streams, stream), append(t.places, pos)
}

// laneFirst is the first message of the lane of a stream s that has not ended. Those before it may
// have, since the row of the stream was written.
const laneFirst = "select m.pos, m.enqueued from @.message m where m.lane = s.n and m.pos > s.at and (select l.pos from @.log l where l.pos = m.pos) is null order by m.pos limit 1"

// laneEnded is the condition that all messages of the lane of a stream s have ended or have rows: the last
// of a lane that is not mixed ends last.
const laneEnded = "coalesce((select m.pos <= s.at or (select l.pos from @.log l where l.pos = m.pos) is not null from @.message m where m.lane = s.n order by m.pos desc limit 1), true)"

// lockLanes keeps claims and settlements away from all lanes of a queue.
func (t *tx) lockLanes(queue int64) {
	t.run("select from @.cursor where queue = $1 for update", queue)
	t.run("select from @.batch where queue = $1 and places is not null order by n for update", queue)
}

// enterAll gives all messages of lanes of streams s rows of their own, also those that
// are handed out. Their lanes are locked.
func (t *tx) enterAll(streams string, args ...any) {
	t.run(`with own as materialized (select p.* from @.member p join @.stream s on s.n = p.lane where `+streams+`),
		entered as (insert into @.pending (`+laneColumns+`) select 1, pos, queue, 0, claimed, pos, 1, 1, 0, 1, 0, 1, owner, until, claimed, claimed, lane, pos, false, false from own),
		left_lane as (update @.stream s set at = own.pos, turned = false from own where s.n = own.lane),
		fewer as materialized (select batch, count(*) as n from own group by batch),
		gone as (delete from @.batch b using fewer f where b.n = f.batch and b.remains <= f.n)
		update @.batch b set remains = b.remains - f.n from fewer f where b.n = f.batch and b.remains > f.n`, args...)
	const waiting = "select f.pos from @.stream s join @.follower f on f.stream = s.n where "
	t.run("delete from @.ready r using @.stream s where r.queue = s.queue and r.stream = s.n and "+streams, args...)
	t.run(`insert into @.pending (`+laneColumns+`) select 6, `+laneRow+` from @.message m where m.pos = any(array(`+waiting+streams+`)) order by m.pos`, args...)
	t.run("update @.message set lane = null where pos = any(array("+waiting+streams+"))", args...)
	t.run("update @.stream s set turned = false, at = greatest(s.at, coalesce((select m.pos from @.message m where m.lane = s.n order by m.pos desc limit 1), 0)) where "+streams, args...)
}

// leaveLanes takes messages that wait in lanes out of them, and voids their turns.
func (t *tx) leaveLanes() {
	var places []int64
	for _, m := range t.work.changed {
		if m.in == inLane {
			places = append(places, m.pos)
			t.stir(m.queue, m.stream)
		}
	}
	if len(places) == 0 {
		return
	}
	t.run("delete from @.ready r using @.message m where m.pos = any($1) and r.queue = m.queue and r.due = m.enqueued and r.pos = m.pos", places)
	t.run("update @.stream s set turned = false where s.turned and s.n = any(array(select lane from @.message where pos = any($1))) and (select f.pos from ("+laneFirst+") f) = any($1)", places)
	t.run("update @.message set lane = null where pos = any($1)", places)
}

// flushLanes notes which streams have messages that were out and now have ended or have rows.
func (t *tx) flushLanes() {
	if len(t.work.left) > 0 {
		t.run(leaveLane, eachOf(t.work.left, func(m *message) int64 { return m.inStream }), eachOf(t.work.left, func(m *message) int64 { return m.pos }))
	}
}

// leaveLane takes messages $2 that were out from the beginnings of the lanes of streams $1.
const leaveLane = "update @.stream s set at = greatest(s.at, u.pos), turned = false from unnest($1::bigint[], $2::bigint[]) u (n, pos) where s.n = u.n and s.n = any($1)"

// laneCompletion settles the messages $3 of lanes of streams $2, members of the batch $1;
// all of these are locked. It is rangeCompletion but for the turns that the next of the
// streams get. A mixed stream is left to be arranged. The streams themselves are not
// written, but now and then, so that whoever looks for the first of a lane has not to
// step over many that have ended.
const laneCompletion = `with
	clock as materialized (select coalesce($4::bigint, ` + databaseClock + `) as now),
	b as materialized (select b.*, clock.now from @.batch b, clock where b.n = $1 and b.until > clock.now),
	own as materialized (select s.*, u.pos, b.queue, b.now, b.claimed, f.pos as next from b cross join unnest($2::bigint[], $3::bigint[]) u (n, pos)
		cross join lateral (select s.ctid as row, s.n from @.stream s where s.n = u.n and not s.mixed limit 1) s
		left join lateral (select m.pos from @.message m where m.lane = s.n and m.pos > u.pos order by m.pos limit 1) f on true
		where (b.members = cardinality($3::bigint[]) or u.pos in (select unnest(places) from b)) and (b.remains = b.members or (select p.pos from @.pending p where p.pos = u.pos) is null)),
	done as (insert into @.log (pos, queue, state, ended, received) select pos, queue, 2, now, claimed from own returning pos),
	counted as materialized (select count(*) as n from done),
	gone as (delete from @.batch x using b, counted c where x.n = $1 and b.remains <= c.n),
	kept as (update @.batch x set remains = b.remains - c.n from b, counted c where x.n = $1 and b.remains > c.n and c.n > 0),
	summed as (insert into @.counter (queue, state, reason, n) select b.queue, 2, '', c.n from b, counted c where c.n > 0),
	turned as (insert into @.turn (queue, streams, places) select queue, array_agg(n), array_agg(coalesce(next, -1 - pos)) from own group by queue),
	noted as (update @.stream s set at = own.pos from own where s.ctid = own.row and hashint8(own.pos) & 63 = 0)
	select case when counted.n < cardinality($3::bigint[]) then array(select pos from done) end, exists (select from own where next is not null) from counted`

// ofLanes are the statements about leases of lanes, whose batches are locked.
func (c *completing) ofLanes() (list []stmt) {
	if len(c.lanes) == 0 {
		return nil
	}
	var streams []int64
	for _, l := range c.lanes {
		streams = append(streams, l.streams...)
	}
	list = append(list, stmt{query: c.s.named("select from @.stream where n = any($1) order by queue, name for no key update"), args: []any{streams}})
	for _, n := range slices.Sorted(maps.Keys(c.lanes)) {
		own := c.lanes[n]
		list = append(list, stmt{query: c.s.named(laneCompletion), args: []any{n, own.streams, own.places, c.s.clockArg()}, each: func(r row) error {
			var some []int64
			var more bool
			if err := r.Scan(&some, &more); err != nil {
				return err
			}
			if some == nil {
				some = own.places
			}
			c.note(some...)
			if more && len(some) > 0 {
				c.woken[c.settlements[c.at[some[0]]].Delivery.Queue] = true
			}
			return nil
		}})
	}
	return list
}

// sweepLanes ends leases of batches $1 of messages of lanes: those whose streams nobody else is about to
// change are queued again to be judged.
func (t *tx) sweepLanes(over []int64) error {
	var streams, places []int64
	t.read(func(r row) error {
		var n, pos int64
		var own streamKey
		err := r.Scan(&n, &pos, &own.queue, &own.name)
		streams, places = append(streams, n), append(places, pos)
		t.stir(own.queue, own.name)
		return err
	}, "select s.n, p.pos, s.queue, s.name from @.member p join @.stream s on s.n = p.lane where p.batch = any($1) order by s.queue, s.name for no key update of s skip locked", over)
	if err := t.send(); err != nil || len(places) == 0 {
		return err
	}
	t.run(`with own as materialized (select p.* from @.member p where p.batch = any($1) and p.pos = any($3)),
		entered as (insert into @.pending (`+laneColumns+`, abandoned) select 6, p.pos, p.queue, 0, $2, p.pos, 0, 1, 1, 1, 0, 1, 0, 0, p.claimed, p.claimed, p.lane, p.pos, false, false, `+abandoner+` from own p),
		fewer as materialized (select batch, count(*) as n from own group by batch),
		gone as (delete from @.batch b using fewer f where b.n = f.batch and b.remains <= f.n)
		update @.batch b set remains = b.remains - f.n from fewer f where b.n = f.batch and b.remains > f.n`, over, t.now, places)
	t.run(leaveLane, streams, places)
	return nil
}
