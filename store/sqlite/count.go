package sqlite

import "github.com/nixie-go/nixie"

// What waits and what retries is counted in tables of their own, so that
// overviews do not look at each message. Whoever changes a row of pending says
// what it was and what it is; the sums are written once, at the end of the
// transaction.

// slotBits is how many bits of a moment a slot of the table waiting leaves out:
// a slot is about 69 s long.
const slotBits = 36

type waitingKey struct {
	queue, slot int64
	state       int
}

type retryingKey struct {
	queue    int64
	attempts int
	reason   string
	leased   bool
}

// count adds n rows like this one to the counters.
func (t *tx) count(p *pendingRow, n int64) {
	if t.waiting == nil {
		t.waiting, t.retrying = map[waitingKey]int64{}, map[retryingKey]int64{}
	}
	if p.state != stLeased {
		t.waiting[waitingKey{p.queue, p.due >> slotBits, p.state}] += n
	}
	if p.attempts > 0 && p.reason != "" {
		t.retrying[retryingKey{p.queue, p.attempts, p.reason, p.state == stLeased}] += n
	}
}

// countAgain takes a row that was one thing for another.
func (t *tx) countAgain(was, is *pendingRow) {
	t.count(was, -1)
	t.count(is, 1)
	if is.redrives > 0 && (is.attempts != was.attempts || is.crashes != was.crashes) {
		t.lives(is)
	}
}

// flip changes the state of queued rows of a stream and counts them again.
func (t *tx) flip(queue int64, from, to int, query string, args ...any) error {
	return t.each(query+" returning due", func(row rows) error {
		due := row.ColumnInt64(0)
		t.countAgain(&pendingRow{queue: queue, state: from, due: due}, &pendingRow{queue: queue, state: to, due: due})
		return nil
	}, args...)
}

// amendRow changes a row of pending in memory, counts it again and writes what
// operators can change of it.
func (t *tx) amendRow(pos int64, change func(p *pendingRow)) (*pendingRow, error) {
	p, err := t.pending(pos)
	if err != nil || p == nil {
		return nil, err
	}
	was := *p
	change(p)
	t.countAgain(&was, p)
	return p, t.run("update pending set due = ?, attempts = ?, deliveries = ?, crashes = ?, alone = ?, abandoned = ?, may_pass = ? where pos = ?",
		p.due, p.attempts, p.deliveries, p.crashes, p.alone, text(p.abandoned), p.mayPass, pos)
}

// flushCounts writes the sums.
func (t *tx) flushCounts() error {
	for k, n := range t.waiting {
		if n == 0 {
			continue
		}
		if err := t.addTo("insert into waiting (queue, state, slot, n) values (?, ?, ?, ?) on conflict do update set n = n + excluded.n returning n",
			"delete from waiting where queue = ? and state = ? and slot = ?", n, k.queue, k.state, k.slot); err != nil {
			return err
		}
	}
	for k, n := range t.retrying {
		if n == 0 {
			continue
		}
		if err := t.addTo("insert into retrying (queue, attempts, reason, leased, n) values (?, ?, ?, ?, ?) on conflict do update set n = n + excluded.n returning n",
			"delete from retrying where queue = ? and attempts = ? and reason = ? and leased = ?", n, k.queue, k.attempts, k.reason, k.leased); err != nil {
			return err
		}
	}
	clear(t.waiting)
	clear(t.retrying)
	return nil
}

// addTo adds to one sum, and removes it when nothing is left.
func (t *tx) addTo(add, remove string, n int64, key ...any) error {
	left, err := t.number(add, append(key[:len(key):len(key)], n)...)
	if err != nil {
		return err
	}
	if left < 0 {
		return nixie.Errorf(nixie.CodeInternal, "counter %v would be %d: run nixie verify", key, left)
	}
	if left > 0 {
		return nil
	}
	return t.run(remove, key...)
}
