package sqlite

import (
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// retryings maps a property to columns: of the table retrying r and queue q, where those have it,
// and of current c with the row p of pending.
var retryings = map[store.GroupBy]struct{ counted, each string }{
	store.ByAttempts: {"cast(r.attempts as text)", "cast(p.attempts as text)"},
	store.ByReason:   {"r.reason", "p.reason"},
	store.ByQueue:    {"q.name", "c.queue_name"},
	store.ByType:     {"", "coalesce(c.type, '')"},
}

// countRetrying counts messages that failed before. Where the counters can answer, its cost does
// not depend on the number of messages.
func countRetrying(c conn, filter *nixie.Filter, now moment, by store.GroupBy) ([]store.Group, error) {
	key := retryings[by]
	var query string
	w := retryingWhere(filter)
	if w != nil && key.counted != "" {
		query = "select " + key.counted + " " + sqlText("retrying_counts") + " " + w.String() + " group by k"
	} else {
		w = messageWhere(filter, now)
		query = "select " + key.each + " " + sqlText("retrying_messages") + " " + w.String() + " group by k"
	}
	list := []store.Group{}
	err := c.each(query, func(row rows) error {
		list = append(list, store.Group{Key: row.ColumnText(0), Count: row.ColumnInt64(1), Leased: row.ColumnInt64(2)})
		return nil
	}, w.args...)
	store.SortGroups(list)
	return list, err
}

// retryingWhere returns the conditions of a filter on retrying r and its queue q, or nil when the
// counters cannot answer it.
func retryingWhere(f *nixie.Filter) *where {
	rest := *f
	rest.Queues, rest.States, rest.Reasons, rest.Attempts = nil, nil, nil, nixie.Range{}
	if !rest.IsZero() {
		return nil
	}
	w := &where{}
	oneOf(w, "q.name", f.Queues)
	oneOf(w, "r.reason", f.Reasons)
	w.bounds("r.attempts", f.Attempts)
	if len(f.States) > 0 {
		w.add("(r.leased = 0 and ? or r.leased = 1 and ?)", slices.Contains(f.States, nixie.Queued),
			slices.Contains(f.States, nixie.Leased))
	}
	return w
}

// near adds a condition on the positions of messages, when a filter asks only for some that have
// not ended: all others may be many more. It reports whether it did.
func (w *where) near(c conn, f *nixie.Filter) (bool, error) {
	if len(f.States) == 0 || slices.ContainsFunc(f.States, func(s nixie.State) bool { return s != nixie.Queued && s != nixie.Leased }) {
		return false, nil
	}
	if len(f.Streams) > 0 && !slices.Contains(f.Streams, "") && len(f.Queues) > 0 {
		if ordered, err := allOrdered(c, f.Queues); err != nil || ordered {
			w.ofStreams(f)
			return true, err
		}
	}
	parts := []string{"select pos from pending"}
	var args []any
	members := sqlText("members_leased")
	switch least := atLeast(f.Attempts); {
	case least >= 5:
		parts[0] += " where attempts >= ? and attempts >= 5"
		args = append(args, least)
	case atLeast(f.Crashes) > 0:
		parts[0] += " where crashes > 0"
	case !slices.Contains(f.States, nixie.Queued):
		parts = []string{"select pos from pending indexed by pending_lease where state = 1", members}
	case len(f.Reasons) > 0 && !slices.Contains(f.Reasons, ""), f.Due != nixie.Times{}:
	case least > 0:
		parts = append(parts, members)
	default:
		return false, nil
	}
	w.add("c.pos in ("+strings.Join(parts, " union all ")+")", args...)
	return true, nil
}

// allOrdered reports whether all of some queues have an order. Their messages that have not ended
// have rows of pending, which name their streams.
func allOrdered(c conn, queues []string) (ordered bool, err error) {
	w := &where{}
	oneOf(w, "name", queues)
	ordered = true
	err = c.each("select settings from queue where "+w.String(), func(row rows) error {
		var set nixie.QueueSettings
		err := fromJSON(row.ColumnText(0), &set)
		ordered = ordered && set.Ordered()
		return err
	}, w.args...)
	return ordered, err
}

// ofStreams adds a condition on the positions of messages in ordered queues that have not ended,
// for a filter that names their streams.
func (w *where) ofStreams(f *nixie.Filter) {
	queues, streams := &where{}, &where{}
	oneOf(queues, "name", f.Queues)
	streams.add("s.queue in (select n from queue where "+queues.String()+")", queues.args...)
	oneOf(streams, "s.name", f.Streams)
	w.add("c.pos in (select p.pos from stream s join pending p on p.stream = s.n where "+streams.String()+")", streams.args...)
}

// atLeast returns the lower bound of a count.
func atLeast(r nixie.Range) int64 {
	if r.Min == nil {
		return 0
	}
	return *r.Min
}
