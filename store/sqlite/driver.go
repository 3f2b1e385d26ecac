package sqlite

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// engineDriver keeps facts for the engine. The committer is its Update: it runs calls in one
// transaction with others. Nothing needs locks, because only one transaction writes at a time.
type engineDriver struct{ *Store }

// Update implements engine.Driver.
func (d engineDriver) Update(ctx context.Context, how engine.How, f func(engine.Tx) error) error {
	if how.Reads {
		return d.read(ctx, func(c conn) error {
			now := d.look()
			return f((&tx{queries: queries{c}, store: d.Store, now: now.store, at: now}).verb())
		})
	}
	if err := d.hasRoom(how); err != nil {
		return err
	}
	if err := d.enter(ctx); err != nil {
		return err
	}
	defer d.gate.leave()
	return d.submit(ctx, how.Bytes, how.Claims != "", func(t *tx) error { return f(t.verb()) })
}

// hasRoom refuses a call that adds bytes when space is short.
func (s *Store) hasRoom(how engine.How) error {
	if how.Bytes == 0 || how.Ends {
		return nil
	}
	return s.space.check(s.now(), how.Bytes)
}

// CompletePlain implements engine.Driver: a call is one transaction, and [verb.Complete] is in it.
func (d engineDriver) CompletePlain(context.Context, []nixie.Settlement) ([]bool, error) {
	return nil, nil
}

// verb begins a call of the engine in the transaction.
func (t *tx) verb() *verb {
	return &verb{tx: t}
}

// After implements engine.Tx.
func (v *verb) After(f func()) { v.after = append(v.after, f) }

// verbs are the methods of a store that the engine has. The others of this package decide
// themselves.
type verbs = engine.Engine

// verb is one call of the engine in a transaction.
type verb struct {
	*tx
	letters  map[int64]*letterFacts  // by position
	messages map[int64]*held         // the same
	made     []*queueRow             // for messages that may be refused
	into     *engine.Queue           // of the new message at hand
	checked  map[int64]*checkedRange // by batch
}

// letterFacts has the row of a letter, as it is and as it was read.
type letterFacts struct {
	letterRow
	was letterRow
	q   *queueRow
}

// Load implements engine.Tx.
func (v *verb) Load(w *engine.Want) (*engine.Facts, error) {
	facts := &engine.Facts{Now: v.now, Wall: v.at.wall, Due: v.at.due}
	if w.Pruning || w.From > 0 {
		return facts, v.loadPruning(w, facts)
	}
	if len(w.New) > 0 {
		return facts, v.loadNew(w, facts)
	}
	if v.letters == nil {
		v.letters, v.messages = map[int64]*letterFacts{}, map[int64]*held{}
	}
	facts.Keys = map[engine.Key]engine.Holder{}
	if err := v.loadQueues(w, facts); err != nil {
		return nil, err
	}
	facts.Messages, facts.Letters = map[nixie.ID]*engine.Message{}, map[nixie.ID]*engine.Letter{}
	facts.Operations, facts.Items = map[nixie.ID]store.Event{}, map[engine.ItemKey]*engine.Item{}
	ids := w.Messages
	if w.Queued != nil {
		var err error
		if facts.Found, err = v.queued(w.Queued); err != nil {
			return nil, err
		}
		ids = facts.Found
	}
	for _, id := range ids {
		if facts.Messages[id] != nil {
			continue
		}
		if err := v.loadMessage(id, w, facts); err != nil {
			return nil, err
		}
	}
	if err := v.loadLeases(w, facts); err != nil {
		return nil, err
	}
	if err := v.loadOver(w, facts); err != nil {
		return nil, err
	}
	if err := v.loadStream(w, facts); err != nil {
		return nil, err
	}
	if err := v.loadDocuments(w, facts); err != nil {
		return nil, err
	}
	if err := v.loadGiven(w, facts); err != nil {
		return nil, err
	}
	return facts, v.loadLetters(w, facts)
}

// loadQueues reads the queues that a call names.
func (v *verb) loadQueues(w *engine.Want, facts *engine.Facts) (err error) {
	if w.Others != "" {
		facts.Others, err = v.otherSettings(w.Others)
		return err
	}
	name := cmp.Or(w.Adjust, w.Into, w.Open, w.Queue)
	if name == "" {
		return nil
	}
	q, err := v.queue(name)
	made := q == nil && name != w.Queue
	if made && err == nil {
		q, err = v.openQueue(name)
	}
	if q == nil || err != nil {
		return err
	}
	if made && w.Into != "" {
		v.made = append(v.made, q)
	}
	facts.Queues = map[string]*engine.Queue{name: q.fact()}
	facts.Queues[name].Made = made
	return nil
}

// otherSettings reads the settings of all queues but one.
func (v *verb) otherSettings(name string) (map[string]nixie.QueueSettings, error) {
	others := map[string]nixie.QueueSettings{}
	if err := v.flush(); err != nil {
		return nil, err
	}
	return others, v.each("select name, settings from queue where name <> ?", func(row rows) error {
		var q nixie.QueueSettings
		err := fromJSON(row.ColumnText(1), &q)
		others[row.ColumnText(0)] = q
		return err
	}, name)
}

func (q *queueRow) fact() *engine.Queue {
	return &engine.Queue{Number: q.n, Name: q.name, Settings: &q.settings, Taken: q.last, Most: maxSeq}
}

// loadLetters reads letters, with their messages and their items of operations.
func (v *verb) loadLetters(w *engine.Want, facts *engine.Facts) error {
	if len(w.Letters) == 0 {
		return nil
	}
	if err := v.each(sqlText("letters_to_change"), func(row rows) error {
		v.scanLetter(row, facts)
		return nil
	}, listed(w.Letters, func(id nixie.ID) string { return hex.EncodeToString(id[:]) }), w.Headers); err != nil {
		return err
	}
	for _, l := range facts.Letters {
		if err := v.complete(l, w); err != nil {
			return err
		}
	}
	for _, op := range w.Operations {
		if err := v.loadItems(op, facts); err != nil {
			return err
		}
	}
	for _, l := range facts.Letters {
		if m := l.Message; m != nil {
			if err := v.loadKey(engine.Key{Queue: m.Queue.Number, Key: m.Dedupe}, facts); err != nil {
				return err
			}
		}
	}
	return nil
}

// scanLetter reads a row of letters_to_change.
func (v *verb) scanLetter(row rows, facts *engine.Facts) {
	f := &letterFacts{letterRow: letterRow{
		pos: row.ColumnInt64(0), queue: row.ColumnInt64(1), stream: row.ColumnInt64(7), facet: row.ColumnInt64(10),
		Letter: lifecycle.Letter{
			ID: columnID(row, 2), Status: nixie.Status(row.ColumnText(3)), Redrivable: row.ColumnBool(4), NeedsReview: row.ColumnBool(5),
			Revision: row.ColumnInt64(6), InStream: row.ColumnInt64(7) != 0, Rank: row.ColumnInt64(8), Blocks: row.ColumnBool(9),
			Died: row.ColumnInt64(11), Operation: columnID(row, 12), Note: row.ColumnText(13),
			Resolved: row.ColumnInt64(35), FirstFailed: row.ColumnInt64(36),
		},
	}}
	l := &engine.Letter{Letter: &f.Letter, Pos: f.pos, Queue: f.queue}
	v.letters[f.pos], facts.Letters[l.ID] = f, l
	h := &held{log: row.ColumnInt(24), name: row.ColumnText(17)}
	if h.ID = columnID(row, 16); h.ID.IsZero() {
		return
	}
	h.pos, h.queue, h.priority, h.Ended = f.pos, f.queue, row.ColumnInt(19), row.ColumnInt64(15)
	h.State, h.Attempts, h.Deliveries, h.Crashes = h.log, row.ColumnInt(25), row.ColumnInt(26), row.ColumnInt(27)
	h.Generation, h.Redrives, h.Redriven, h.Number = row.ColumnInt(28), row.ColumnInt(29), row.ColumnInt64(30), row.ColumnInt64(31)
	h.Received, h.Gap = row.ColumnInt64(32), row.ColumnBool(34)
	if row.ColumnBool(14) {
		h.was.pos = h.pos
	}
	m := &engine.Message{Message: &h.Message, Pos: f.pos, Stream: h.name, Dedupe: row.ColumnText(18),
		Expires: row.ColumnInt64(20), BodyAt: store.BodyAt(row.ColumnText(22))}
	row.ColumnBytes(21, m.Hash[:])
	m.Unread = fromJSON(row.ColumnText(23), &m.Headers)
	m.Damage = fromJSON(row.ColumnText(33), &h.Steps)
	l.Message, v.messages[h.pos] = m, h
}

// complete reads what belongs to a letter and lies in other rows.
func (v *verb) complete(l *engine.Letter, w *engine.Want) (err error) {
	if err := v.describe(l); err != nil {
		return err
	}
	if w.Selected {
		waits, err := v.number("select exists (select 1 from item where letter = ? and state = 'pending')", l.Pos)
		if err != nil {
			return err
		}
		l.Selected = waits != 0
	}
	if w.Notes {
		have, err := v.number("select count(*) from note where letter = ?", l.Pos)
		if err != nil {
			return err
		}
		l.Notes = int(have)
	}
	m, h := l.Message, v.messages[l.Pos]
	if m == nil {
		return nil
	}
	h.q = v.letters[l.Pos].q
	m.Queue = h.q.fact()
	if h.was.pos != 0 {
		return v.holdRow(h, m.ID)
	}
	if h.log == 0 {
		m.Damage = nixie.Errorf(nixie.CodeInternal, "log row of letter %s is gone: run nixie verify", l.ID)
	}
	return nil
}

// describe reads the queue and the facet of a letter.
func (v *verb) describe(l *engine.Letter) (err error) {
	f := v.letters[l.Pos]
	if f.q, err = v.queueAt(l.Pos); err != nil {
		return err
	}
	k, err := v.facetOfLetter(&f.letterRow)
	if err != nil && nixie.CodeOf(err) != nixie.CodeInternal {
		return err
	}
	l.Damage, f.Cause, f.Class, f.Reason = err, k.cause, k.class, k.reason
	f.Signature, f.Fingerprint = k.signature, k.fingerprint
	if h := v.messages[l.Pos]; h != nil {
		h.mtype = k.mtype
	}
	f.was = f.letterRow
	return nil
}

// holdRow reads the row of pending of a message.
func (v *verb) holdRow(h *held, id nixie.ID) error {
	row, err := v.pending(h.pos)
	if err != nil {
		return err
	}
	row.ID = id
	h.pendingRow, h.was = *row, *row
	return nil
}

// loadMessage reads a message, and the letter that it has from an earlier generation.
func (v *verb) loadMessage(id nixie.ID, w *engine.Want, facts *engine.Facts) (err error) {
	h := &held{}
	m := &h.fact
	if err := v.each("select pos, type, stream, dedupe, enqueued from message where id = ?", func(row rows) error {
		h.pos, h.mtype, h.name, m.Dedupe = row.ColumnInt64(0), row.ColumnText(1), row.ColumnText(2), row.ColumnText(3)
		h.enqueued = row.ColumnInt64(4)
		return nil
	}, id); err != nil || h.pos == 0 {
		return err
	}
	if h.q, err = v.queueAt(h.pos); err != nil {
		return err
	}
	if err := v.locate(h, id); err != nil {
		if nixie.CodeOf(err) != nixie.CodeInternal {
			return err
		}
		m.Damage = err
	}
	h.ID = id
	m.Message, m.Pos, m.Queue, m.Stream = &h.Message, h.pos, h.q.fact(), h.name
	v.messages[h.pos], facts.Messages[id] = h, m
	if w.Failures {
		if m.First, m.Last, err = v.failuresOf(h.pos); err != nil {
			return err
		}
	}
	if to := facts.Queues[w.Into]; to != nil {
		if err := v.loadKey(engine.Key{Queue: to.Number, Key: m.Dedupe}, facts); err != nil {
			return err
		}
	}
	return v.loadLetterOf(h)
}

// loadLetterOf reads the letter that a message has from an earlier generation.
func (v *verb) loadLetterOf(h *held) error {
	if h.Generation <= 1 {
		return nil
	}
	row, err := v.letter(sqlText("letter_at"), h.pos)
	if row == nil || err != nil {
		return err
	}
	f := &letterFacts{letterRow: *row}
	v.letters[h.pos] = f
	h.fact.Letter = &engine.Letter{Letter: &f.Letter, Pos: h.pos, Queue: f.queue, Message: &h.fact}
	return v.describe(h.fact.Letter)
}

// locate finds out where a message is: queued or leased with a row, queued as a new one, leased in
// a batch, or ended.
func (v *verb) locate(h *held, id nixie.ID) error {
	st, err := v.stateOf(h.pos)
	switch {
	case err != nil:
		return err
	case st.hasRow:
		return v.holdRow(h, id)
	case st.state == lifecycle.Queued:
		h.fresh = true
		h.pendingRow = pendingRow{pos: h.pos, queue: h.q.n, Message: lifecycle.Fresh(h.enqueued)}
		return nil
	case st.state != lifecycle.Leased:
		h.log, h.State, h.queue = st.state, st.state, h.q.n
		return nil
	}
	n, err := v.number("select n from batch where first <= ?1 and last >= ?1", h.pos)
	if err != nil {
		return err
	}
	if h.batch, err = v.batch(n); err != nil {
		return err
	}
	if h.batch == nil {
		return nixie.Errorf(nixie.CodeInternal, "message at %d is leased by no batch: run nixie verify", h.pos)
	}
	h.pendingRow = h.batch.member(h.pos)
	return nil
}

// loadKey reads which message holds a dedupe key.
func (v *verb) loadKey(own engine.Key, facts *engine.Facts) error {
	if _, known := facts.Keys[own]; known || own.Key == "" {
		return nil
	}
	if facts.Keys == nil {
		facts.Keys = map[engine.Key]engine.Holder{}
	}
	return v.each(sqlText("key_holder"), func(row rows) error {
		by := engine.Holder{Pos: row.ColumnInt64(0), ID: columnID(row, 1)}
		if by.ID.IsZero() {
			return nixie.Errorf(nixie.CodeInternal, "dedupe key %q of queue %s has no holder: run nixie verify", own.Key,
				v.byNumber[own.Queue].name)
		}
		row.ColumnBytes(2, by.Hash[:])
		facts.Keys[own] = by
		return nil
	}, own.Queue, own.Key)
}

// loadItems reads an operation, and its items for the letters.
func (v *verb) loadItems(id nixie.ID, facts *engine.Facts) error {
	var n int64
	guarded := false
	if err := v.each("select n, event, guarded from operation where id = ?", func(row rows) error {
		n, guarded = row.ColumnInt64(0), row.ColumnBool(2)
		facts.Operations[id] = store.Event(row.ColumnText(1))
		return nil
	}, id); err != nil || n == 0 {
		return err
	}
	return v.each(sqlText("items_of"), func(row rows) error {
		it := &engine.Item{State: lifecycle.Item(row.ColumnText(1))}
		if guarded {
			it.Planned = row.ColumnInt64(2)
		}
		facts.Items[engine.ItemKey{Operation: id, Letter: v.letters[row.ColumnInt64(0)].ID}] = it
		return nil
	}, n, v.positions(facts))
}

// positions lists where letters lie.
func (v *verb) positions(facts *engine.Facts) string {
	list := make([]int64, 0, len(facts.Letters))
	for _, l := range facts.Letters {
		list = append(list, l.Pos)
	}
	return listed(list, func(pos int64) int64 { return pos })
}

// listed returns a list as JSON.
func listed[S any, T string | int64](list []S, of func(S) T) string {
	values := make([]T, len(list))
	for i, v := range list {
		values[i] = of(v)
	}
	data, _ := json.Marshal(values) // texts of digits and numbers always encode
	return string(data)
}
