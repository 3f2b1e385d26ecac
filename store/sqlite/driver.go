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
func (d engineDriver) Update(ctx context.Context, _ engine.How, f func(engine.Tx) error) error {
	return d.write(ctx, 0, func(t *tx) error { return f(&verb{tx: t, letters: map[int64]*letterFacts{}}) })
}

// verbs are the methods of a store that the engine has. The others of this package decide
// themselves.
type verbs = engine.Engine

// verb is one call of the engine in a transaction.
type verb struct {
	*tx
	letters map[int64]*letterFacts // by position
}

// letterFacts has the rows of a letter and of its message, as they are and as they were read.
type letterFacts struct {
	letterRow
	was     letterRow
	message pendingRow // its message: also one that has ended, and so no row of pending
	waits   pendingRow // its row of pending as read; the position is 0 if it has none
	log     int        // state of its row of log; 0 if it has none
	q       *queueRow
	name    string // of the stream of its message
}

// Load implements engine.Tx.
func (v *verb) Load(w *engine.Want) (*engine.Facts, error) {
	facts := &engine.Facts{Now: v.now, Wall: v.at.wall}
	if err := v.loadQueues(w, facts); err != nil || len(w.Letters) == 0 {
		return facts, err
	}
	facts.Letters, facts.Keys = map[nixie.ID]*engine.Letter{}, map[engine.Key]int64{}
	facts.Operations, facts.Items = map[nixie.ID]store.Event{}, map[engine.ItemKey]*engine.Item{}
	if err := v.each(sqlText("letters_to_change"), func(row rows) error {
		v.scanLetter(row, facts)
		return nil
	}, listed(w.Letters, func(id nixie.ID) string { return hex.EncodeToString(id[:]) }), w.Headers); err != nil {
		return nil, err
	}
	for _, l := range facts.Letters {
		if err := v.complete(l, w); err != nil {
			return nil, err
		}
	}
	for _, op := range w.Operations {
		if err := v.loadItems(op, facts); err != nil {
			return nil, err
		}
	}
	return facts, v.loadKeys(facts)
}

// loadQueues reads the queues that a call names.
func (v *verb) loadQueues(w *engine.Want, facts *engine.Facts) (err error) {
	if w.Others != "" {
		facts.Others, err = v.otherSettings(w.Others)
		return err
	}
	name := cmp.Or(w.Adjust, w.Queue)
	q, err := v.queue(name)
	made := q == nil && w.Adjust != ""
	if made && err == nil {
		q, err = v.openQueue(name)
	}
	if q == nil || err != nil {
		return err
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
	return &engine.Queue{Number: q.n, Name: q.name, Settings: &q.settings}
}

// scanLetter reads a row of letters_to_change.
func (v *verb) scanLetter(row rows, facts *engine.Facts) {
	f := &letterFacts{letterRow: letterRow{
		pos: row.ColumnInt64(0), queue: row.ColumnInt64(1), stream: row.ColumnInt64(7), facet: row.ColumnInt64(10),
		Letter: lifecycle.Letter{
			ID: columnID(row, 2), Status: nixie.Status(row.ColumnText(3)), Redrivable: row.ColumnBool(4), NeedsReview: row.ColumnBool(5),
			Revision: row.ColumnInt64(6), InStream: row.ColumnInt64(7) != 0, Rank: row.ColumnInt64(8), Blocks: row.ColumnBool(9),
			Died: row.ColumnInt64(11), Operation: columnID(row, 12), Note: row.ColumnText(13),
			Resolved: row.ColumnInt64(35),
		},
	}}
	if row.ColumnBool(14) {
		f.waits.pos = f.pos
	}
	p := &f.message
	*p = pendingRow{pos: f.pos, queue: f.queue, priority: row.ColumnInt(19)}
	p.ID, p.Ended = columnID(row, 16), row.ColumnInt64(15)
	f.log = row.ColumnInt(24)
	p.State, p.Attempts, p.Deliveries, p.Crashes = f.log, row.ColumnInt(25), row.ColumnInt(26), row.ColumnInt(27)
	p.Generation, p.Redrives, p.Redriven, p.Number = row.ColumnInt(28), row.ColumnInt(29), row.ColumnInt64(30), row.ColumnInt64(31)
	p.Received, p.Gap = row.ColumnInt64(32), row.ColumnBool(34)
	l := &engine.Letter{Letter: &f.Letter, Pos: f.pos, Queue: f.queue}
	v.letters[f.pos], facts.Letters[l.ID] = f, l
	if p.ID.IsZero() {
		return
	}
	m := &engine.Message{Message: &p.Message, Pos: f.pos, Stream: row.ColumnText(17), Dedupe: row.ColumnText(18),
		Expires: row.ColumnInt64(20), BodyAt: store.BodyAt(row.ColumnText(22))}
	row.ColumnBytes(21, m.Hash[:])
	m.Unread = fromJSON(row.ColumnText(23), &m.Headers)
	m.Damage = fromJSON(row.ColumnText(33), &p.Steps)
	l.Message, f.name = m, m.Stream
}

// complete reads what belongs to a letter and lies in other rows.
func (v *verb) complete(l *engine.Letter, w *engine.Want) error {
	f, m := v.letters[l.Pos], l.Message
	var err error
	if f.q, err = v.queueAt(l.Pos); err != nil {
		return err
	}
	k, err := v.facetOfLetter(&f.letterRow)
	if err != nil && nixie.CodeOf(err) != nixie.CodeInternal {
		return err
	}
	l.Damage, f.Cause, f.Signature, f.Fingerprint = err, k.cause, k.signature, k.fingerprint
	f.was = f.letterRow
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
	if m == nil {
		return nil
	}
	m.Queue = f.q.fact()
	if f.waits.pos == 0 {
		if f.log == 0 {
			m.Damage = nixie.Errorf(nixie.CodeInternal, "log row of letter %s is gone: run nixie verify", l.ID)
		}
		return nil
	}
	row, err := v.pending(l.Pos)
	if err != nil {
		return err
	}
	row.ID = m.ID
	f.waits, f.message = *row, *row
	return nil
}

// loadKeys reads which messages hold the dedupe keys of messages.
func (v *verb) loadKeys(facts *engine.Facts) error {
	for _, l := range facts.Letters {
		m := l.Message
		if m == nil || m.Dedupe == "" {
			continue
		}
		holder, err := v.number("select pos from dedupe where queue = ? and key = ?", m.Queue.Number, m.Dedupe)
		if err != nil {
			return err
		}
		if holder != 0 {
			facts.Keys[engine.Key{Queue: m.Queue.Number, Key: m.Dedupe}] = holder
		}
	}
	return nil
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
