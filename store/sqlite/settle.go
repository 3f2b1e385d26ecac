package sqlite

import (
	"cmp"
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// held has what a transaction knows of a message: one with a current lease, or one that the engine
// loaded.
type held struct {
	pendingRow            // a member of a batch has the counters of a clean first claim
	was        pendingRow // the row in the table; the position is 0 if it has none
	batch      *batchRow  // whose member it is
	fresh      bool       // ranges will hand it out
	log        int        // state of its row of log; 0 if it has none
	d          *nixie.Delivery
	fact       *engine.Message // of a lease that the engine loaded
	q          *queueRow
	mtype      string
	name       string // of its stream, ordered or not
	enqueued   int64
	ordinal    int64 // of the newest failure, after an append
	// The first and the last failure, after an append or a read.
	first, last *lifecycle.Failure
}

// hold finds the lease of a delivery, with all steps of its message. It refuses a lease that is not
// current: expired, settled or voided.
func (t *tx) hold(d *nixie.Delivery) (*held, error) {
	if d == nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "delivery is missing: give the one that was received")
	}
	pos, batch := d.Lease.Handle.Pos, d.Lease.Handle.Batch
	if pos == 0 {
		var err error
		if pos, batch, err = t.find(d); err != nil {
			return nil, err
		}
	}
	var row *pendingRow
	member := d.Lease.Number == 1 && t.isMember(batch, pos)
	if !member {
		var err error
		if row, err = t.pending(pos); err != nil {
			return nil, err
		}
	}
	h := &held{d: d}
	if row != nil {
		if row.State != lifecycle.Leased || row.Number != d.Lease.Number || row.Until <= t.now {
			return nil, lifecycle.Lost(d)
		}
		h.pendingRow, h.was = *row, *row
	} else if err := t.holdMember(h, pos, batch, member); err != nil {
		return nil, err
	}
	var err error
	if h.Steps, err = lifecycle.Learn(h.Steps, d); err != nil {
		return nil, err
	}
	h.q, err = t.queueAt(pos)
	return h, err
}

// holdMember finds a lease in a batch.
func (t *tx) holdMember(h *held, pos, batch int64, known bool) error {
	b, err := t.batch(batch)
	if err != nil {
		return err
	}
	if !b.has(pos, t.now) || h.d.Lease.Number != 1 {
		return lifecycle.Lost(h.d)
	}
	if !known {
		ended, err := t.number("select exists (select 1 from log where pos = ?)", pos)
		if err != nil {
			return err
		}
		if ended != 0 {
			return lifecycle.Lost(h.d)
		}
	}
	h.batch, h.pendingRow = b, b.member(pos)
	return nil
}

// member returns a message of a batch with the counters of a clean first claim.
func (b *batchRow) member(pos int64) pendingRow {
	return pendingRow{pos: pos, queue: pos >> seqBits, Message: lifecycle.Member(b.owner, b.until, b.claimed)}
}

// find finds a lease by the ID of the message, for a delivery without a handle.
func (t *tx) find(d *nixie.Delivery) (pos, batch int64, err error) {
	if pos, err = t.number("select pos from message where id = ?", d.ID); err != nil {
		return 0, 0, err
	}
	if pos == 0 {
		return 0, 0, lifecycle.Lost(d)
	}
	if d.Lease.Number == 1 {
		batch, err = t.number(sqlText("lease_batch_of"), pos)
	}
	return pos, batch, err
}

// Settle implements store.Queue.
func (s *Store) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	errs := make([]error, len(settlements))
	if len(settlements) == 0 {
		return errs
	}
	size, err := store.CheckSettlements(settlements)
	if err != nil {
		return all(errs, err)
	}
	for i := range settlements {
		errs[i] = store.CheckSettlement(&settlements[i])
		if f := settlements[i].Failure; f != nil {
			size += len(f.Text) + len(f.Stack)
		}
	}
	plan, err := planCall(settlements, errs)
	if err != nil {
		return all(errs, err)
	}
	refused := append([]error(nil), errs...)
	err = s.write(ctx, size, func(t *tx) error {
		copy(errs, refused)
		return t.settleAll(settlements, errs, plan)
	})
	if err != nil {
		return all(errs, err)
	}
	s.owner.progress.settled(settlements, errs)
	return errs
}

// settleAll applies the settlements of one call that were not refused.
func (t *tx) settleAll(settlements []nixie.Settlement, errs []error, plan *callPlan) error {
	clear(t.checked)
	for _, r := range plan.ranges {
		if err := t.checkRange(r); err != nil {
			return err
		}
	}
	done, err := t.completeMany(plan, settlements)
	if err != nil {
		return err
	}
	for i := range settlements {
		if errs[i] != nil || done != nil && done[i] {
			continue
		}
		if err := t.settleThen(&settlements[i], plan.doc(i)); err != nil {
			if !answers(err) {
				return err
			}
			errs[i] = err
		}
	}
	clear(t.checked)
	return nil
}

// answers reports whether an error answers one settlement and came before its first write. Any
// other error fails the transaction.
func answers(err error) bool {
	switch nixie.CodeOf(err) {
	case nixie.CodeLeaseLost, nixie.CodeNotFound, nixie.CodeConflict, nixie.CodeLimit, nixie.CodeInvalid:
		return true
	}
	return false
}

func all(errs []error, err error) []error {
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// settleThen applies one settlement and enqueues the messages that follow it.
func (t *tx) settleThen(st *nixie.Settlement, doc string) error {
	if len(st.Then) == 0 {
		return t.settle(st, doc)
	}
	for i := range st.Then {
		q, err := t.queue(st.Then[i].Queue)
		if err != nil {
			return err
		}
		if q != nil {
			if err := lifecycle.Admits(&q.settings, q.name); err != nil {
				return err
			}
		}
	}
	alone := *st
	alone.Then = nil
	if err := t.settle(&alone, doc); err != nil {
		return err
	}
	for i := range st.Then {
		if _, err := t.enqueue(&st.Then[i], nixie.HashBody(st.Then[i].Body)); err != nil {
			return nixie.Errorf(nixie.CodeUnavailable, "enqueue what follows the settlement: %w", err) // no answer: it is half done
		}
	}
	return nil
}

// settle applies one settlement. Every refusal comes before the first write. doc is the failure as
// encodeFailure encoded it with the steps of the delivery, or empty.
func (t *tx) settle(st *nixie.Settlement, doc string) error {
	if isPlain(st) {
		if done, err := t.completeMember(st); done || err != nil {
			return err
		}
	}
	h, err := t.hold(st.Delivery)
	if err != nil {
		return err
	}
	if len(h.Steps) != len(st.Delivery.Steps) {
		doc = "" // the store knows more steps than the worker
	}
	if err := h.Settle(st, &h.q.settings, h.Steps, t.now); err != nil {
		return err
	}
	if st.Failure != nil {
		if err := t.appendFailure(h, st.Failure, st.Verb, doc); err != nil {
			return err
		}
	}
	if st.Second != nil {
		if err := t.appendFailure(h, st.Second, st.Verb, ""); err != nil {
			return err
		}
	}
	switch h.State {
	case lifecycle.Queued:
		return t.requeue(h)
	case lifecycle.Dead:
		return t.bury(h, st)
	}
	return t.follow(h, lifecycle.Settled(st, true))
}

// follow writes how a message ended, and updates the letter that it has from an earlier generation.
func (t *tx) follow(h *held, e lifecycle.End) error {
	if err := t.end(h, e.Note); err != nil {
		return err
	}
	return t.letterFollows(h, e)
}

// leave takes the message out of its batch, or deletes its row.
func (t *tx) leave(h *held) error {
	if h.batch != nil {
		h.batch.left--
		h.batch.dirty = true
		return nil
	}
	if h.was.pos == 0 {
		return nil // a new message has no row
	}
	t.markDirty(h.q, h.stream)
	t.count(&h.was, -1)
	return t.run("delete from pending where pos = ?", h.pos)
}

// end writes the row of log of a message that has ended.
func (t *tx) end(h *held, note string) error {
	if err := t.leave(h); err != nil {
		return err
	}
	if err := t.writeLog(&h.pendingRow, note, toLogWhole); err != nil {
		return err
	}
	h.q.ended[h.State]++
	h.q.dirty = true
	if h.State == lifecycle.Discarded {
		t.add(counter{what: ofDiscards, subject: h.queue, name: cmp.Or(h.reason, string(nixie.ReasonUnknown))}, 1)
	}
	key, err := t.keyOf(h)
	if err != nil {
		return err
	}
	return t.freeKey(h.q, h.pos, key, h.State)
}

// keyOf returns the dedupe key of a message. A delivery of this store has it, so no row is read
// then.
func (t *tx) keyOf(h *held) (string, error) {
	if h.d != nil && h.d.Lease.Handle.Pos != 0 {
		return h.d.DedupeKey, nil
	}
	return t.dedupeKey(h.pos)
}

// writeLog writes how a message ended. It leaves the counters out for a clean first generation,
// which is the usual case.
func (t *tx) writeLog(p *pendingRow, note string, whole target) error {
	if p.Attempts == 1 && p.Deliveries == 1 && p.Crashes == 0 && p.Generation == 1 && p.Redrives == 0 && p.Number == 1 &&
		len(p.Steps) == 0 && note == "" && !p.Gap {
		row := t.added.add(toLog)
		return t.added.end(row.num(p.pos).num(int64(p.State)).num(p.Ended).num(p.Received))
	}
	row := t.added.add(whole)
	row.num(p.pos).num(int64(p.State)).num(p.Ended).num(p.Received).num(int64(p.Attempts)).num(int64(p.Deliveries)).num(int64(p.Crashes))
	row.num(int64(p.Generation)).num(int64(p.Redrives)).num(p.Number).strOrNull(textOf(jsonText(len(p.Steps) == 0, p.Steps)))
	return t.added.end(row.strOrNull(note).flag(p.Gap).numOrNull(p.Redriven))
}

func (t *tx) dedupeKey(pos int64) (string, error) {
	key := ""
	err := t.each("select dedupe from message where pos = ?", func(row rows) error {
		key = row.ColumnText(0)
		return nil
	}, pos)
	return key, err
}

// requeue writes that a lease was given back.
func (t *tx) requeue(h *held) error {
	if h.Due <= t.now {
		t.wake(h.q.name)
	}
	if h.batch != nil {
		if err := t.leave(h); err != nil {
			return err
		}
		h.batch.hasRows = true
		return t.insertPending(&h.pendingRow)
	}
	if h.stream != 0 {
		h.State = lifecycle.Behind
		t.markDirty(h.q, h.stream)
	}
	t.countAgain(&h.was, &h.pendingRow)
	return t.run(sqlText("requeue_row"),
		h.State, h.Due, h.Attempts, h.Crashes, h.Alone, text(h.Abandoned), jsonText(len(h.Steps) == 0, h.Steps), h.MayPass, text(h.reason),
		text(lease.PatienceText(h.Patience)), h.pos)
}
