package sqlite

import (
	"context"
	"errors"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Amend implements store.Queue.
func (s *Store) Amend(ctx context.Context, ids []nixie.ID, change store.Change) []error {
	errs := make([]error, len(ids))
	if len(ids) == 0 {
		return errs
	}
	if err := store.CheckCall(len(ids)); err != nil {
		return all(errs, err)
	}
	if err := change.Check(); err != nil {
		return all(errs, err)
	}
	err := s.write(ctx, 0, func(t *tx) error {
		clear(errs)
		for i, id := range ids {
			if err := t.amend(id, &change); err != nil {
				if !answers(err) {
					return err
				}
				errs[i] = err
			}
		}
		return nil
	})
	if err != nil {
		return all(errs, err)
	}
	return errs
}

// amend changes one message. Every refusal comes before the first write.
func (t *tx) amend(id nixie.ID, change *store.Change) error {
	pos, err := t.number("select pos from message where id = ?", id)
	if err != nil {
		return err
	}
	if pos == 0 {
		return nixie.Errorf(nixie.CodeNotFound, "no message %s", id)
	}
	st, err := t.stateOf(pos)
	if err != nil {
		return err
	}
	if st.state != lifecycle.Queued && (change.Verb != store.Cancel || st.state != lifecycle.Leased) {
		return nixie.Errorf(nixie.CodeConflict, "message %s is %s: %s is not possible", id, lifecycle.State(st.state), change.Verb)
	}
	q, err := t.queueAt(pos)
	if err != nil {
		return err
	}
	switch change.Verb {
	case store.Cancel:
		return t.cancel(q, pos, id, st, change)
	case store.Hold:
		return t.putOnHold(pos, st, change)
	case store.Move:
		err = t.move(q, pos, id, st, change.Queue)
	default:
		err = t.amendQueued(q, pos, id, st, change)
	}
	if err != nil {
		return err
	}
	return t.audit(q.n, change.Actor, change.Event(), id, change.Note())
}

// cancel ends a message and voids its lease.
func (t *tx) cancel(q *queueRow, pos int64, id nixie.ID, st standing, change *store.Change) error {
	h, err := t.anyHold(pos, st)
	if err != nil {
		return err
	}
	if err := h.End(store.OnCancel, t.now); err != nil {
		return err
	}
	if err := t.end(h, ""); err != nil {
		return err
	}
	if err := t.audit(q.n, change.Actor, change.Event(), id, change.Note()); err != nil {
		return err
	}
	return t.letterFollows(h, lifecycle.Changed(change, true))
}

// putOnHold buries a queued message for review.
func (t *tx) putOnHold(pos int64, st standing, change *store.Change) error {
	h, err := t.anyHold(pos, st)
	if err != nil {
		return err
	}
	f := *change.Hold
	f.Generation, f.Attempt = h.Generation, h.Attempts
	if err := h.End(store.OnHold, t.now); err != nil {
		return err
	}
	if err := t.appendFailure(h, &f, nixie.Hold, ""); err != nil {
		return err
	}
	return t.bury(h, change.Settlement(), change)
}

// anyHold takes a message out of the queue or away from the holder of its lease.
func (t *tx) anyHold(pos int64, st standing) (*held, error) {
	h := &held{}
	var err error
	if h.q, err = t.queueAt(pos); err != nil {
		return nil, err
	}
	if st.hasRow {
		row, err := t.pending(pos)
		if err != nil {
			return nil, err
		}
		h.pendingRow, h.was = *row, *row
		return h, nil
	}
	h.pendingRow = pendingRow{pos: pos, queue: h.q.n, Message: lifecycle.Fresh(0)}
	if st.state == lifecycle.Queued {
		// Ranges must not hand it out any more.
		h.q.fresh--
		h.q.dirty = true
		return h, t.run("update message set own = 1 where pos = ?", pos)
	}
	n, err := t.number("select n from batch where first <= ?1 and last >= ?1", pos)
	if err != nil {
		return nil, err
	}
	if h.batch, err = t.batch(n); err != nil {
		return nil, err
	}
	if h.batch == nil {
		return nil, nixie.Errorf(nixie.CodeInternal, "message at %d is leased by no batch: run nixie verify", pos)
	}
	h.pendingRow = h.batch.member(pos)
	return h, nil
}

// amendQueued changes a message that stays in its queue. A new message gets a row of its own only
// when its due time changes.
func (t *tx) amendQueued(q *queueRow, pos int64, id nixie.ID, st standing, change *store.Change) error {
	p := &pendingRow{}
	if st.hasRow {
		var err error
		if p, err = t.pending(pos); err != nil {
			return err
		}
	}
	was := *p
	p.ID = id
	own := *change
	own.At = t.at.dueAt(change.At)
	if err := p.Amend(&own, &q.settings, t.now); err != nil {
		return err
	}
	if p.Due <= t.now {
		t.wake(q.name)
	}
	if st.hasRow {
		t.markDirty(q, p.stream)
		t.countAgain(&was, p)
		return t.run(sqlText("amend_row"),
			p.Due, p.Attempts, p.Deliveries, p.Crashes, p.Alone, text(p.Abandoned), p.MayPass, text(lease.PatienceText(p.Patience)), pos)
	}
	if p.Due == was.Due {
		return nil
	}
	h, err := t.anyHold(pos, st)
	if err != nil {
		return err
	}
	h.Due = p.Due
	return t.insertPending(&h.pendingRow)
}

// move appends a message to another queue. It gets a position there, and all rows that name the old
// position follow.
func (t *tx) move(from *queueRow, pos int64, id nixie.ID, st standing, name string) error {
	l, err := t.letter(sqlText("letter_at"), pos)
	if err != nil {
		return err
	}
	var letter nixie.ID
	if l != nil {
		letter = l.ID
	}
	if err := lifecycle.MayLeave(id, letter, from.name, name); err != nil {
		return err
	}
	to, err := t.openQueue(name)
	if err != nil {
		return err
	}
	if err := lifecycle.Admits(&to.settings, to.name); err != nil {
		return err
	}
	if to.last >= maxSeq {
		return nixie.Errorf(nixie.CodeLimit, "queue %s has taken %d messages, the limit: use another queue", to.name, to.last)
	}
	newPos := to.n<<seqBits | (to.last + 1)
	if err := t.moveKey(from, to, pos, newPos); err != nil {
		return err
	}
	h, err := t.anyHold(pos, st)
	if err != nil {
		return err
	}
	if st.hasRow {
		if err := errors.Join(t.dissolve(pos), t.leave(h)); err != nil {
			return err
		}
	}
	to.last++
	to.dirty = true
	if to.fresh == 0 {
		to.cursor = to.last
	}
	return t.insertMoved(to, h, newPos)
}

// insertMoved writes a message that left its queue into another one.
func (t *tx) insertMoved(to *queueRow, h *held, newPos int64) error {
	for _, query := range [...]string{
		"update message set pos = ?, own = 1 where pos = ?",
		"update failure set pos = ? where pos = ?",
		"update attachment set pos = ? where pos = ?",
	} {
		if err := t.run(query, newPos, h.pos); err != nil {
			return err
		}
	}
	stream := ""
	if err := t.each("select stream, enqueued, length(body) from message where pos = ?", func(row rows) error {
		stream = row.ColumnText(0)
		to.largest = max(to.largest, row.ColumnInt64(2))
		if h.Due == 0 { // it had no row of pending
			h.Due = row.ColumnInt64(1)
		}
		return nil
	}, newPos); err != nil {
		return err
	}
	p := h.pendingRow
	p.pos, p.queue, p.State, p.MayPass, p.stream, p.Rank = newPos, to.n, lifecycle.Queued, false, 0, 0
	if err := t.join(to, &p, stream, newPos); err != nil {
		return err
	}
	t.wake(to.name)
	return t.insertPending(&p)
}

// moveKey takes the dedupe key in the new queue, if its scope says so, and frees it in the old one.
func (t *tx) moveKey(from, to *queueRow, pos, newPos int64) error {
	key, err := t.dedupeKey(pos)
	if err != nil || key == "" {
		return err
	}
	number, err := t.number("select number from pending where pos = ?", pos)
	if err != nil {
		return err
	}
	if lifecycle.TakesKey(to.settings.DedupeScope, number) {
		if err := t.takeFreeKey(to, key, newPos); err != nil {
			return err
		}
	}
	return t.run("delete from dedupe where queue = ? and key = ? and pos = ?", from.n, key, pos)
}
