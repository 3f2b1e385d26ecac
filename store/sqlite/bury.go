package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// letterOf is the letter of a message from an earlier life. A message in its
// first one has none.
func (t *tx) letterOf(h *held) (*letterRow, error) {
	if h.Generation <= 1 {
		return nil, nil
	}
	return t.letter("pos = ?", h.pos)
}

// bury ends a message as dead and writes its letter, or moves on the one that
// it has from an earlier life. An operator's change that holds it is by; a verdict has
// none. Everything is in the transaction of the caller.
func (t *tx) bury(h *held, st *nixie.Settlement, by *store.Change) error {
	old, err := t.letterOf(h)
	if err != nil {
		return err
	}
	e := lifecycle.Settled(st, old != nil)
	if by != nil {
		e = lifecycle.Changed(by, old != nil)
	}
	var has letterRow
	if old != nil {
		has = *old
	}
	status, err := lifecycle.Follow(has.id, has.status, e.Event)
	if err != nil {
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
	last, first, err := t.lastFailure(h)
	if err != nil {
		return err
	}
	kind, flow, err := t.kindOfDead(h, &last, st.Burial, old, status)
	if err != nil {
		return err
	}
	blocks := h.stream != 0 && h.q.settings.Blocks() && !h.frees
	if old == nil {
		old = &letterRow{id: t.store.ids.New(lifecycle.Moment(t.now)), queue: h.queue}
		row := t.added.add(toLetter)
		row.num(h.pos).bytes(old.id[:]).num(kind).num(h.queue).str(string(status)).str(string(st.Burial.Cause)).str(string(last.class)).str(string(last.reason))
		row.str(st.Burial.Signature).str(st.Burial.Fingerprint).flag(st.Burial.Redrivable).flag(st.Burial.NeedsReview).str(st.Burial.Rule).str(last.text)
		row.num(first).num(last.at).num(t.now).str(e.Note).numOrNull(h.stream).num(h.Rank).flag(blocks).strOrNull(flow).num(sumOf(st.Burial.Rule)).num(sumOf(e.Note))
		err = t.added.end(row)
	} else {
		err = t.run(`update letter set kind = ?, status = ?, cause = ?, class = ?, reason = ?, signature = ?, fingerprint = ?, redrivable = ?, needs_review = ?, rule = ?, text = ?,
			first_failed = coalesce(nullif(first_failed, 0), ?), last_failed = ?, died = ?, resolved = 0, note = ?, revision = revision + 1, stream = ?, rank = ?, blocks = ?, rule_sum = ?, note_sum = ? where pos = ?`,
			kind, string(status), string(st.Burial.Cause), string(last.class), string(last.reason), st.Burial.Signature, st.Burial.Fingerprint,
			st.Burial.Redrivable, st.Burial.NeedsReview, st.Burial.Rule, last.text, first, last.at, t.now, e.Note, orNull(h.stream), h.Rank, blocks, sumOf(st.Burial.Rule), sumOf(e.Note), old.pos)
	}
	if err != nil {
		return err
	}
	return t.audit(h.queue, e.Actor, e.Event, old.id, e.Reason)
}

// kindOfDead counts the letter of a message that died as one of its kind, and no
// longer as what it was, and returns the number of the kind and the name of the
// message's stream.
func (t *tx) kindOfDead(h *held, last *lastOf, b *nixie.Burial, old *letterRow, status nixie.Status) (n int64, flow string, err error) {
	k := kind{
		queue: h.queue, status: status, cause: b.Cause, class: last.class, reason: last.reason, signature: b.Signature, fingerprint: b.Fingerprint,
		redrivable: b.Redrivable, needsReview: b.NeedsReview, redrives: h.Redrives, attempts: h.Attempts, crashes: h.Crashes,
	}
	if k.mtype, flow, err = t.typeAndStream(h); err != nil {
		return 0, "", err
	}
	if old != nil {
		if _, err := t.uncount(old); err != nil {
			return 0, "", err
		}
	}
	n, err = t.countLetter(&k, t.now, 1)
	return n, flow, err
}

// typeAndStream are those of a message. A delivery that this store made says
// them.
func (t *tx) typeAndStream(h *held) (mtype, stream string, err error) {
	if h.d != nil && h.d.Lease.Receipt.Place != 0 {
		return h.d.Type, h.d.Stream, nil
	}
	return mtype, stream, t.each("select type, stream from message where pos = ?", func(row rows) error {
		mtype, stream = row.ColumnText(0), row.ColumnText(1)
		return nil
	}, h.pos)
}

// lastOf is what a letter shows of a message's newest failure.
type lastOf struct {
	text   string
	class  nixie.Class
	reason nixie.Reason
	at     int64 // when the attempt failed
}

// lastFailure returns the newest failure and when the first attempt failed. What
// was appended by the same settlement is not read again.
func (t *tx) lastFailure(h *held) (last lastOf, first int64, err error) {
	if h.last != nil && h.first != 0 {
		return *h.last, h.first, nil
	}
	read := func(way string) (f lastOf, err error) {
		return f, t.each("select text, doc from failure where pos = +? order by ordinal "+way+" limit 1", func(row rows) error {
			var doc failureDoc
			if err := fromJSON(row.ColumnText(1), &doc); err != nil {
				return err
			}
			f = lastOf{row.ColumnText(0), doc.Class, doc.Reason, lifecycle.Nanos(doc.FailedAt)}
			return nil
		}, h.pos)
	}
	if h.last != nil {
		last = *h.last
	} else if last, err = read("desc"); err != nil {
		return last, 0, err
	}
	began, err := read("asc")
	return last, began.at, err
}

// letterFollows moves the letter of a redriven message on when that has ended
// well or is gone, as it ended.
func (t *tx) letterFollows(h *held, e lifecycle.End) error {
	l, err := t.letterOf(h)
	if err != nil || l == nil || l.status != nixie.StatusRedriving {
		return err
	}
	next, err := lifecycle.Follow(l.id, l.status, e.Event)
	if err != nil {
		return err
	}
	kind, err := t.become(l, next)
	if err != nil {
		return err
	}
	if err := t.run("update letter set kind = ?, status = ?, resolved = ?, note = ?, note_sum = ?, revision = revision + 1 where pos = ?", kind, string(next), t.now, e.Note, sumOf(e.Note), l.pos); err != nil {
		return err
	}
	return t.audit(l.queue, e.Actor, e.Event, l.id, e.Reason)
}

// pause stops the handing out of a queue.
func (t *tx) pause(q *queueRow, note string) error {
	q.paused, q.settings.Paused, q.settings.PausedNote = true, true, note
	return t.saveSettings(q)
}

func (t *tx) saveSettings(q *queueRow) error {
	q.paused = q.settings.Paused
	settings := textOf(jsonText(false, q.settings))
	return t.run("update queue set paused = ?, widest = max(widest, ?), settings = ?, texts = ? where n = ?", q.settings.Paused, width(q.settings.DedupeScope), settings, sumOf(settings), q.n)
}

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
