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
	stirred := r.work.stirred // their streams go on without them
	r.flush()                 // what the call changed of them before: it is counted as it is now
	r.work.stirred = stirred
	r.run(`update @.item i set state = 'skipped' from unnest($1::bigint[], $2::uuid[]) u (pos, by) where i.letter = u.pos and i.state = 'pending'
		and i.operation is distinct from (select o.n from @.operation o where o.id = u.by)`,
		eachOf(r.purged, func(l *letterRow) int64 { return l.pos }), eachOf(r.purged, func(l *letterRow) *[16]byte { return idOrNull(r.purgedBy[l.ID]) }))
	r.remove("purged", eachOf(r.purged, func(l *letterRow) int64 { return l.pos }))
}

// remove removes messages that have ended, with everything that hangs on them, and
// counts them.
func (t *tx) remove(why string, positions []int64) {
	t.freeKeys(positions)
	t.run(`insert into @.tally (queue, what, name, n) select queue, $2::text, case state when 2 then 'succeeded' when 3 then 'discarded' when 4 then 'canceled' else 'dead' end, count(*)
		from @.log where pos = any($1) group by 1, 3 order by 1, 3 on conflict (queue, what, name) do update set n = tally.n + excluded.n`, positions, why)
	t.run(`insert into @.tally (queue, what, name, n) select queue, 'discards', coalesce(nullif(reason, ''), 'unknown'), count(*)
		from @.log where pos = any($1) and state = 3 group by 1, 3 order by 1, 3 on conflict (queue, what, name) do update set n = tally.n + excluded.n`, positions)
	t.run(uncount, positions)
	t.run(`insert into @.purged (letter, message, queue, at) select l.id, m.id, l.queue, $2 from @.letter l join @.message m on m.pos = l.pos where l.pos = any($1)
		on conflict (letter) do update set message = excluded.message, queue = excluded.queue, at = excluded.at`, positions, t.now)
	t.run("delete from @.note where letter = any($1)", positions)
	for _, table := range [...]string{"letter", "original", "attachment", "failure", "log", "message"} {
		t.run("delete from @."+table+" where pos = any($1)", positions)
	}
}
