package postgres

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/engine"
)

// Write implements engine.Tx.
func (v *verb) Write(c *engine.Changes) error {
	if c.Adjusted != nil {
		v.saveSettings(v.named[c.Adjusted.Name])
	}
	for _, q := range c.Halted {
		v.run("pause_queue.sql", q.Number, q.Settings.PausedNote)
	}
	for _, e := range c.Audit {
		v.record(e.Queue, e.Actor, e.Event, e.Subject, e.Reason)
		v.trail[len(v.trail)-1].operation = e.Operation
	}
	v.writeNew(c)
	if err := v.writeReplaced(c); err != nil {
		return err
	}
	v.writeAdopted(c)
	v.writeFailures(c)
	for _, m := range c.Messages {
		v.writeMessage(m)
	}
	v.writeExtended(c)
	v.writeEdits(c)
	for _, l := range c.Letters {
		v.writeLetter(l)
	}
	for _, key := range c.Freed {
		v.work.released = append(v.work.released, key.Pos)
		delete(v.keys, dedupeKey{key.Queue, key.Key.Key})
	}
	for own, m := range c.Taken {
		if v.work.taken == nil {
			v.work.taken = map[dedupeKey]int64{}
		}
		v.work.taken[dedupeKey{own.Queue, own.Key}] = m.Pos
	}
	for _, n := range c.Notes {
		v.run("add_note.sql", n.Letter.Pos, v.now, plain(n.By), plain(n.Text))
	}
	v.writeItems(c)
	for _, queue := range c.Wakes {
		v.wake(queue)
	}
	v.writePruning(c)
	v.dropUnused()
	return v.writeDocuments(c)
}

// writeFailures appends failures to histories. The failure by which a message died is part of its
// new letter.
func (v *verb) writeFailures(c *engine.Changes) {
	for i := range c.Failures {
		f := &c.Failures[i]
		at := v.rows[f.Message.Pos]
		v.tell(at, &f.Failure, f.Steps, f.Decision)
		if last := i+1 == len(c.Failures) || c.Failures[i+1].Message != f.Message; last && f.Message.Letter != nil {
			v.own(v.letterOf(f.Message.Letter))
		}
	}
}

// writeMessage writes a message as it is now, perhaps in another queue.
func (v *verb) writeMessage(m *engine.Message) {
	at := v.rows[m.Pos]
	if at.inStream != 0 {
		v.markDirty(at.queue, at.stream)
	}
	if to := m.Queue.Number; to != at.queue {
		at.queue, at.q, at.queuePos = to, v.queues[to], v.nextPosition()
		v.work.moved = append(v.work.moved, at)
	}
	if at.note = m.Note; at.Rank == engine.LastRank {
		at.Rank = v.nextPosition()
	}
	if at.OnItsWay() && (!at.Ordered || at.Due > v.now) { // of a due one in a stream the recomputed head tells
		v.comes(at.q.name, at.Due)
	}
	v.touch(at)
}

// letterOf returns the row of a letter, which is new if this call made the letter.
func (v *verb) letterOf(l *engine.Letter) *letterRow {
	at := v.letters[l.ID]
	if at == nil {
		at = &letterRow{letterKind: letterKind{Letter: *l.Letter, queue: l.Queue, numbered: v.numbered[l.ID]}, pos: l.Pos, m: v.rows[l.Pos]}
		at.m.letter, v.letters[l.ID] = at, at
	}
	return at
}

// writeLetter writes a letter. If it returned to its stream, the next message there gets a row: a
// claim by the ordered path could not see that it passes the dead one.
func (v *verb) writeLetter(l *engine.Letter) {
	at := v.letterOf(l)
	v.touchLetter(at)
	if l.Dies && at.stored {
		v.outgrow(at) // what its own failure tells is not its newest death
	}
	if at.was && !at.InStream {
		v.markDirty(at.queue, at.m.stream)
	}
	if at.was || !at.InStream {
		return
	}
	for _, m := range v.rows {
		if m.in == onOrderedPath && m.queue == at.queue && m.stream == at.m.stream {
			v.touch(m)
		}
	}
}

// writeItems decides items, ends those of redrives that were overtaken, and removes letters.
func (v *verb) writeItems(c *engine.Changes) {
	if list := c.Decided; len(list) > 0 {
		v.run("decide_items.sql", eachOf(list, func(it engine.ItemChange) int64 { return it.Letter }),
			eachOf(list, func(it engine.ItemChange) [16]byte { return it.Operation }),
			eachOf(list, func(it engine.ItemChange) string { return string(it.State) }),
			eachOf(list, func(it engine.ItemChange) string { return plain(it.Group) }), v.now)
	}
	for _, e := range c.Ends {
		v.ends(e.Letter, e.Ending)
	}
	if list := c.Regrouped; len(list) > 0 {
		v.run("regroup_items.sql", eachOf(list, func(r engine.Regrouped) int64 { return r.Letter.Pos }),
			eachOf(list, func(r engine.Regrouped) [16]byte { return r.Letter.Operation }),
			eachOf(list, func(r engine.Regrouped) string { return r.Was }),
			eachOf(list, func(r engine.Regrouped) string { return plain(r.Letter.Fingerprint) }))
	}
	if len(c.Removed) == 0 {
		return
	}
	dirty := v.work.dirty // the heads of their streams are recomputed at the end
	v.flush()             // what the call changed of them before, which the counters need
	v.work.dirty = dirty
	positions := eachOf(c.Removed, func(gone engine.Removal) int64 { return gone.Letter.Pos })
	v.run("skip_items.sql", positions, eachOf(c.Removed, func(gone engine.Removal) *[16]byte { return idOrNull(gone.Operation) }), v.now)
	v.remove("purged", positions)
}

// NewID implements engine.Tx.
func (v *verb) NewID(pos int64) nixie.ID {
	id, numbered := v.newID(pos)
	if v.facts.New != nil { // writeNew knows
		return id
	}
	if v.numbered == nil {
		v.numbered = map[nixie.ID]bool{}
	}
	v.numbered[id] = numbered
	return id
}

// Remember implements engine.Tx.
func (v *verb) Remember(scope, key string) (first bool, err error) {
	if err := v.time(); err != nil {
		return false, err
	}
	v.read(func(row) error { first = true; return nil },
		"insert into @.inbox (scope, key, at) values ($1, $2, $3) on conflict do nothing returning at", scope, key, v.now)
	err = v.send()
	return first, err
}

// Forget implements engine.Tx.
func (v *verb) Forget(until int64, most int) (n int, err error) {
	v.read(func(row) error { n++; return nil }, "forget_keys.sql", until, most)
	err = v.send()
	return n, err
}

// After implements engine.Tx.
func (v *verb) After(f func()) { v.after = append(v.after, f) }
