package sqlite

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Amend implements store.Queue.
func (s *Store) Amend(ctx context.Context, ids []nixie.ID, change store.Change) []error {
	errs := make([]error, len(ids))
	if len(ids) == 0 {
		return errs
	}
	if err := checkCall(len(ids)); err != nil {
		return all(errs, err)
	}
	err := s.write(ctx, 0, func(t *tx) error {
		clear(errs)
		for i, id := range ids {
			if err := t.amend(id, change); err != nil {
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

func (t *tx) amend(id nixie.ID, change store.Change) error {
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
	switch {
	case change == store.Cancel && (st.state == stQueued || st.state == stLeased):
		return t.cancel(pos, id, st)
	case change == store.RetryNow && st.state == stQueued:
		return t.retryNow(pos, st)
	case change != store.Cancel && change != store.RetryNow:
		return nixie.Errorf(nixie.CodeInvalid, "change %q is not one of cancel, retry-now", change)
	}
	return nixie.Errorf(nixie.CodeConflict, "message %s is %s: %s is not possible", id, states[st.state], change)
}

// cancel ends a message; a lease on it is void.
func (t *tx) cancel(pos int64, id nixie.ID, st standing) error {
	h, err := t.anyHold(pos, st)
	if err != nil {
		return err
	}
	if err := t.end(h, stCanceled, ""); err != nil {
		return err
	}
	if err := t.letterFollows(pos, nixie.OnGone); err != nil {
		return err
	}
	return t.audit(h.queue, system, nixie.OnCancel, id, "")
}

// anyHold takes a message from wherever it waits or from whoever has it.
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
		h.pendingRow = *row
		return h, nil
	}
	h.pendingRow = pendingRow{pos: pos, queue: h.q.n, generation: 1}
	if st.state == stQueued {
		// In the log and not handed out yet: ranges have to pass it by.
		h.q.fresh--
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
	h.attempts, h.deliveries, h.number, h.received = 1, 1, 1, h.batch.claimed
	return h, nil
}

// retryNow makes a waiting message due.
func (t *tx) retryNow(pos int64, st standing) error {
	if st.hasRow {
		if err := t.run("update pending set due = ? where pos = ? and state = 0 and due > ?", t.now, pos, t.now); err != nil {
			return err
		}
	}
	return t.wakeAt(pos)
}
