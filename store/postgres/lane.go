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

// lockLanes keeps claims and settlements away from all lanes of a queue.
func (t *tx) lockLanes(queue int64) {
	t.run("select from @.cursor where queue = $1 for update", queue)
	t.run("select from @.batch where queue = $1 and places is not null order by n for update", queue)
}

// enterAll gives all messages of lanes of streams s rows of their own, also those that
// are handed out. Their lanes are locked.
func (t *tx) enterAll(streams string, args ...any) {
	t.run(fill("enter_claimed.sql", "streams", streams), args...)
	t.run("delete from @.ready r using @.stream s where r.queue = s.queue and r.stream = s.n and "+streams, args...)
	for _, file := range [...]string{"enter_waiting.sql", "leave_waiting.sql", "empty_ordered.sql"} {
		t.run(fill(file, "streams", streams), args...)
	}
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
	t.run("drop_ready.sql", places)
	t.run("void_tokens.sql", places)
	t.run("update @.message set lane = null where pos = any($1)", places)
}

// flushLanes notes which streams have messages that were out and now have ended or have rows.
func (t *tx) flushLanes() {
	if len(t.work.left) > 0 {
		t.run("leave_ordered.sql", eachOf(t.work.left, func(m *message) int64 { return m.inStream }),
			eachOf(t.work.left, func(m *message) int64 { return m.pos }))
	}
}

// ofLanes are the statements about leases of lanes, whose batches are locked.
func (c *completing) ofLanes() (list []stmt) {
	if len(c.lanes) == 0 {
		return nil
	}
	var streams []int64
	for _, l := range c.lanes {
		streams = append(streams, l.streams...)
	}
	list = append(list, stmt{query: c.s.named("select from @.stream where n = any($1) order by queue, name for no key update"),
		args: []any{streams}})
	for _, n := range slices.Sorted(maps.Keys(c.lanes)) {
		own := c.lanes[n]
		list = append(list, stmt{query: c.s.named("complete_ordered.sql"), args: []any{n, own.streams, own.places, c.s.clockArg()}, each: func(r row) error {
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
	}, "lock_ordered_members.sql", over)
	if err := t.send(); err != nil || len(places) == 0 {
		return err
	}
	t.run("sweep_ordered.sql", over, t.now, places)
	t.run("leave_ordered.sql", streams, places)
	return nil
}
