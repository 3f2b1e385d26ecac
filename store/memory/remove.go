package memory

import (
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// removeLetter removes a letter with its message. Other operations skip its pending items.
func (s *Store) removeLetter(now time.Time, l *letter, operation nixie.ID) {
	for id, op := range s.operations {
		if item := op.items[l.ID]; item != nil && item.state == lifecycle.ItemPending && id != operation {
			item.state, item.at = lifecycle.ItemSkipped, now
		}
	}
	delete(s.letters, l.ID)
	s.born = slices.DeleteFunc(s.born, func(other *letter) bool { return other == l })
	s.removeMessage(l.message)
}

// removeMessage removes a message that has ended.
func (s *Store) removeMessage(m *message) {
	q := s.queue(m.Queue)
	if m.holdsKey {
		delete(q.keys, m.DedupeKey)
	}
	is := func(other *message) bool { return other == m }
	q.all, q.live = slices.DeleteFunc(q.all, is), slices.DeleteFunc(q.live, is)
	for _, had := range s.queues { // the message may have been moved since
		had.retries = slices.DeleteFunc(had.retries, func(r retry) bool { return r.of == m })
	}
	q.gone[m.State]++
	delete(s.messages, m.ID)
}

// discarded counts a discarded message by the reason of its last failure.
func (q *queue) discarded(m *message) {
	reason := nixie.ReasonUnknown
	if n := len(m.history); n > 0 && m.history[n-1].Reason != "" {
		reason = m.history[n-1].Reason
	}
	q.discards[reason]++
}
