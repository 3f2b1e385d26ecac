package postgres

import (
	"maps"
	"slices"

	"github.com/nixie-go/nixie"
)

// The ordered path of a strict stream: a message without delay, priority or dedupe key gets no row
// of pending. It may be claimed once its predecessor succeeded.
//
// Messages of a stream are numbered under the lock of the stream, so their positions are their
// ranks. While nothing else is in the stream, its first message has a token. A claim takes the
// token and leases the message in a batch. A success is a row of log and gives the next message a
// token. Anything else gives the message a row, and the head of the stream is recomputed (see
// stream.go).
//
// Locks that a change of a message on the ordered path holds:
//
//     state      where it lies        locks
//     ---------  -------------------  ---------------------------------
//     waiting    message alone        stream, cursor of the queue
//     has token  message, token       stream, cursor of the queue
//     claimed    message, batch       stream, batch
//
// Tokens are given under the lock of the stream and taken under the lock of the cursor.
//
// A transaction of a caller appends while other transactions go on, and neither sees what the other
// does: whether its message is the next, or whether there is a next one. So both write an
// unresolved token, with a position below zero. It stands for the first message from that position
// on, if all before it have ended. The next claim that sees both transactions resolves it.

// streamRow has what a call knows of a stream whose lock it holds.
type streamRow struct {
	n     int64
	mixed bool
	idle  bool // all messages of its ordered path have ended
}

// goesOrdered reports whether a message in a stream takes the ordered path.
func goesOrdered(q *queueRow, m *nixie.Message) bool {
	return q.settings.Order == nixie.OrderStrict && mayBePlain(m)
}

// follow appends a new message to its stream.
func (v *verb) follow(m *message, given *nixie.Message) {
	own := streamKey{m.queue, m.stream}
	s, opened := v.streams[own]
	if !opened || !goesOrdered(m.q, given) {
		v.markDirty(m.queue, m.stream)
		return
	}
	m.in, m.orderedStream = onOrderedPath, s.n
	if v.firsts == nil {
		v.firsts = map[streamKey]*message{}
	}
	if v.firsts[own] == nil {
		v.firsts[own] = m
	}
}

// giveTokens gives tokens to streams that were idle. A concurrent call gives unresolved tokens to
// all its streams. The heads of mixed streams are recomputed.
func (v *verb) giveTokens() {
	given := map[int64]*tokens{}
	var idle []int64
	for own, s := range v.streams {
		m := v.firsts[own]
		if given[own.queue] == nil {
			given[own.queue] = &tokens{}
		}
		switch {
		case v.concurrent:
			given[own.queue].add(s.n, -m.pos)
		case s.mixed:
			v.markDirty(own.queue, own.name)
		case s.idle && v.work.dirty[own]:
			idle = append(idle, s.n) // a new row may go before the first message without a row
		case s.idle && m != nil:
			given[own.queue].add(s.n, m.pos)
			if m.Due <= v.now {
				v.wake(m.q.name)
			}
		}
	}
	for queue, t := range given {
		if len(t.streams) == 0 {
			continue
		}
		v.run("insert into @.token (queue, streams, positions) values ($1, $2, $3)", queue, t.streams, t.positions)
	}
	if len(idle) > 0 {
		v.run("update @.stream set has_token = false where n = any($1)", idle)
	}
}

// tokens are streams with the positions of messages that may be claimed.
type tokens struct{ streams, positions []int64 }

func (t *tokens) add(stream, pos int64) {
	t.streams, t.positions = append(t.streams, stream), append(t.positions, pos)
}

// lockOrderedPaths keeps claims and settlements away from all ordered paths of a queue.
func (t *tx) lockOrderedPaths(queue int64) {
	t.run("select from @.cursor where queue = $1 for update", queue)
	t.run("select from @.batch where queue = $1 and positions is not null order by n for update", queue)
}

// giveRowsToAll gives all messages on the ordered paths of streams rows, also the claimed ones. The
// paths are locked.
func (t *tx) giveRowsToAll(streams string, args ...any) {
	t.run(fill("enter_claimed.sql", "streams", streams), args...)
	t.run("delete from @.ready r using @.stream s where r.queue = s.queue and r.stream = s.n and "+streams, args...)
	for _, file := range [...]string{"enter_waiting.sql", "leave_waiting.sql", "empty_ordered.sql"} {
		t.run(fill(file, "streams", streams), args...)
	}
}

// leaveOrderedPaths takes changed messages that wait off the ordered paths, and voids their tokens.
func (t *tx) leaveOrderedPaths() {
	var positions []int64
	for _, m := range t.work.changed {
		if m.in == onOrderedPath {
			positions = append(positions, m.pos)
			t.markDirty(m.queue, m.stream)
		}
	}
	if len(positions) == 0 {
		return
	}
	t.run("drop_ready.sql", positions)
	t.run("void_tokens.sql", positions)
	t.run("update @.message set ordered_stream = null where pos = any($1)", positions)
}

// flushOrdered notes which streams had messages in batches that now have ended or have rows.
func (t *tx) flushOrdered() {
	if len(t.work.left) > 0 {
		t.run("leave_ordered.sql", eachOf(t.work.left, func(m *message) int64 { return m.inStream }),
			eachOf(t.work.left, func(m *message) int64 { return m.pos }))
	}
}

// ofOrdered returns the statements that complete members of batches of ordered paths. The batches
// are locked.
func (c *completing) ofOrdered() (list []stmt) {
	if len(c.ordered) == 0 {
		return nil
	}
	var streams []int64
	for _, l := range c.ordered {
		streams = append(streams, l.streams...)
	}
	list = append(list, stmt{query: c.s.named("select from @.stream where n = any($1) order by queue, name for no key update"),
		args: []any{streams}})
	for _, n := range slices.Sorted(maps.Keys(c.ordered)) {
		own := c.ordered[n]
		list = append(list, stmt{query: c.s.named("complete_ordered.sql"), args: []any{n, own.streams, own.positions, c.s.clockArg()},
			each: func(r row) error {
				var some []int64
				var more bool
				if err := r.Scan(&some, &more); err != nil {
					return err
				}
				if some == nil {
					some = own.positions
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

// sweepOrdered ends leases of batches of ordered paths. Their messages wait to be judged, but for
// those whose streams other transactions have locked.
func (t *tx) sweepOrdered(over []int64) error {
	var streams, positions []int64
	t.read(func(r row) error {
		var n, pos int64
		var own streamKey
		err := r.Scan(&n, &pos, &own.queue, &own.name)
		streams, positions = append(streams, n), append(positions, pos)
		t.markDirty(own.queue, own.name)
		return err
	}, "lock_ordered_members.sql", over)
	if err := t.send(); err != nil || len(positions) == 0 {
		return err
	}
	t.run("sweep_ordered.sql", over, t.now, positions)
	t.run("leave_ordered.sql", streams, positions)
	return nil
}
