package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// counting says what a row of the table counter counts. The schema has a view for each value.
type counting int

const (
	ofWaiting  counting = iota // by queue, state and slot of the time when it is due
	ofRetrying                 // by queue, attempts, reason of the newest failure, and leased or not
	ofDeaths                   // by facet and hour
	ofPruned                   // by queue and state, as the next
	ofPurged
	ofDiscards // by queue and reason
)

// slotBits is the number of low bits of a moment that a slot of ofWaiting leaves out: a slot is
// about 69 s long.
const slotBits = 36

// counter is the key of a row of the table counter. Code that changes a counted row subtracts the
// old row and adds the new one. The transaction writes the sums once, at its end, so that overviews
// do not read each message or letter.
type counter struct {
	what         counting
	subject      int64 // a queue, or a facet of letters
	number, slot int64
	name         string
}

// add adds to a counter.
func (t *tx) add(c counter, n int64) {
	if t.counters == nil {
		t.counters = map[counter]int64{}
	}
	t.counters[c] += n
}

// count adds n rows like p to the counters.
func (t *tx) count(p *pendingRow, n int64) {
	leased := int64(0)
	if p.State == lifecycle.Leased {
		leased = 1
	} else {
		t.add(counter{what: ofWaiting, subject: p.queue, number: int64(p.State), slot: p.Due >> slotBits}, n)
	}
	if p.Attempts > 0 && p.reason != "" {
		t.add(counter{what: ofRetrying, subject: p.queue, number: int64(p.Attempts), slot: leased, name: p.reason}, n)
	}
}

// countAgain counts a row that changed: it subtracts was and adds is.
func (t *tx) countAgain(was, is *pendingRow) {
	t.count(was, -1)
	t.count(is, 1)
}

// flip runs a statement that changes the state of queued rows of a stream and returns their due
// times, and counts them again.
func (t *tx) flip(queue int64, from, to int, query string, args ...any) error {
	return t.each(query, func(row rows) error {
		was := pendingRow{queue: queue, Message: lifecycle.Message{State: from, Due: row.ColumnInt64(0)}}
		is := was
		is.State = to
		t.countAgain(&was, &is)
		return nil
	}, args...)
}

// flushCounters adds the sums to the rows of counter.
func (t *tx) flushCounters() error {
	for c, n := range t.counters {
		if n == 0 {
			continue
		}
		if err := t.addTo(sqlText("add_to_counter"),
			"delete from counter where what = ? and subject = ? and number = ? and slot = ? and name = ?", n, int64(c.what), c.subject,
			c.number, c.slot, c.name); err != nil {
			return err
		}
	}
	clear(t.counters)
	return t.flushFacets()
}

// addTo adds to one sum, and deletes its row at 0.
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
