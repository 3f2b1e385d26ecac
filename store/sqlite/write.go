package sqlite

import (
	"cmp"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store/engine"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Write implements engine.Tx. Rows that change alike are written by one statement.
func (v *verb) Write(c *engine.Changes) error {
	if c.Adjusted != nil {
		c.Halted = append(c.Halted, c.Adjusted)
	}
	for _, q := range c.Halted {
		if err := v.saveSettings(v.queues[q.Name]); err != nil {
			return err
		}
	}
	for _, write := range [...]func(*verb, *engine.Changes) error{ // of the type: those of a value would be allocated
		(*verb).writeNew, (*verb).writeReplaced, (*verb).writeAdopted, (*verb).writeFailures, (*verb).writeMessages,
		(*verb).writeExtended, (*verb).writeEdits, (*verb).writeLetters, (*verb).writeKeys, (*verb).writeNotes, (*verb).writeItems,
		(*verb).removeLetters, (*verb).writeDocuments, (*verb).writeAudit, (*verb).writePruning, (*verb).dropUnused,
	} {
		if err := write(v, c); err != nil {
			return err
		}
	}
	for _, queue := range c.Wakes {
		v.wake(queue)
	}
	return nil
}

// Reorder implements engine.Tx.
func (v *verb) Reorder(q *engine.Queue, to *nixie.QueueSettings) error {
	return v.reorder(v.queues[q.Name], to)
}

func (v *verb) writeFailures(c *engine.Changes) error {
	for i := range c.Failures {
		f := &c.Failures[i]
		if err := v.appendFailure(v.messages[f.Message.Pos], &f.Failure); err != nil {
			return err
		}
	}
	return nil
}

// writeMessages writes messages where they are now: a row of pending, also in another queue, or a
// row of log.
func (v *verb) writeMessages(c *engine.Changes) error {
	var again []*held // queued again
	for _, m := range c.Messages {
		h := v.messages[m.Pos]
		h.q.dirty = true
		var err error
		switch {
		case m.Queue.Number != h.q.n:
			m.Pos, err = v.transfer(h, v.queues[m.Queue.Name])
		case !h.OnItsWay():
			err = v.writeEnd(h, m.Note)
		case h.log != 0:
			h.q.ended[h.log]--
			again = append(again, h)
		default:
			err = v.rewrite(h)
		}
		if err != nil {
			return err
		}
		if m.OnItsWay() && !m.Ordered && m.Due <= v.now { // of one in a stream the recomputed head tells
			v.wake(m.Queue.Name)
		}
	}
	if len(again) == 0 {
		return nil
	}
	return v.enterPending(again)
}

// writeEnd writes how a message has ended, perhaps over the row of an earlier end.
func (v *verb) writeEnd(h *held, note string) error {
	to := toLogWhole
	if h.log != 0 {
		h.q.ended[h.log]--
		to = toLogAgain
	} else if err := v.takeOut(h); err != nil {
		return err
	}
	h.q.ended[h.State]++
	if h.State == lifecycle.Discarded {
		v.add(counter{what: ofDiscards, subject: h.queue, name: cmp.Or(h.reason, string(nixie.ReasonUnknown))}, 1)
	}
	return v.writeLog(&h.pendingRow, note, to)
}

// takeOut takes a message out of the queue or away from the holder of its lease.
func (v *verb) takeOut(h *held) error {
	switch {
	case h.fresh:
		h.fresh = false // ranges must not hand it out any more
		h.q.fresh--
		h.q.dirty = true
		return v.run("update message set own = 1 where pos = ?", h.pos)
	case h.batch != nil:
		h.batch.left--
		h.batch.dirty = true
		return nil
	}
	v.markDirty(h.q, h.stream)
	v.count(&h.was, -1)
	return v.run("delete from pending where pos = ?", h.pos)
}

// rewrite writes a message that stays in its queue. A new one gets a row of its own only when its
// due time changes.
func (v *verb) rewrite(h *held) error {
	if h.was.pos != 0 {
		v.markDirty(h.q, h.stream)
		v.countAgain(&h.was, &h.pendingRow)
		unread := h.damage != "" && len(h.Steps) == 0 // it stays as it is
		return v.run(sqlText("rewrite_row"), h.State, h.Owner, h.Until, h.Due, h.Attempts, h.Deliveries, h.Crashes, h.Alone,
			text(h.Abandoned), unread, jsonText(len(h.Steps) == 0, h.Steps), h.MayPass, text(h.reason),
			text(lease.PatienceText(h.Patience)), h.pos)
	}
	if h.fresh && h.Due == h.enqueued {
		return nil
	}
	return v.split(h)
}

func same[T any](v T) T { return v }

// enterPending gives messages that had ended rows of pending, in their streams. No range of a batch
// covers them from then on.
func (v *verb) enterPending(list []*held) error {
	positions := make([]int64, len(list))
	for i, h := range list {
		positions[i] = h.pos
	}
	if err := v.dissolve(positions...); err != nil {
		return err
	}
	at := listed(positions, same)
	if err := v.run("delete from log where pos in (select value from json_each(?))", at); err != nil {
		return err
	}
	if err := v.run("update message set own = 1 where pos in (select value from json_each(?))", at); err != nil {
		return err
	}
	if err := v.each(sqlText("newest_reasons"), func(row rows) error {
		v.messages[row.ColumnInt64(0)].reason = row.ColumnText(1)
		return nil
	}, at); err != nil {
		return err
	}
	for _, h := range list {
		if h.Rank == engine.LastRank {
			h.Rank = v.appendRank(h.q)
		}
		if h.Ordered {
			var err error
			if h.stream, err = v.openStream(h.q, h.name); err != nil {
				return err
			}
			v.markDirty(h.q, h.stream)
		}
		if err := v.insertPending(&h.pendingRow); err != nil {
			return err
		}
	}
	return nil
}

// letterMove has the new values of letters that change alike.
type letterMove struct {
	facet, resolved, moves int64
	status                 nixie.Status
	note                   string
	operation              nixie.ID
}

// writeLetters writes letters and moves their counts.
func (v *verb) writeLetters(c *engine.Changes) error {
	moved := map[*engine.Message]bool{}
	for _, m := range c.Messages {
		moved[m] = true
	}
	alike := map[letterMove][]int64{}
	for _, l := range c.Letters {
		f := v.letters[l.Pos]
		if l.Dies {
			if err := v.die(l, f); err != nil {
				return err
			}
			continue
		}
		same := f.letterRow
		if same.Text = f.was.Text; same == f.was {
			continue // appendFailure wrote its text
		}
		if err := v.moveInStream(f); err != nil {
			return err
		}
		if err := v.recount(f, moved[l.Message]); err != nil {
			return err
		}
		move := letterMove{f.facet, f.Resolved, f.Revision - f.was.Revision, f.Status, f.Note, f.Operation}
		alike[move] = append(alike[move], f.pos)
	}
	for move, positions := range alike {
		if err := v.run(sqlText("letters_move"), move.facet, string(move.status), move.resolved, move.note, sumOf(move.note),
			idOrNull(move.operation), move.moves, listed(positions, same)); err != nil {
			return err
		}
	}
	return nil
}

// die writes the death of a message in its letter, which is new if it has no row.
func (v *verb) die(l *engine.Letter, f *letterFacts) error {
	h := v.messages[l.Pos]
	if f == nil {
		row := &letterRow{Letter: *l.Letter, pos: h.pos, queue: h.queue, stream: h.stream}
		if err := v.joinFacet(row, h.mtype, &h.Message); err != nil {
			return err
		}
		return v.insertLetter(row, h.name)
	}
	if _, err := v.leaveFacet(&f.was); err != nil {
		return err
	}
	v.markDirty(f.q, f.was.stream)
	f.stream = h.stream
	if err := v.joinFacet(&f.letterRow, h.mtype, &h.Message); err != nil {
		return err
	}
	return v.writeDeath(&f.letterRow)
}

// moveInStream takes a letter out of its stream, or returns it there.
func (v *verb) moveInStream(f *letterFacts) (err error) {
	switch {
	case f.was.InStream == f.InStream:
		return nil
	case f.InStream:
		if f.stream, err = v.openStream(f.q, v.messages[f.pos].name); err != nil {
			return err
		}
	default:
		v.markDirty(f.q, f.stream)
		f.stream = 0
	}
	v.markDirty(f.q, f.stream)
	return v.run("update letter set stream = ?, blocks = ? where pos = ?", orNull(f.stream), f.Blocks, f.pos)
}

// recount moves the count of a letter to the facet that it has now. A facet has the counters of a
// message that has ended.
func (v *verb) recount(f *letterFacts, moved bool) error {
	k, err := v.leaveFacet(&f.was)
	if err != nil {
		return err
	}
	k.status, k.redrivable, k.needsReview = f.Status, f.Redrivable, f.NeedsReview
	k.signature, k.fingerprint = f.Signature, f.Fingerprint
	if moved {
		m := v.messages[f.pos]
		if k.redrives, k.attempts, k.crashes = m.Redrives, m.Attempts, m.Crashes; m.OnItsWay() {
			k.attempts, k.crashes = 0, 0
		}
	}
	if f.facet, err = v.addToFacet(&k, f.Died, 1); err != nil {
		return err
	}
	if f.Redrivable != f.was.Redrivable || f.NeedsReview != f.was.NeedsReview || f.Rule != "" {
		if err := v.run("update letter set redrivable = ?, needs_review = ?, rule = ?, rule_sum = ? where pos = ?", f.Redrivable,
			f.NeedsReview, f.Rule, sumOf(f.Rule), f.pos); err != nil {
			return err
		}
	}
	if f.Signature != f.was.Signature || f.Fingerprint != f.was.Fingerprint {
		return v.run("update letter set signature = ?, fingerprint = ? where pos = ?", f.Signature, f.Fingerprint, f.pos)
	}
	return nil
}

// writeKeys frees dedupe keys, and gives others to messages.
func (v *verb) writeKeys(c *engine.Changes) error {
	for _, f := range c.Freed {
		if err := v.freeKey(f.Queue, f.Key.Key, f.Pos); err != nil {
			return err
		}
	}
	for own, m := range c.Taken {
		if err := v.takeKey(own.Queue, own.Key, m.Pos); err != nil {
			return err
		}
	}
	return nil
}

func (v *verb) writeNotes(c *engine.Changes) error {
	for _, n := range c.Notes {
		if err := v.run(sqlText("add_note"), n.Letter.Pos, v.now, n.By, n.Text, sumOf(n.By, n.Text)); err != nil {
			return err
		}
	}
	return nil
}

// writeItems decides items, alike ones by one statement. Then it ends those of redrives that were
// overtaken: the same call may have decided them.
func (v *verb) writeItems(c *engine.Changes) error {
	type decision struct {
		operation           nixie.ID
		state, group, error string
	}
	alike := map[decision][]int64{}
	for _, it := range c.Decided {
		d := decision{it.Operation, string(it.State), it.Group, it.Error}
		alike[d] = append(alike[d], it.Letter)
	}
	for d, positions := range alike {
		if err := v.run(sqlText("decide_items"), d.state, d.error, d.group, v.now, d.operation, listed(positions, same)); err != nil {
			return err
		}
	}
	for _, e := range c.Ends {
		if err := v.ends(e.Letter, e.Ending); err != nil {
			return err
		}
	}
	for _, r := range c.Regrouped {
		if err := v.run(sqlText("regroup_item"), r.Letter.Fingerprint, r.Letter.Operation, r.Letter.Pos, r.Was); err != nil {
			return err
		}
	}
	return nil
}

func (v *verb) removeLetters(c *engine.Changes) error {
	for _, gone := range c.Removed {
		if err := v.removeLetter(&v.letters[gone.Letter.Pos].letterRow, gone.Operation, ofPurged); err != nil {
			return err
		}
	}
	return nil
}

func (v *verb) writeAudit(c *engine.Changes) error {
	for _, e := range c.Audit {
		if err := v.chain(e.Queue, e.AuditEntry); err != nil {
			return err
		}
	}
	return nil
}

// dropUnused removes the queues that were made for messages that were then refused.
func (v *verb) dropUnused(*engine.Changes) error {
	for _, q := range v.made {
		if q.last > 0 {
			continue
		}
		delete(v.queues, q.name)
		delete(v.byNumber, q.n)
		if err := v.run("delete from queue where n = ?", q.n); err != nil {
			return err
		}
	}
	return nil
}

// NewID implements engine.Tx.
func (v *verb) NewID(int64) nixie.ID { return v.store.ids.New(lifecycle.Moment(v.now)) }

// Sent implements engine.Tx.
func (v *verb) Sent(list []*engine.Message) ([]nixie.Message, error) {
	given := make([]nixie.Message, len(list))
	for i, m := range list {
		var d nixie.Delivery
		if err := v.each(sqlText("read_message"), func(row rows) error {
			scanMessage(row, &d, &bodyPool{})
			return nil
		}, m.Pos); err != nil {
			return nil, err
		}
		given[i] = d.Message
	}
	return given, nil
}
