package sqlite

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/engine"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// held has what a transaction knows of a message.
type held struct {
	pendingRow            // a member of a batch has the counters of a clean first claim
	was        pendingRow // the row in the table; the position is 0 if it has none
	batch      *batchRow  // whose member it is
	fresh      bool       // ranges will hand it out
	log        int        // state of its row of log; 0 if it has none
	q          *queueRow
	mtype      string
	name       string // of its stream, ordered or not
	enqueued   int64
	ordinal    int64 // of the newest failure, after an append
	fact       engine.Message
}

// Settle implements store.Queue.
func (s *Store) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	errs := s.verbs.Settle(ctx, settlements)
	s.owner.progress.settled(settlements, errs)
	return errs
}

// Extend implements store.Queue. What is lost needs its slot of progress no longer than a sweep.
func (s *Store) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	errs := s.verbs.Extend(ctx, ds, lease)
	s.owner.progress.extended(ds, errs)
	return errs
}

// loadLeases finds the messages of deliveries, and the queues of what follows their settlements.
func (v *verb) loadLeases(w *engine.Want, facts *engine.Facts) error {
	if len(w.Leases) == 0 {
		return nil
	}
	facts.Leases, facts.Queues = make([]*engine.Message, len(w.Leases)), map[string]*engine.Queue{}
	found := make([]held, len(w.Leases))
	v.messages = make(map[int64]*held, len(w.Leases))
	if err := v.checkBatches(w.Leases); err != nil {
		return err
	}
	for i, d := range w.Leases {
		if d == nil {
			continue
		}
		h, err := v.leased(d, &found[i])
		if h == nil || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		m := &h.fact
		if m.Message == nil {
			if err := v.loadLease(h, d, w, facts); err != nil {
				return err
			}
		}
		if w.Dies != nil && w.Dies[i] && h.batch == nil && m.Last == nil { // a member of a batch has no earlier failure
			if m.First, m.Last, err = v.failuresOf(h.pos); err != nil {
				return err
			}
		}
		facts.Leases[i] = m
	}
	for i := range w.Then {
		q, err := v.queue(w.Then[i].Queue)
		if err != nil {
			return err
		}
		if q != nil {
			facts.Queues[q.name] = q.fact()
		}
	}
	return nil
}

// loadLease completes what the engine knows of a message under a lease. A delivery of this store
// has what never changes, so no row is read then.
func (v *verb) loadLease(h *held, d *nixie.Delivery, w *engine.Want, facts *engine.Facts) error {
	h.ID, h.mtype, h.name, h.fact.Dedupe = d.ID, d.Type, d.Stream, d.DedupeKey
	if w.Settles && d.Lease.Handle.Pos == 0 {
		if err := v.loadGivenOf(h); err != nil {
			return err
		}
	}
	v.take(h, facts)
	if !w.Settles {
		return nil
	}
	return v.loadLetterOf(h)
}

// loadGivenOf reads what never changes of a message.
func (v *verb) loadGivenOf(h *held) error {
	return v.each("select id, type, stream, dedupe from message where pos = ?", func(row rows) error {
		h.ID, h.mtype, h.name, h.fact.Dedupe = columnID(row, 0), row.ColumnText(1), row.ColumnText(2), row.ColumnText(3)
		return nil
	}, h.pos)
}

// take notes a message for the engine.
func (v *verb) take(h *held, facts *engine.Facts) {
	q := facts.Queues[h.q.name]
	if q == nil {
		q = h.q.fact()
		facts.Queues[h.q.name] = q
	}
	m := &h.fact
	m.Message, m.Pos, m.Queue, m.Stream = &h.Message, h.pos, q, h.name
	v.messages[h.pos] = h
}

// leased finds the message of a delivery in its row or in a batch, nil if it is in neither.
func (v *verb) leased(d *nixie.Delivery, into *held) (h *held, err error) {
	pos, batch := d.Lease.Handle.Pos, d.Lease.Handle.Batch
	if pos == 0 {
		if pos, batch, err = v.find(d); pos == 0 || err != nil {
			return nil, err
		}
	}
	if h = v.messages[pos]; h != nil {
		return h, nil
	}
	member := d.Lease.Number == 1 && v.isMember(batch, pos)
	if !member {
		row, err := v.pending(pos)
		if err != nil {
			return nil, err
		}
		if row != nil {
			into.pendingRow, into.was = *row, *row
		} else if member, err = v.inBatch(d, pos, batch); !member || err != nil {
			return nil, err
		}
	}
	if member {
		if into.batch, err = v.batch(batch); err != nil {
			return nil, err
		}
		into.pendingRow = into.batch.member(pos)
	}
	into.q, err = v.queueAt(pos)
	return into, err
}

// inBatch reports whether a message without a row is an unsettled member of a batch.
func (v *verb) inBatch(d *nixie.Delivery, pos, batch int64) (bool, error) {
	b, err := v.batch(batch)
	if err != nil || !b.has(pos, v.now) || d.Lease.Number != 1 {
		return false, err
	}
	ended, err := v.number("select exists (select 1 from log where pos = ?)", pos)
	return ended == 0, err
}

// find finds a lease by the ID of the message, for a delivery without a handle.
func (v *verb) find(d *nixie.Delivery) (pos, batch int64, err error) {
	if pos, err = v.number("select pos from message where id = ?", d.ID); pos == 0 || err != nil {
		return 0, 0, err
	}
	if d.Lease.Number == 1 {
		batch, err = v.number(sqlText("lease_batch_of"), pos)
	}
	return pos, batch, err
}

// member returns a message of a batch with the counters of a clean first claim.
func (b *batchRow) member(pos int64) pendingRow {
	return pendingRow{pos: pos, queue: pos >> seqBits, Message: lifecycle.Member(b.owner, b.until, b.claimed)}
}

// writeExtended renews leases. If all members of a batch are renewed, the batch keeps its one row.
// Otherwise the renewed members get rows of their own, so that the leases of the others end in
// time.
func (v *verb) writeExtended(c *engine.Changes) error {
	members := map[*batchRow][]*held{}
	for _, m := range c.Extended {
		h := v.messages[m.Pos]
		if h.batch != nil {
			members[h.batch] = append(members[h.batch], h)
			continue
		}
		if err := v.run("update pending set until = ?, steps = ? where pos = ?", h.Until, jsonText(len(h.Steps) == 0, h.Steps),
			h.pos); err != nil {
			return err
		}
	}
	for b, hs := range members {
		whole := int64(len(hs)) == b.left
		if whole {
			b.until, b.dirty = hs[0].Until, true
		}
		for _, h := range hs {
			if whole && len(h.Steps) == 0 {
				continue
			}
			if err := v.split(h); err != nil {
				return err
			}
		}
	}
	return nil
}

// split gives a message without a row one of its own.
func (v *verb) split(h *held) error {
	if err := v.takeOut(h); err != nil {
		return err
	}
	if h.batch != nil {
		h.batch.hasRows = true
	}
	return v.insertPending(&h.pendingRow)
}
