package lifecycle

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Notice makes the message that tells the queue to of a death. given has what the sender said and
// when it was enqueued. The facts are those after the death, and newest is the newest failure of
// the history, nil if that is empty.
func (m *Message) Notice(given nixie.Message, st *nixie.Settlement, newest *Failure, to string, now int64) nixie.Message {
	given.ID, given.Attempts, given.Crashes, given.Generation = m.ID, m.Attempts, m.Crashes, m.Generation
	given.FirstReceivedAt, given.LastFailure = Moment(m.Received), ""
	if newest != nil {
		given.LastFailure = newest.Text
	}
	return store.NewNotice(&given, cmp.Or(st.Second, st.Failure), Moment(now)).Message(to)
}

// RefuseNotices says why a queue cannot have settings because of the ways of notices of deaths: a
// way would have no end, or lead to a closed queue. others has the settings of all other queues.
func RefuseNotices(name string, set *nixie.QueueSettings, others map[string]nixie.QueueSettings) error {
	if set.Closed {
		for _, other := range slices.Sorted(maps.Keys(others)) {
			if others[other].DeadLetterTo == name {
				return nixie.Errorf(nixie.CodeConflict, "queue %s cannot be closed: queue %s sends notices of its deaths here, "+
					"reset its dead-letter-to first", name, other)
			}
		}
	}
	if set.DeadLetterTo == "" {
		return nil
	}
	if others[set.DeadLetterTo].Closed {
		return nixie.Errorf(nixie.CodeConflict, "queue %s cannot send notices of its deaths to %s, which is closed: open it first",
			name, set.DeadLetterTo)
	}
	way := []string{name}
	for at := set.DeadLetterTo; at != "" && len(way) <= len(others)+1; at = others[at].DeadLetterTo {
		way = append(way, at)
		if at == name {
			return nixie.Errorf(nixie.CodeConflict, "notices of deaths would go round for ever, %s: name another queue",
				strings.Join(way, " → "))
		}
	}
	return nil
}
