package sqlite

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Queues implements store.Queue. It reads counters and indexes, so its cost does not depend on the
// number of messages.
func (s *Store) Queues(ctx context.Context, query store.QueueQuery) ([]store.QueueInfo, error) {
	var list []store.QueueInfo
	now := s.look()
	err := s.read(ctx, func(c conn) error {
		w := &where{}
		oneOf(w, "name", query.Names)
		if query.Names != nil && len(query.Names) == 0 {
			return nil
		}
		var rowsOf []queueRow
		if err := c.each(sqlText("queues")+" "+w.String()+" order by name", func(row rows) error {
			q := store.QueueInfo{Name: row.ColumnText(1)}
			if !query.Settings {
				q.Ready, q.Succeeded = row.ColumnInt64(5), row.ColumnInt64(6)
				q.Discarded, q.Canceled = row.ColumnInt64(7), row.ColumnInt64(8)
				q.Total = q.Succeeded + q.Discarded + q.Canceled + row.ColumnInt64(9)
				q.AskedAt = lifecycle.Moment(row.ColumnInt64(10))
			}
			rowsOf = append(rowsOf, queueRow{n: row.ColumnInt64(0), cursor: row.ColumnInt64(3), last: row.ColumnInt64(4)})
			err := fromJSON(row.ColumnText(2), &q.Settings)
			list = append(list, q)
			return err
		}, w.args...); err != nil || query.Settings {
			return err
		}
		return countQueues(c, now.store, rowsOf, list, query.Brief)
	})
	for i := range list {
		q := &list[i]
		for _, at := range [...]*time.Time{&q.NextAt, &q.LastAt, &q.OldestAt, &q.BlockedAt} {
			*at = now.shown(lifecycle.Nanos(*at))
		}
	}
	return list, err
}

// countQueues counts the messages and letters of queues.
func countQueues(c conn, now int64, rowsOf []queueRow, list []store.QueueInfo, brief bool) error {
	leased, err := countLeases(c)
	if err != nil {
		return err
	}
	var dead map[int64]*deathCount
	if !brief {
		if dead, err = countDeaths(c, now-int64(time.Hour)); err != nil {
			return err
		}
	}
	for i := range rowsOf {
		list[i].Leased = leased[rowsOf[i].n]
		if of := dead[rowsOf[i].n]; of != nil {
			list[i].Dead, list[i].Died = of.waiting, of.late
		}
		if err := countQueue(c, &rowsOf[i], now, &list[i], brief); err != nil {
			return err
		}
		list[i].Total += list[i].Unfinished()
	}
	return nil
}

// countLeases counts leased messages by queue.
func countLeases(c conn) (map[int64]int64, error) {
	counts := map[int64]int64{}
	return counts, c.each(sqlText("queue_leases"), func(row rows) error {
		counts[row.ColumnInt64(0)] = row.ColumnInt64(1)
		return nil
	})
}

// countQueue adds waiting messages and failures. The row of the queue counts new and ended
// messages.
func countQueue(c conn, at *queueRow, now int64, q *store.QueueInfo, brief bool) error {
	if q.Ready > 0 {
		oldest, err := c.number("select enqueued from message where pos > +? and pos <= +? and own = 0 order by pos limit 1",
			at.n<<seqBits|at.cursor, at.n<<seqBits|at.last)
		if err != nil {
			return err
		}
		q.OldestAt = lifecycle.Moment(oldest)
	}
	ready, err := countWaiting(c, at.n, now, q, brief)
	if err != nil {
		return err
	}
	late, err := c.number(sqlText("queue_overtaken"), at.n, now)
	if err != nil {
		return err
	}
	if ready > late {
		oldest, err := oldestReady(c, at.n, now)
		if err != nil {
			return err
		}
		if at := lifecycle.Moment(oldest); q.OldestAt.IsZero() || at.Before(q.OldestAt) {
			q.OldestAt = at
		}
	}
	q.Ready += ready - late
	q.Blocked += late
	if err := oldestBlocked(c, at.n, now, q); err != nil {
		return err
	}
	if brief {
		return nil
	}
	if err := readGone(c, at.n, q); err != nil {
		return err
	}
	q.Retried, err = c.number("select count(*) from failure where queue = ? and decision = 'retry' and at > ?", at.n, now-int64(time.Hour))
	return err
}

// deathCount counts letters of a queue: those that wait for a decision and those that died after a
// moment.
type deathCount struct{ waiting, late int64 }

// countDeaths counts letters by queue. It reads counters, and letters only for the hour that
// contains the moment, or where they are few.
func countDeaths(c conn, since int64) (map[int64]*deathCount, error) {
	counts := map[int64]*deathCount{} // by queue
	facets := facetList{}
	var of []*deathCount // of each facet
	if err := c.each("select n, queue, iif(status in ('open', 'review', 'quarantined'), letters, 0) from facet", func(row rows) error {
		queue := row.ColumnInt64(1)
		if counts[queue] == nil {
			counts[queue] = &deathCount{}
		}
		counts[queue].waiting += row.ColumnInt64(2)
		facets.add(row.ColumnInt64(0))
		of = append(of, counts[queue])
		return nil
	}); err != nil {
		return nil, err
	}
	after := allTime()
	after.least = deathPos{since, math.MaxInt64}
	return counts, eachDeathOf(c, &where{}, facets.len(), after, func(facet, _, n int64) {
		if at := facets.find(facet); at >= 0 {
			of[at].late += n
		}
	})
}

// oldestReady returns when the first ready message was due; 0 if none is.
func oldestReady(c conn, queue, now int64) (oldest int64, err error) {
	for _, part := range waitingIn(lifecycle.Queued) {
		due, err := c.number("select due "+part+" and due <= +?2 and not ("+sqlText("overtakes")+") order by due limit 1", queue, now)
		if err != nil {
			return 0, err
		}
		if due != 0 && (oldest == 0 || due < oldest) {
			oldest = due
		}
	}
	return oldest, nil
}

// oldestBlocked sets when the first blocked message was due.
func oldestBlocked(c conn, queue, now int64, q *store.QueueInfo) error {
	if q.Blocked == 0 {
		return nil
	}
	due, err := c.number(sqlText("queue_blocked_since"), queue, now)
	q.BlockedAt = lifecycle.Moment(due)
	return err
}

// countWaiting counts waiting rows of pending by their due times, and returns how many are due.
func countWaiting(c conn, queue, now int64, q *store.QueueInfo, brief bool) (ready int64, err error) {
	for _, state := range [...]int64{lifecycle.Queued, lifecycle.Behind} {
		slots, err := readSlots(c, queue, state)
		if err != nil {
			return 0, err
		}
		if len(slots) == 0 {
			continue
		}
		due, err := slots.count(c, now, q, brief)
		if err != nil {
			return 0, err
		}
		if state == lifecycle.Queued {
			ready = due
		} else {
			q.Blocked = due
		}
	}
	if q.Scheduled == 0 || brief {
		return ready, nil
	}
	for _, state := range [...]int64{lifecycle.Queued, lifecycle.Behind} {
		first, last, err := dueEnds(c, queue, state, now+1)
		if err != nil {
			return 0, err
		}
		if at := lifecycle.Moment(first); first != 0 && (q.NextAt.IsZero() || at.Before(q.NextAt)) {
			q.NextAt = at
		}
		if at := lifecycle.Moment(last); at.After(q.LastAt) {
			q.LastAt = at
		}
	}
	return ready, nil
}

// waitingIn returns the indexes of waiting messages, as the end of a query: two for each priority,
// or one for messages behind others.
func waitingIn(state int64) []string {
	if state == lifecycle.Behind {
		return []string{"from pending indexed by pending_behind where queue = +?1 and state = 6"}
	}
	return waitingByPriority()
}

var waitingByPriority = sync.OnceValue(func() (parts []string) {
	for p := nixie.MinPriority; p <= nixie.MaxPriority; p++ {
		parts = append(parts,
			fmt.Sprintf("from pending indexed by pending_due where queue = +?1 and priority = %d and state = 0 and crashes = 0", p),
			fmt.Sprintf("from pending indexed by pending_suspect where queue = +?1 and priority = %d and state = 0 and crashes > 0", p))
	}
	return parts
})

// dueEnds returns the first and the last due time of waiting messages that are not due before from;
// 0 if there are none.
func dueEnds(c conn, queue, state, from int64) (first, last int64, err error) {
	for _, part := range waitingIn(state) {
		low, err := c.number("select min(due) "+part+" and due >= +?2", queue, from)
		if err != nil {
			return 0, 0, err
		}
		if low == 0 {
			continue
		}
		high, err := c.number("select max(due) "+part+" and due >= +?2", queue, from)
		if err != nil {
			return 0, 0, err
		}
		if first == 0 || low < first {
			first = low
		}
		last = max(last, high)
	}
	return first, last, nil
}

// dueBetween counts waiting messages that are due from…to.
func dueBetween(c conn, queue, state, from, to int64) (n int64, err error) {
	for _, part := range waitingIn(state) {
		some, err := c.number("select count(*) "+part+" and due between ?2 and ?3", queue, from, to)
		if err != nil {
			return 0, err
		}
		n += some
	}
	return n, nil
}

// slots are the counters of waiting messages in a queue, by time.
type slots []slot

type slot struct{ queue, state, at, n int64 }

func readSlots(c conn, queue, state int64) (list slots, err error) {
	return list, c.each("select slot, n from waiting where queue = +? and state = +? order by slot", func(row rows) error {
		list = append(list, slot{queue, state, row.ColumnInt64(0), row.ColumnInt64(1)})
		return nil
	}, queue, state)
}

// count adds scheduled messages to the numbers of the queue and returns how many are due. If it is
// brief it leaves q.Due as it is.
func (all slots) count(c conn, now int64, q *store.QueueInfo, brief bool) (due int64, err error) {
	if due, err = all.until(c, now); err != nil {
		return 0, err
	}
	before := due
	total := int64(0)
	for _, s := range all {
		total += s.n
	}
	q.Scheduled += total - due
	if brief {
		return due, nil
	}
	for i, end := range store.DueBands() {
		n, err := all.until(c, now+int64(end))
		if err != nil {
			return 0, err
		}
		q.Due[i] += n - before
		before = n
	}
	q.Due[len(q.Due)-1] += total - before
	return due, nil
}

// until counts messages that are due at a moment. It reads counters, and rows only for the slot
// that contains the moment.
func (all slots) until(c conn, moment int64) (n int64, err error) {
	for _, s := range all {
		switch {
		case s.at < moment>>slotBits:
			n += s.n
		case s.at == moment>>slotBits:
			part, err := dueBetween(c, s.queue, s.state, s.at<<slotBits, moment)
			return n + part, err
		}
	}
	return n, nil
}

func (t *tx) saveSettings(q *queueRow) error {
	q.paused = q.settings.Paused
	settings := textOf(jsonText(false, q.settings))
	scope := q.settings.DedupeScope
	frees := 0
	if lifecycle.FreesClaimed(scope) {
		frees = everFreed
	}
	return t.run("update queue set paused = ?, widest = max(widest & 3, ?) | (widest & 4) | ?, settings = ?, texts = ? where n = ?",
		q.settings.Paused, width(scope), frees, settings, sumOf(settings), q.n)
}

// everFreed is the flag in queue.widest that the scope was one in which claims free keys. Then
// messages on their way may be without theirs.
const everFreed = 4

// width orders dedupe scopes: a wider one holds keys longer.
func width(scope nixie.DedupeScope) int {
	switch scope {
	case nixie.DedupeUnresolved:
		return 1
	case nixie.DedupeEver:
		return 2
	}
	return 0
}
