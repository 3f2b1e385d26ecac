package sqlite

import (
	"cmp"
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// A position contains a queue number and a sequence number in one integer.
const (
	seqBits   = 40
	maxSeq    = 1<<seqBits - 1
	maxQueues = 1 << 22
)

// EnqueuePlain implements engine.Driver: a call is one transaction, which writes all new rows
// together.
func (d engineDriver) EnqueuePlain(context.Context, []nixie.Message) ([]nixie.Receipt, error) {
	return nil, nil
}

// loadNew opens the queues of messages that are to be taken in, and reads which of their IDs exist
// and which messages hold their keys.
func (v *verb) loadNew(w *engine.Want, facts *engine.Facts) error {
	facts.New, v.into = make([]engine.Arrival, len(w.New)), nil
	for i := range w.New {
		m := &w.New[i]
		q, err := v.openFor(m.Queue, facts)
		if err != nil {
			return err
		}
		facts.New[i].Queue = q
		if err := v.loadID(m.ID, facts); err != nil {
			return err
		}
		own := engine.Key{Queue: q.Number, Key: m.DedupeKey}
		if own.Key == "" {
			continue
		}
		if err := v.loadKey(own, facts); err != nil {
			return err
		}
		if m.OnConflict == nixie.ReplaceExisting {
			if err := v.loadState(own, facts); err != nil {
				return err
			}
		}
	}
	return nil
}

// openFor opens the queue of a message, which is that of the one before or is looked up.
func (v *verb) openFor(name string, facts *engine.Facts) (*engine.Queue, error) {
	last := v.into
	switch {
	case last == nil:
	case last.Name == name:
		return last, nil
	case facts.Queues == nil: // most calls have one queue
		facts.Queues = map[string]*engine.Queue{last.Name: last}
	}
	if v.into = facts.Queues[name]; v.into != nil {
		return v.into, nil
	}
	q, err := v.openQueue(name)
	if err != nil {
		return nil, err
	}
	if v.into = q.fact(); last != nil {
		facts.Queues[name] = v.into
	}
	return v.into, nil
}

// loadState reads whether the message that holds a key was claimed.
func (v *verb) loadState(own engine.Key, facts *engine.Facts) error {
	by, held := facts.Keys[own]
	if !held {
		return nil
	}
	st, err := v.stateOf(by.Pos)
	by.State, by.Deliveries = st.state, st.deliveries
	facts.Keys[own] = by
	return err
}

// loadID reads whether there is a message with an ID that a sender gave.
func (v *verb) loadID(id nixie.ID, facts *engine.Facts) error {
	if id.IsZero() {
		return nil
	}
	if facts.IDs == nil {
		facts.IDs = map[nixie.ID]bool{}
	}
	return v.each("select 1 from message where id = ?", func(rows) error {
		facts.IDs[id] = true
		return nil
	}, id)
}

// Append implements engine.Tx.
func (v *verb) Append(to *engine.Queue) int64 {
	q := v.queues[to.Name]
	q.last++
	q.dirty = true
	return q.n<<seqBits | q.last
}

// skips notes that claims by range do not take the newest message of the queue: if no new one lies
// before it, they start behind it.
func (q *queueRow) skips(pos int64) {
	if q.fresh == 0 {
		q.cursor = max(q.cursor, pos&maxSeq)
	}
}

// writeNew takes messages in. Those that are plain have no row of pending.
func (v *verb) writeNew(c *engine.Changes) error {
	for _, m := range c.New {
		q, given := v.queues[m.Queue.Name], m.Given
		own := m.Due > v.now || given.Priority != 0 || m.Ordered
		if err := v.addMessage(m.Pos, m.ID, own, given, m.Hash, v.now); err != nil {
			return err
		}
		q.largest = max(q.largest, int64(len(given.Body)))
		if m.Due <= v.now {
			v.wake(q.name)
		}
		if given.DedupeKey != "" {
			if err := v.takeKey(q.n, given.DedupeKey, m.Pos); err != nil {
				return err
			}
		}
		if !own {
			q.fresh++
			continue
		}
		q.skips(m.Pos)
		row := &pendingRow{pos: m.Pos, queue: q.n, priority: given.Priority, Message: m.Message()}
		if m.Ordered {
			var err error
			if row.stream, err = v.openStream(q, given.Stream); err != nil {
				return err
			}
			v.markDirty(q, row.stream)
		}
		if err := v.insertPending(row); err != nil {
			return err
		}
	}
	return nil
}

// addMessage adds a row of message.
func (t *tx) addMessage(pos int64, id nixie.ID, own bool, m *nixie.Message, hash nixie.Hash, enqueued int64) error {
	headers, origin := textOf(jsonText(len(m.Headers) == 0, m.Headers)), store.OriginText(m.Origin)
	row := t.added.add(toMessage)
	row.num(pos).bytes(id[:]).flag(own).strOrNull(m.Type).strOrNull(m.Key).strOrNull(m.Stream).strOrNull(m.DedupeKey)
	row.num(int64(m.Priority)).bytes(m.Body).bytes(hash[:]).strOrNull(headers).strOrNull(origin)
	row.num(enqueued).num(lifecycle.Nanos(m.ExpiresAt)).num(messageSum(m, headers, origin))
	return t.added.end(row)
}

// writeReplaced overwrites messages that wait. They keep ID, position and origin.
func (v *verb) writeReplaced(c *engine.Changes) error {
	for _, r := range c.Replaced {
		m, was, origin := r.By.Given, nixie.Message{DedupeKey: r.By.Given.DedupeKey}, ""
		if err := v.each("select key, stream, origin from message where pos = ?", func(row rows) error {
			was.Key, was.Stream, origin = row.ColumnText(0), row.ColumnText(1), row.ColumnText(2)
			return nil
		}, r.Pos); err != nil {
			return err
		}
		q := v.queues[r.By.Queue.Name]
		q.largest, q.dirty = max(q.largest, int64(len(m.Body))), true
		headers := jsonText(len(m.Headers) == 0, m.Headers)
		was.Type, was.Key = m.Type, cmp.Or(m.Key, was.Key)
		if err := v.run("update message set body = ?, hash = ?, headers = ?, type = ?, key = ?, texts = ? where pos = ?",
			m.Body, r.By.Hash, headers, text(was.Type), text(was.Key), messageSum(&was, textOf(headers), origin), r.Pos); err != nil {
			return err
		}
		if err := v.changeFacet(r.Pos, func(k *facet) { k.mtype = m.Type }); err != nil {
			return err
		}
	}
	return nil
}

// takeKey gives a dedupe key that no message holds to the message at pos.
func (t *tx) takeKey(queue int64, key string, pos int64) error {
	return t.added.end(t.added.add(toDedupe).num(queue).str(key).num(pos))
}

// freeKey releases the dedupe key of the message at pos, if that holds it.
func (t *tx) freeKey(queue int64, key string, pos int64) error {
	return t.run("delete from dedupe where queue = ? and key = ? and pos = ?", queue, key, pos)
}

// freeClaimedKeys releases the dedupe keys of messages that were claimed, if the queue's scope says
// so. Queues of other scopes pay nothing for it.
func (t *tx) freeClaimedKeys(got *claimed, queue string) error {
	if got.count() == 0 {
		return nil
	}
	q, err := t.queue(queue)
	if err != nil || !lifecycle.FreesClaimed(q.settings.DedupeScope) {
		return err
	}
	for _, r := range got.rows {
		if err := t.run(sqlText("free_key_of"), r.pos); err != nil {
			return err
		}
	}
	for _, pos := range got.members {
		if err := t.run(sqlText("free_key_of"), pos); err != nil {
			return err
		}
	}
	return nil
}

// standing holds the state of a message and where that is stored.
type standing struct {
	state, deliveries int
	hasRow            bool
	own               bool
}

func (t *tx) stateOf(pos int64) (standing, error) {
	var st standing
	// The cursor comes from memory: the row of queue may not be written yet.
	q, err := t.queueAt(pos)
	if err != nil {
		return st, err
	}
	err = t.each(sqlText("standing"), func(row rows) error {
		st = standing{own: row.ColumnBool(0), hasRow: row.ColumnBool(1), state: row.ColumnInt(2), deliveries: row.ColumnInt(3)}
		if st.state == lifecycle.Behind {
			st.state = lifecycle.Queued
		}
		if !st.hasRow && !row.ColumnBool(4) && !st.own && pos&maxSeq <= q.cursor {
			st.state, st.deliveries = lifecycle.Leased, 1
		}
		return nil
	}, pos)
	return st, err
}
