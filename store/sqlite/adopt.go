package sqlite

import (
	"cmp"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// loadGiven reads what is here of letters from elsewhere.
func (v *verb) loadGiven(w *engine.Want, facts *engine.Facts) error {
	if len(w.Given) == 0 {
		return nil
	}
	facts.Queues, facts.Earlier = map[string]*engine.Queue{}, map[nixie.ID]engine.ItemEnd{}
	facts.ByLetter, facts.ByMessage, facts.ByOrigin = map[nixie.ID]*engine.Known{}, map[nixie.ID]*engine.Known{}, map[string]*engine.Known{}
	own := &engine.Want{}
	for _, l := range w.Given {
		if !l.ID.IsZero() {
			own.Letters = append(own.Letters, l.ID)
		}
		if err := v.loadQueueOf(l, facts); err != nil {
			return err
		}
		if err := v.loadKnown(l, facts); err != nil {
			return err
		}
	}
	if err := v.loadLetters(own, facts); err != nil {
		return err
	}
	for id, l := range facts.Letters {
		m := l.Message
		if m == nil {
			continue
		}
		facts.ByLetter[id] = &engine.Known{Letter: id, Message: m.ID, Hash: m.Hash}
		var err error
		if m.Lived, err = v.lived(m.Pos); err != nil {
			return err
		}
	}
	return nil
}

// loadQueueOf reads the queue of a letter from elsewhere, and which message there holds its key.
func (v *verb) loadQueueOf(l *nixie.Letter, facts *engine.Facts) error {
	name := l.Message.Queue
	q, err := v.queue(name)
	if q == nil && err == nil {
		if q, err = v.openQueue(name); err == nil {
			v.made = append(v.made, q)
		}
	}
	if err != nil {
		return err
	}
	if facts.Queues[name] == nil {
		facts.Queues[name] = q.fact()
	}
	return v.loadKey(engine.Key{Queue: q.n, Key: l.Message.DedupeKey}, facts)
}

// loadKnown finds the messages that a letter from elsewhere may be about, and the letter that it
// names as an earlier one.
func (v *verb) loadKnown(l *nixie.Letter, facts *engine.Facts) error {
	find := func(where string, arg any, found func(*engine.Known)) error {
		return v.each("select l.id, m.id, m.hash from message m left join letter l on l.pos = m.pos where "+where, func(r rows) error {
			k := &engine.Known{Letter: columnID(r, 0), Message: columnID(r, 1)}
			r.ColumnBytes(2, k.Hash[:])
			found(k)
			return nil
		}, arg)
	}
	if id := l.Message.ID; !id.IsZero() {
		if err := find("m.id = ?", id, func(k *engine.Known) { facts.ByMessage[id] = k }); err != nil {
			return err
		}
	}
	for _, origin := range store.OriginTexts(l.Message.Origin) {
		if err := find("m.origin = ? limit 1", origin, func(k *engine.Known) { facts.ByOrigin[origin] = k }); err != nil {
			return err
		}
	}
	if o := l.Message.Origin; o != nil && !o.Earlier.IsZero() {
		return v.each("select pos, operation from letter where id = ?", func(row rows) error {
			facts.Earlier[o.Earlier] = engine.ItemEnd{Letter: row.ColumnInt64(0), Ending: lifecycle.Ending{Operation: columnID(row, 1)}}
			return nil
		}, o.Earlier)
	}
	return nil
}

// lived returns the last generation in the history of a message.
func (v *verb) lived(pos int64) (last int, err error) {
	return last, v.each("select doc from failure where pos = +?", func(r rows) error {
		var doc failureDoc
		if fromJSON(r.ColumnText(0), &doc) == nil { // a damaged failure has no generation
			last = max(last, doc.Generation)
		}
		return nil
	}, pos)
}

// writeAdopted takes in letters from elsewhere.
func (v *verb) writeAdopted(c *engine.Changes) error {
	for _, w := range c.Adopted {
		m, given := w.Letter.Message, &w.Given.Message
		q := v.queues[m.Queue.Name]
		q.ended[lifecycle.Dead]++
		q.largest = max(q.largest, int64(len(given.Body)))
		row := &letterRow{Letter: *w.Letter.Letter, pos: m.Pos, queue: q.n}
		q.skips(m.Pos)
		if err := v.addMessage(m.Pos, m.ID, true, given, m.Hash, cmp.Or(lifecycle.Nanos(given.EnqueuedAt), v.now)); err != nil {
			return err
		}
		if err := v.writeLog(&pendingRow{Message: *m.Message, pos: m.Pos}, "", toLogWhole); err != nil {
			return err
		}
		if err := v.adoptHistory(m.Pos, q.n, w.Given); err != nil {
			return err
		}
		if err := v.adoptLetter(row, given); err != nil {
			return err
		}
		for i := range w.Given.Notes {
			n := &w.Given.Notes[i]
			if err := v.run(sqlText("adopt_note"), i, lifecycle.Nanos(n.At), n.By, n.Text, sumOf(n.By, n.Text), row.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// adoptHistory writes the failures. Their ordinals leave a gap for those that were dropped.
func (t *tx) adoptHistory(pos, queue int64, l *nixie.Letter) error {
	dropped := int64(l.HistoryDropped)
	for i := range l.History {
		f := &l.History[i]
		doc, err := docOf(f)
		if err != nil {
			return err
		}
		ordinal := int64(i) + 1
		if i > 0 || len(l.History) == 1 {
			ordinal += dropped
		}
		if err := t.insertFailure(pos, queue, ordinal, lifecycle.Nanos(f.FailedAt), f, doc, f.Decision); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) adoptLetter(l *letterRow, m *nixie.Message) error {
	if err := t.joinFacet(l, m.Type, &lifecycle.Message{Redrives: m.Redrives, Attempts: m.Attempts, Crashes: m.Crashes}); err != nil {
		return err
	}
	return t.run(sqlText("adopt_letter"),
		l.ID, l.pos, l.facet, l.queue, string(l.Status), string(l.Cause), string(l.Class), string(l.Reason), l.Signature, l.Fingerprint,
		l.Redrivable, l.NeedsReview, l.Rule, l.Text, l.FirstFailed, l.LastFailed, l.Died, idOrNull(l.Operation), l.Note, l.Revision,
		text(m.Stream), sumOf(l.Rule), sumOf(l.Note))
}
