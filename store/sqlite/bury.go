package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// letterOf returns the letter of a message from an earlier generation, or nil. The first generation
// has none.
func (t *tx) letterOf(h *held) (*letterRow, error) {
	if h.Generation <= 1 {
		return nil, nil
	}
	return t.letter(sqlText("letter_at"), h.pos)
}

// bury ends a message as dead. It adds a letter, or updates the one from an earlier generation. The
// caller's transaction contains all of it.
func (t *tx) bury(h *held, st *nixie.Settlement) error {
	old, err := t.letterOf(h)
	if err != nil {
		return err
	}
	e := lifecycle.Settled(st, old != nil)
	l := &letterRow{pos: h.pos, queue: h.queue}
	if old != nil {
		copied := *old
		l = &copied
	}
	if err := l.Follows(e); err != nil {
		return err
	}
	if err := t.end(h, ""); err != nil {
		return err
	}
	if st.Verb == nixie.Halt {
		if err := t.pause(h.q, "halted by message "+st.Delivery.ID.String()); err != nil {
			return err
		}
	}
	first, last, err := t.failuresOf(h)
	if err != nil {
		return err
	}
	if err := l.Die(&h.Message, e, st.Burial, &h.q.settings, first, last, t.now); err != nil {
		return err
	}
	l.stream = h.stream
	mtype, flow, err := t.typeAndStream(h)
	if err != nil {
		return err
	}
	if old != nil {
		if _, err = t.leaveFacet(old); err == nil {
			err = t.joinFacet(l, mtype, &h.Message)
		}
		if err == nil {
			err = t.writeDeath(l)
		}
		if err == nil {
			err = t.ends(l.pos, lifecycle.Ending{Operation: l.Operation, On: e.Event, Fingerprint: l.Fingerprint})
		}
	} else {
		l.ID = t.store.ids.New(lifecycle.Moment(t.now))
		if err = t.joinFacet(l, mtype, &h.Message); err == nil {
			err = t.insertLetter(l, flow)
		}
	}
	if err != nil {
		return err
	}
	if err := t.audit(h.queue, e.Actor, e.Event, l.ID, e.Reason); err != nil || h.q.settings.DeadLetterTo == "" {
		return err
	}
	return t.notify(h, st, last)
}

// notify enqueues the notice of a death.
func (t *tx) notify(h *held, st *nixie.Settlement, newest *lifecycle.Failure) error {
	var died nixie.Delivery
	if err := t.each(sqlText("read_message"), func(row rows) error {
		scanMessage(row, &died, &bodyPool{})
		return nil
	}, h.pos); err != nil {
		return err
	}
	h.ID, died.Queue = died.ID, h.q.name
	n := h.Notice(died.Message, st, newest, h.q.settings.DeadLetterTo, t.now)
	if _, err := t.enqueue(&n, nixie.HashBody(n.Body)); err != nil {
		return nixie.Errorf(nixie.CodeUnavailable, "enqueue the notice of a death: %w", err) // no answer: it is half done
	}
	return nil
}

// insertLetter adds a letter, with the name of its message's stream.
func (t *tx) insertLetter(l *letterRow, flow string) error {
	row := t.added.add(toLetter)
	row.num(l.pos).bytes(l.ID[:]).num(l.facet).num(l.queue)
	row.str(string(l.Status)).str(string(l.Cause)).str(string(l.Class)).str(string(l.Reason))
	row.str(l.Signature).str(l.Fingerprint).flag(l.Redrivable).flag(l.NeedsReview).str(l.Rule).str(l.Text)
	row.num(l.FirstFailed).num(l.LastFailed).num(l.Died).str(l.Note).numOrNull(l.stream).num(l.Rank).flag(l.Blocks)
	row.strOrNull(flow).num(sumOf(l.Rule)).num(sumOf(l.Note))
	return t.added.end(row)
}

// writeDeath writes another death of a message to its letter. appendFailure has written the text of
// the failure already.
func (t *tx) writeDeath(l *letterRow) error {
	return t.run(sqlText("letter_dies_again"),
		l.facet, string(l.Status), string(l.Cause), string(l.Class), string(l.Reason), l.Signature, l.Fingerprint, l.Redrivable,
		l.NeedsReview, l.Rule, sumOf(l.Rule),
		l.FirstFailed, l.LastFailed, l.Died, l.Resolved, idOrNull(l.Operation), l.Note, sumOf(l.Note), l.Revision, orNull(l.stream), l.Rank,
		l.Blocks, l.pos)
}

// writeMove writes a change of a letter that is no death.
func (t *tx) writeMove(l *letterRow) error {
	return t.run(sqlText("letter_moves"),
		l.facet, string(l.Status), l.Resolved, l.Note, sumOf(l.Note), l.Revision, idOrNull(l.Operation), l.pos)
}

// typeAndStream returns type and stream of a message. A delivery of this store has both, so no row
// is read then.
func (t *tx) typeAndStream(h *held) (mtype, stream string, err error) {
	if h.d != nil && h.d.Lease.Handle.Pos != 0 {
		return h.d.Type, h.d.Stream, nil
	}
	return mtype, stream, t.each("select type, stream from message where pos = ?", func(row rows) error {
		mtype, stream = row.ColumnText(0), row.ColumnText(1)
		return nil
	}, h.pos)
}

// failuresOf returns the first and the last failure of a message, nil if it has none. It does not
// read again what the same settlement appended.
func (t *tx) failuresOf(h *held) (first, last *lifecycle.Failure, err error) {
	if h.last == nil {
		if h.last, err = t.failureOf(h.pos, "desc"); err != nil || h.last == nil {
			return nil, nil, err
		}
	}
	if h.first == nil {
		h.first, err = t.failureOf(h.pos, "asc")
	}
	return h.first, h.last, err
}

// failureOf reads the first failure of a message in an order of ordinals: asc or desc.
func (t *tx) failureOf(pos int64, order string) (f *lifecycle.Failure, err error) {
	return f, t.each("select text, doc from failure where pos = +? order by ordinal "+order+" limit 1", func(row rows) error {
		var doc failureDoc
		if err := fromJSON(row.ColumnText(1), &doc); err != nil {
			return err
		}
		f = &lifecycle.Failure{At: lifecycle.Nanos(doc.FailedAt), Class: doc.Class, Reason: doc.Reason, Text: row.ColumnText(0)}
		return nil
	}, pos)
}

// letterFollows updates the letter of a redriven message when the message has succeeded or is gone.
func (t *tx) letterFollows(h *held, e lifecycle.End) error {
	l, err := t.letterOf(h)
	if err != nil || l == nil || l.Status != nixie.StatusRedriving {
		return err
	}
	was := *l
	if err := l.Follow(e, t.now); err != nil {
		return err
	}
	if l.facet, err = t.moveFacet(&was, l.Status); err != nil {
		return err
	}
	if err := t.writeMove(l); err != nil {
		return err
	}
	if err := t.ends(l.pos, lifecycle.Ending{Operation: l.Operation, On: e.Event}); err != nil {
		return err
	}
	return t.audit(l.queue, e.Actor, e.Event, l.ID, e.Reason)
}

// pause pauses a queue: claims get no messages.
func (t *tx) pause(q *queueRow, note string) error {
	q.paused, q.settings.Paused, q.settings.PausedNote = true, true, note
	return t.saveSettings(q)
}

func (t *tx) saveSettings(q *queueRow) error {
	q.paused = q.settings.Paused
	settings := textOf(jsonText(false, q.settings))
	scope := q.settings.DedupeScope
	frees := 0
	if lifecycle.FreesClaimed(scope) {
		frees = everFreed
	}
	return t.run("update queue set paused = ?, widest = max(widest & 3, ?) | (widest & 4) | ?, settings = ?, texts = ? where n = ?",
		q.settings.Paused, width(scope), frees, settings, sumOf(settings), q.n)
}

// everFreed is the flag in queue.widest that the scope was one in which claims free keys. Then
// messages on their way may be without theirs.
const everFreed = 4

// width orders dedupe scopes: a wider one holds keys longer.
func width(scope nixie.DedupeScope) int {
	switch scope {
	case nixie.DedupeUnresolved:
		return 1
	case nixie.DedupeEver:
		return 2
	}
	return 0
}

func idOrNull(id nixie.ID) any {
	if id.IsZero() {
		return nil
	}
	return id
}
