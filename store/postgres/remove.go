package postgres

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// purge removes a letter for good.
func (r *resolving) purge(l *letterRow, by *store.Resolution) {
	r.purged = append(r.purged, l)
	if r.purgedBy == nil {
		r.purgedBy = map[nixie.ID]nixie.ID{}
	}
	r.purgedBy[l.ID] = by.Operation
	delete(r.letters, l.ID)
	delete(r.keys, dedupeKey{l.m.queue, l.m.dedupe})
	r.recordResolved(l.queue, by)
}

// removeLetters removes what was purged.
func (r *resolving) removeLetters() {
	if len(r.purged) == 0 {
		return
	}
	dirty := r.work.dirty // the heads of their streams are recomputed at the end
	r.flush()             // what the call changed of them before, which the counters need
	r.work.dirty = dirty
	r.run("skip_items.sql",
		eachOf(r.purged, func(l *letterRow) int64 { return l.pos }),
		eachOf(r.purged, func(l *letterRow) *[16]byte { return idOrNull(r.purgedBy[l.ID]) }), r.now)
	r.remove("purged", eachOf(r.purged, func(l *letterRow) int64 { return l.pos }))
}

// remove removes messages that have ended, with all that belongs to them, and counts them.
func (t *tx) remove(why string, positions []int64) {
	t.freeKeys(positions)
	t.run("tally_removed.sql", positions, why)
	t.run("tally_discards.sql", positions)
	t.run("uncount.sql", positions)
	t.run("note_purged.sql", positions, t.now)
	t.run("delete from @.note where letter = any($1)", positions)
	for _, table := range [...]string{"letter", "original", "attachment", "failure", "log", "message"} {
		t.run("delete from @."+table+" where pos = any($1)", positions)
	}
}
