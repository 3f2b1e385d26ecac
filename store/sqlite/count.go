package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

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
	if p.State != lifecycle.Leased {
		t.waiting[waitingKey{p.queue, p.Due >> slotBits, p.State}] += n
	}
	if p.Attempts > 0 && p.reason != "" {
		t.retrying[retryingKey{p.queue, p.Attempts, p.reason, p.State == lifecycle.Leased}] += n
	}
}

// countAgain takes a row that was one thing for another.
func (t *tx) countAgain(was, is *pendingRow) {
	t.count(was, -1)
	t.count(is, 1)
}

// flip changes the state of queued rows of a stream and counts them again.
func (t *tx) flip(queue int64, from, to int, query string, args ...any) error {
	return t.each(query+" returning due", func(row rows) error {
		was := pendingRow{queue: queue, Message: lifecycle.Message{State: from, Due: row.ColumnInt64(0)}}
		is := was
		is.State = to
		t.countAgain(&was, &is)
		return nil
	}, args...)
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
