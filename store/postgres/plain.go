package postgres

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// mayBePlain reports whether a message is claimed by range if its queue has no order.
func mayBePlain(m *nixie.Message) bool {
	return m.DedupeKey == "" && m.Priority == 0 && m.Delay <= 0 && m.NotBefore.IsZero()
}

// arePlain reports whether messages need no decision if their queues have no order.
func arePlain(messages []nixie.Message) bool {
	for i := range messages {
		if m := &messages[i]; !mayBePlain(m) || !m.ID.IsZero() {
			return false
		}
	}
	return true
}

// enqueuePlain takes in messages that need no decision. Their queues are open.
func (t *tx) enqueuePlain(messages []nixie.Message) ([]nixie.Receipt, error) {
	receipts, rows := make([]nixie.Receipt, len(messages)), make([]messageRow, len(messages))
	var q *queueRow
	for i := range messages {
		m := &messages[i]
		if q == nil || q.name != m.Queue {
			q = t.named[m.Queue]
			if err := lifecycle.Admits(&q.settings, q.name); err != nil {
				return nil, err
			}
			t.wake(q.name)
		}
		row := messageRow{queue: q.n, byRange: true, enqueued: t.now, given: m}
		if t.drawn() {
			row.pos = t.nextPosition()
			row.id, row.numbered = t.newID(row.pos)
		} else {
			row.id = t.store.ids.New(lifecycle.Moment(t.now))
		}
		receipts[i].ID, rows[i] = row.id, row
	}
	t.insertMessages(rows)
	return receipts, nil
}
