package sqlite

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// newest adds a condition on the positions of messages for a page of the newest: at most
// [store.NewestLooked] of each table, in each queue that the filter names. It reports whether it
// did; what has few matches by an index needs no bound.
func (w *where) newest(c conn, f *nixie.Filter) (bool, error) {
	if len(f.IDs)+len(f.Endings)+len(f.Keys) > 0 {
		return false, nil
	}
	waiting := slices.Equal(f.States, []nixie.State{nixie.Queued})
	var parts []string
	var args []any
	add := func(from string, with ...any) {
		parts = append(parts, "select pos from (select pos from "+from+" limit "+strconv.Itoa(store.NewestLooked)+")")
		args = append(args, with...)
	}
	if len(f.Queues) == 0 {
		add("message order by id desc")
		if waiting {
			add("pending order by pos desc")
			add("(" + sqlText("fresh_of_queues") + ")")
		}
		w.add("c.pos in ("+strings.Join(parts, " union all ")+")", args...)
		return true, nil
	}
	q := &where{}
	oneOf(q, "name", f.Queues)
	err := c.each("select n << 40, cursor from queue where "+q.String(), func(row rows) error {
		first := row.ColumnInt64(0)
		last := first + 1<<40 - 1
		if !waiting {
			add("message where pos between ? and ? order by pos desc", first, last)
			return nil
		}
		add("pending where pos between ? and ? order by pos desc", first, last)
		add("message where pos between ? and ? and own = 0 order by pos desc", first+row.ColumnInt64(1)+1, last)
		return nil
	}, q.args...)
	if len(parts) == 0 {
		return false, err // no such queue
	}
	w.add("c.pos in ("+strings.Join(parts, " union all ")+")", args...)
	return true, err
}
