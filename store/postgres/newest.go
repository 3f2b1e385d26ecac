package postgres

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// newest adds a condition on the positions of messages for a page of the newest: about
// [store.NewestLooked] of each table, by an index. What has few matches by an index of its own
// needs no bound.
func (w *where) newest(f *nixie.Filter) {
	if len(f.IDs)+len(f.Endings)+len(f.Keys) > 0 {
		return
	}
	ceased := func(s nixie.State) bool { return s == nixie.Discarded || s == nixie.Canceled }
	tables := "newest_messages"
	switch {
	case slices.Equal(f.States, []nixie.State{nixie.Queued}):
		tables = "newest_waiting"
	case len(f.States) > 0 && !slices.ContainsFunc(f.States, func(s nixie.State) bool { return !ceased(s) }):
		tables = "newest_ceased"
	case len(f.Queues) > 0:
		tables = "newest_of_queues"
	}
	names, args := "true", []any(nil)
	if len(f.Queues) > 0 {
		names = "q.name = any(?)"
	}
	text := fill(tables, "names", names, "limit", strconv.Itoa(store.NewestLooked))
	if strings.Contains(text, "?") {
		args = []any{f.Queues}
	}
	w.add("c.pos = any(array("+text+"))", args...)
}
