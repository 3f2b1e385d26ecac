package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// edited holds what an edit compares and replaces in a message.
type edited struct {
	nixie.Message
	headers, origin string
}

// readEdited reads the message that an edit changes.
func (t *tx) readEdited(pos int64) (*edited, error) {
	m := &edited{}
	return m, t.each("select hash, headers, type, key, stream, dedupe, origin from message where pos = +?", func(row rows) error {
		row.ColumnBytes(0, m.Hash[:])
		m.headers, m.origin = row.ColumnText(1), row.ColumnText(6)
		m.Type, m.Key, m.Stream, m.DedupeKey = row.ColumnText(2), row.ColumnText(3), row.ColumnText(4), row.ColumnText(5)
		return fromJSON(m.headers, &m.Headers)
	}, pos)
}

// prolong gives a redriven message the expiry that the redrive asks for.
func (t *tx) prolong(l *letterRow, expires int64, r *store.Resolution) error {
	at, what := lifecycle.Prolonged(expires, r, t.at.wall)
	if what == "" {
		return nil
	}
	if err := t.run("update message set expires = ? where pos = ?", at, l.pos); err != nil {
		return err
	}
	return t.chain(l.queue, store.AuditEntry{Actor: r.Actor, Event: store.OnAmend, Subject: r.Letter, Reason: what, Operation: r.Operation})
}

// edit writes an operator's edit to a redriven message, and keeps the original.
func (t *tx) edit(l *letterRow, m *edited, r *store.Resolution) error {
	if m == nil {
		return nil
	}
	what := lifecycle.Edited(m.Hash, m.Headers, r.Edit)
	if what == "" {
		return nil
	}
	if err := t.run(sqlText("keep_original"), t.now, r.Actor, sumOf(m.headers, r.Actor), l.pos); err != nil {
		return err
	}
	q, err := t.queueAt(l.pos)
	if err != nil {
		return err
	}
	q.largest, q.dirty = max(q.largest, int64(len(r.Edit.Body))), true
	hash, headers := nixie.HashBody(r.Edit.Body), jsonText(len(r.Edit.Headers) == 0, r.Edit.Headers)
	if err := t.run("update message set body = ?, hash = ?, headers = ?, texts = ? where pos = ?",
		append([]byte{}, r.Edit.Body...), hash, headers, messageSum(&m.Message, textOf(headers), m.origin), l.pos); err != nil {
		return err
	}
	return t.chain(l.queue, store.AuditEntry{Actor: r.Actor, Event: store.OnAmend, Subject: r.Letter, Reason: what, Operation: r.Operation})
}

// original reads what the message of a letter said before its first edit.
func original(c conn, l *nixie.Letter, pos int64) error {
	return c.each("select body, hash, headers, at, by from original where pos = ?", func(row rows) error {
		o := &nixie.Original{Body: columnBytes(row, 0), At: lifecycle.Moment(row.ColumnInt64(3)), By: row.ColumnText(4)}
		row.ColumnBytes(1, o.Hash[:])
		if nixie.HashBody(o.Body) != o.Hash {
			l.Damage = append(l.Damage, "original "+bodyDamage)
		}
		if err := fromJSON(row.ColumnText(2), &o.Headers); err != nil {
			l.Damage = append(l.Damage, "original headers: "+err.Error())
		}
		l.Original = o
		return nil
	}, pos)
}
