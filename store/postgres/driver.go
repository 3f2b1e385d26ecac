package postgres

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
)

// engineDriver keeps facts for the engine. Load sends the locks and the reads of a call together.
// Write leaves what was decided to flush, which sends it with the commit.
type engineDriver struct{ *Store }

// Update implements engine.Driver.
func (d engineDriver) Update(ctx context.Context, how engine.How, f func(engine.Tx) error) error {
	err := d.write(ctx, func(t *tx) error { return f(&verb{tx: t}) })
	if err == nil && how.Letters > 0 {
		d.changed(ctx, how.Letters)
	}
	return err
}

// verbs are the methods of a store that the engine has. The others of this package decide
// themselves.
type verbs = engine.Engine

// verb is one call of the engine in a transaction.
type verb struct {
	*tx
	facts *engine.Facts
	about map[int64]*engine.Message // by position
}

// Load implements engine.Tx.
func (v *verb) Load(w *engine.Want) (*engine.Facts, error) {
	if len(w.Letters) == 0 {
		return v.loadQueues(w)
	}
	v.facts = &engine.Facts{Letters: map[nixie.ID]*engine.Letter{}, Keys: map[engine.Key]int64{},
		Operations: map[nixie.ID]store.Event{}, Items: map[engine.ItemKey]*engine.Item{}}
	v.about = map[int64]*engine.Message{}
	list := uuids(w.Letters)
	v.holdLetters(list, w.Rejoins)
	if len(w.Operations) > 0 {
		v.readItems(w.Operations, list)
	}
	v.readAbout(list, w.Headers)
	selected := map[nixie.ID]bool{}
	if w.Selected {
		v.readSelected(list, selected)
	}
	v.draw(len(w.Letters))
	if err := v.send(); err != nil {
		return nil, err
	}
	if err := v.checkLocks(); err != nil {
		return nil, err
	}
	v.facts.Now, v.facts.Wall = v.now, v.now
	for id, l := range v.letters {
		l.was = l.InStream
		v.facts.Letters[id] = &engine.Letter{Letter: &l.Letter, Pos: l.pos, Queue: l.queue, Notes: l.notes, Selected: selected[id],
			Message: v.message(l.m)}
	}
	for own, has := range v.keys {
		v.facts.Keys[engine.Key{Queue: own.queue, Key: own.key}] = has.pos
	}
	return v.facts, nil
}

// loadQueues reads the queues that a call names, and the time.
func (v *verb) loadQueues(w *engine.Want) (*engine.Facts, error) {
	facts := &engine.Facts{Queues: map[string]*engine.Queue{}}
	var err error
	made := false
	switch {
	case w.Adjust != "":
		made, err = v.lockQueue(w.Adjust)
	case w.Others != "":
		facts.Others, err = v.otherSettings(w.Others)
	default:
		v.clock()
		if w.Queue != "" {
			v.readQueues("name = $1", w.Queue)
		}
		err = v.send()
	}
	for name, q := range v.named {
		facts.Queues[name] = q.fact()
		facts.Queues[name].Made = made
	}
	facts.Now, facts.Wall = v.now, v.now
	return facts, err
}

func (q *queueRow) fact() *engine.Queue {
	return &engine.Queue{Number: q.n, Name: q.name, Settings: &q.settings}
}

// message completes what readAbout read of a message.
func (v *verb) message(m *message) *engine.Message {
	if m == nil {
		return nil
	}
	about := v.about[m.pos]
	about.Message, about.Pos, about.Stream, about.Dedupe = &m.Message, m.pos, m.stream, m.dedupe
	about.Expires, about.Hash, about.Note = m.expires, m.hash, m.note
	about.Queue = m.q.fact()
	return about
}

// holdLetters locks letters, with all that belongs to them, and reads them. It opens the streams
// that their messages may be appended to; with rejoins it also locks the ordered paths of these.
func (v *verb) holdLetters(list [][16]byte, rejoins bool) {
	v.lockQueues("n in (select queue from @.letter where pos"+which().letters+")", list)
	if rejoins {
		v.lock(&v.locked.cursors, "lock_cursors_of_letters.sql", list)
	}
	// Streams are made for messages that may be appended to them.
	v.openStreamsOf(texts()["streams_to_resolve"], list)
	v.lock(&v.locked.pending, "select pos from @.pending where pos"+which().letters+" order by pos for update", list)
	v.lock(&v.locked.letters, "select pos from @.letter where pos"+which().letters+" order by pos for update", list)
	v.openKeys("select queue, dedupe from @.message where pos"+which().letters+" and dedupe is not null", list)
	v.clock()
	v.readMessages("c.pos"+which().letters, list)
	if rejoins {
		v.readMessages("c.pos = any(array("+texts()["firsts_without_row"]+"))", list)
	}
	v.readLetters("pos"+which().letters, list)
}

// readAbout reads of the messages of letters what only these verbs want: where a body lies that the
// message does not have, and with headers those.
func (v *verb) readAbout(list [][16]byte, headers bool) {
	v.read(func(row row) error {
		about := &engine.Message{}
		var pos int64
		var origin, text string
		if err := row.Scan(&pos, &origin, &text); err != nil {
			return err
		}
		about.BodyAt = store.BodyAt(origin)
		if err := fromJSON(text, &about.Headers); err != nil {
			about.Unread = nixie.Errorf(nixie.CodeInternal, "headers of the message at %d cannot be read: %w", pos, err)
		}
		v.about[pos] = about
		return nil
	}, "read_about.sql", list, headers)
}

// readItems locks and reads the items of operations about the letters.
func (v *verb) readItems(operations []nixie.ID, letters [][16]byte) {
	v.read(func(row row) error {
		var id nixie.ID
		var event store.Event
		err := row.Scan((*idColumn)(&id), &event)
		v.facts.Operations[id] = event
		return err
	}, "select id, event from @.operation where id = any($1)", uuids(operations))
	v.read(func(row row) error {
		var at engine.ItemKey
		it := &engine.Item{}
		err := row.Scan((*idColumn)(&at.Operation), (*idColumn)(&at.Letter), &it.State, &it.Planned)
		v.facts.Items[at] = it
		return err
	}, "lock_items.sql", letters, uuids(operations))
}

// readSelected reads which letters operations are yet to move.
func (v *verb) readSelected(letters [][16]byte, into map[nixie.ID]bool) {
	v.read(func(row row) error {
		var id nixie.ID
		err := row.Scan((*idColumn)(&id))
		into[id] = true
		return err
	}, "select l.id from @.letter l join @.item i on i.letter = l.pos where i.state = 'pending' and l.pos"+which().letters, letters)
}

// Write implements engine.Tx.
func (v *verb) Write(c *engine.Changes) error {
	if c.Adjusted != nil {
		v.saveSettings(v.named[c.Adjusted.Name])
	}
	for _, e := range c.Audit {
		v.record(e.Queue, e.Actor, e.Event, e.Subject, e.Reason)
		v.trail[len(v.trail)-1].operation = e.Operation
	}
	for _, m := range c.Messages {
		at := v.rows[m.Pos]
		if at.note = m.Note; at.Rank == engine.LastRank {
			at.Rank = v.nextPosition()
		}
		v.touch(at)
	}
	v.writeEdits(c)
	for _, l := range c.Letters {
		v.writeLetter(l)
	}
	for _, m := range c.Freed {
		v.work.released = append(v.work.released, m.Pos)
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
	return nil
}

// writeLetter writes a letter. If it returned to its stream, the next message there gets a row: a
// claim by the ordered path could not see that it passes the dead one.
func (v *verb) writeLetter(l *engine.Letter) {
	at := v.letters[l.ID]
	v.touchLetter(at)
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
