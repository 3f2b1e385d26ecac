package postgres

import (
	"context"

	"github.com/nixie-go/nixie"
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
	err := s.write(ctx, func(t *tx) error {
		if err := t.holdToAmend(ids, &change); err != nil {
			return err
		}
		for i, id := range ids {
			errs[i] = t.amend(t.byID[id], id, &change)
		}
		t.dropUnused()
		return t.enqueueFollows(nil, nil)
	})
	if err != nil {
		return all(errs, err)
	}
	return errs
}

// holdToAmend locks and reads the messages and, for a move, the other queue.
func (t *tx) holdToAmend(ids []nixie.ID, c *store.Change) error {
	if c.Verb != store.Move {
		return t.hold(ids, c.Verb == store.Hold)
	}
	if err := t.openQueues([]string{c.Queue}); err != nil {
		return err
	}
	list, to := uuids(ids), t.named[c.Queue]
	t.lockRanges(list)
	t.openStreamsOf(texts()["streams_to_move"], list, to.n, to.settings.Ordered())
	t.holdRest(which().ids, list, false)
	t.openKeys(texts()["keys_to_move"], list, to.n)
	t.draw(2 * len(ids))
	if err := t.send(); err != nil {
		return err
	}
	return t.checkLocks()
}

// amend changes one message. It answers before it changes anything.
func (t *tx) amend(m *message, id nixie.ID, c *store.Change) error {
	if m == nil {
		return nixie.Errorf(nixie.CodeNotFound, "no message %s", id)
	}
	if c.Verb == store.Cancel {
		return t.cancel(m, c)
	}
	if m.Public() != nixie.Queued {
		return nixie.Errorf(nixie.CodeConflict, "message %s is %s: %s is not possible", m.ID, m.Public(), c.Verb)
	}
	queue := m.queue
	if err := t.change(m, c); err != nil || c.Verb == store.Hold {
		return err // the audit has a hold as what it does to the letter
	}
	t.touch(m)
	if m.Ordered {
		t.markDirty(m.queue, m.stream)
	}
	t.record(queue, c.Actor, c.Event(), m.ID, c.Note())
	if m.Due <= t.now {
		t.wake(m.q.name)
	}
	return nil
}

// cancel ends a message that has not ended.
func (t *tx) cancel(m *message, c *store.Change) error {
	if err := m.End(store.OnCancel, t.now); err != nil {
		return err
	}
	if m.Ordered {
		t.markDirty(m.queue, m.stream)
	}
	t.touch(m)
	t.record(m.queue, c.Actor, c.Event(), m.ID, c.Note())
	return t.end(m, lifecycle.Changed(c, m.letter != nil))
}

// change does to a queued message what the verb says.
func (t *tx) change(m *message, c *store.Change) error {
	switch c.Verb {
	case store.Hold:
		return t.holdForReview(m, c)
	case store.Move:
		return t.transfer(m, t.named[c.Queue])
	}
	return m.Amend(c, &m.q.settings, t.now)
}

// holdForReview buries a queued message.
func (t *tx) holdForReview(m *message, c *store.Change) error {
	e := lifecycle.Changed(c, m.letter != nil)
	if err := m.follows(e); err != nil {
		return err
	}
	if err := m.End(store.OnHold, t.now); err != nil {
		return err
	}
	if m.Ordered {
		t.markDirty(m.queue, m.stream)
	}
	t.touch(m)
	f := *c.Hold
	f.Generation, f.Attempt = m.Generation, m.Attempts
	t.fail(m, &f, nixie.Hold)
	return t.bury(m, c.Settlement(), e)
}

// transfer appends a message to another queue.
func (t *tx) transfer(m *message, to *queueRow) error {
	var letter nixie.ID
	if m.letter != nil {
		letter = m.letter.ID
	}
	if err := lifecycle.MayLeave(m.ID, letter, m.q.name, to.name); err != nil {
		return err
	}
	if err := lifecycle.Admits(&to.settings, to.name); err != nil {
		return err
	}
	takes := lifecycle.TakesKey(to.settings.DedupeScope, m.Number)
	if takes {
		if err := t.free(to.n, m); err != nil {
			return err
		}
	}
	if m.Ordered {
		t.markDirty(m.queue, m.stream)
	}
	if m.dedupe != "" {
		t.work.released = append(t.work.released, m.pos)
	}
	m.queue, m.q, m.MayPass, m.State = to.n, to, false, lifecycle.Queued
	m.queuePos, m.Rank, m.Ordered = t.nextPosition(), 0, false
	if to.settings.Ordered() && m.stream != "" {
		m.Ordered, m.State, m.Rank = true, lifecycle.Behind, t.nextPosition()
	}
	if takes {
		t.take(m)
	}
	t.work.moved = append(t.work.moved, m)
	return nil
}
