package postgres

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/engine"
)

// pruning has the rows that one call of Prune found. Write removes them, so that locks are taken in
// order.
type pruning struct {
	forgets bool    // the role may delete entries of audits: it owns the schema
	found   []int64 // messages with rows
	letters []int64 // of those, which have letters
	ranges  []spent
	chains  []cut
}

// spent says how many messages of success ranges that ended up to a moment are to be removed.
type spent struct{ queue, cutoff, members int64 }

// cut says after which entry the audit of a queue is to begin.
type cut struct {
	queue, number int64
	hash          []byte
}

// loadPruning keeps other processes from pruning, and reads where pruning was and all queues.
func (v *verb) loadPruning() error {
	v.pruning = &pruning{}
	v.run("select pg_advisory_xact_lock(hashtext('" + v.store.opts.Schema + "'), 0)") // one process at a time
	v.clock()
	v.readQueues("true")
	v.read(func(r row) error { return r.Scan(&v.pruning.forgets) }, "select has_table_privilege('@.audit', 'delete')")
	v.read(func(r row) error { return r.Scan(&v.facts.PrunedTo) }, "select value from @.meta where name = 'prune'")
	return v.send()
}

// loadNext finds the queue with the lowest number from one on.
func (v *verb) loadNext(from int64) {
	var next *queueRow
	for n, q := range v.queues {
		if n >= from && (next == nil || n < next.n) {
			next = q
		}
	}
	if next != nil {
		v.facts.Next = v.queue(next)
	}
}

// Remove implements engine.Tx.
func (v *verb) Remove(p engine.Part) (r engine.Removed, err error) {
	switch {
	case p.Queue == nil && p.Step == engine.PruneKeys:
		r, err = v.pruneKeys(p)
	case p.Queue == nil:
		r, err = v.pruneDocuments(p)
	case p.Step == engine.PruneMessages:
		r, err = v.pruneMessages(p)
	case p.Step == engine.PruneRanges:
		r, err = v.pruneRanges(p)
	case p.Step == engine.PruneLetters:
		r, err = v.pruneLetters(p)
	case v.pruning.forgets:
		r, err = v.pruneEntries(p)
	}
	if p.Dry { // else what was met is gone
		r.After = p.After + int64(r.Met)
	}
	return r, err
}

// pruneKeys forgets keys of inboxes. A dry run has to skip those that it has counted.
func (v *verb) pruneKeys(p engine.Part) (r engine.Removed, err error) {
	if p.Dry {
		v.number(&r.Gone, "select count(*) from (select from @.inbox where at <= $1 offset $2 limit $3) k", p.Cutoff, p.After, p.Most)
		err = v.send()
		r.Met = int(r.Gone)
		return r, err
	}
	r.Met, err = v.Forget(p.Cutoff, p.Most)
	r.Gone = int64(r.Met)
	return r, err
}

// pruneDocuments removes documents that have expired.
func (v *verb) pruneDocuments(p engine.Part) (r engine.Removed, err error) {
	if p.Dry {
		v.number(&r.Gone, "select count(*) from (select from @.document where expires > 0 and expires <= $1 offset $2 limit $3) d",
			p.Cutoff, p.After, p.Most)
	} else {
		v.number(&r.Gone, "forget_documents.sql", p.Cutoff, p.Most)
	}
	err = v.send()
	r.Met = int(r.Gone)
	return r, err
}

func (v *verb) positions(query string, args ...any) (list []int64, ids []nixie.ID, err error) {
	v.read(func(r row) error {
		var pos int64
		var id nixie.ID
		err := r.Scan(&pos, (*idColumn)(&id))
		list, ids = append(list, pos), append(ids, id)
		return err
	}, query, args...)
	err = v.send()
	return list, ids, err
}

func (v *verb) pruneMessages(p engine.Part) (engine.Removed, error) {
	list, _, err := v.positions("old_messages.sql", p.Queue.Number, p.Cutoff, p.After, p.Most)
	v.pruning.found = append(v.pruning.found, list...)
	return engine.Removed{Met: len(list), Gone: int64(len(list))}, err
}

// pruneRanges counts messages of success ranges.
func (v *verb) pruneRanges(p engine.Part) (r engine.Removed, err error) {
	most := int64(p.Most)
	if p.Dry {
		most += p.After
	}
	v.number(&r.Gone, "count_old_ranges.sql", p.Queue.Number, p.Cutoff, most)
	if err = v.send(); err != nil {
		return r, err
	}
	if p.Dry {
		r.Gone = max(r.Gone-p.After, 0)
	} else if r.Gone > 0 {
		v.pruning.ranges = append(v.pruning.ranges, spent{p.Queue.Number, p.Cutoff, r.Gone})
	}
	r.Met = int(r.Gone)
	return r, nil
}

// pruneLetters skips letters that others have locked.
func (v *verb) pruneLetters(p engine.Part) (engine.Removed, error) {
	query := "select pos, id from @.letter where queue = $1 and resolved > 0 and resolved <= $2 order by resolved, pos offset $3 limit $4"
	if !p.Dry {
		query += " for update skip locked"
	}
	list, ids, err := v.positions(query, p.Queue.Number, p.Cutoff, p.After, p.Most)
	v.pruning.letters = append(v.pruning.letters, list...)
	return engine.Removed{Met: len(list), Gone: int64(len(list)), Letters: ids}, err
}

// pruneEntries finds entries of an audit from the oldest on. The newest entry always stays, with
// those of its row.
func (v *verb) pruneEntries(p engine.Part) (r engine.Removed, err error) {
	var hash []byte
	over := false
	v.read(func(w row) error {
		var number, at, alike int64
		var sum []byte
		if err := w.Scan(&number, &at, &sum, &alike); err != nil {
			return err
		}
		if over = over || at > p.Cutoff; !over {
			r.Newest, hash = number, sum
			r.Met, r.Gone = r.Met+1, r.Gone+alike
		}
		return nil
	}, "old_entries.sql", p.Queue.Number, p.After, p.Most)
	if err := v.send(); err != nil {
		return engine.Removed{}, err
	}
	if r.Met > 0 {
		v.pruning.chains = append(v.pruning.chains, cut{p.Queue.Number, r.Newest, hash})
	}
	return r, nil
}

// writePruning removes what was found. Letters are locked, and no other call changes the rest.
func (v *verb) writePruning(c *engine.Changes) {
	p := v.pruning
	if p == nil {
		return
	}
	if len(p.letters) > 0 {
		v.run("update @.item set state = 'skipped', at = $2 where state = 'pending' and letter = any($1)", p.letters, v.now)
	}
	if found := append(p.found, p.letters...); len(found) > 0 {
		v.remove("pruned", found)
	}
	for _, s := range p.ranges {
		v.run("remove_old_ranges.sql", s.queue, s.cutoff, s.members)
	}
	for _, c := range p.chains {
		v.run("remove_entries.sql", c.queue, c.number)
	}
	if len(p.chains) > 0 {
		v.run("select from @.chain where queue = any($1) order by queue for update",
			eachOf(v.trail, func(e entry) int64 { return e.queue }))
	}
	for _, c := range p.chains {
		v.run("update @.chain set gone_number = $2, gone_hash = $3 where queue = $1", c.queue, c.number, c.hash)
	}
	for _, fold := range folds {
		v.run(fold)
	}
	v.run("delete from @.death where kept and letters = 0")
	if c.PrunedTo != nil {
		v.run("insert into @.meta (name, value) values ('prune', $1) on conflict (name) do update set value = excluded.value",
			*c.PrunedTo)
	}
}
