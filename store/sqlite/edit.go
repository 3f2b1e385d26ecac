package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/engine"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// writeEdits gives redriven messages their new expiries and what operators replaced in them, and
// keeps the originals.
func (v *verb) writeEdits(c *engine.Changes) error {
	for _, m := range c.Renewed {
		if err := v.run("update message set expires = ? where pos = ?", m.Expires, m.Pos); err != nil {
			return err
		}
	}
	for i := range c.Edits {
		if err := v.edit(&c.Edits[i]); err != nil {
			return err
		}
	}
	return nil
}

func (v *verb) edit(e *engine.Edit) error {
	pos, q := e.Message.Pos, v.messages[e.Message.Pos].q
	m, headers, origin := nixie.Message{}, "", ""
	if err := v.each("select headers, type, key, stream, dedupe, origin from message where pos = +?", func(row rows) error {
		headers, origin = row.ColumnText(0), row.ColumnText(5)
		m.Type, m.Key, m.Stream, m.DedupeKey = row.ColumnText(1), row.ColumnText(2), row.ColumnText(3), row.ColumnText(4)
		return nil
	}, pos); err != nil {
		return err
	}
	if err := v.run(sqlText("keep_original"), v.now, e.Actor, sumOf(headers, e.Actor), pos); err != nil {
		return err
	}
	q.largest, q.dirty = max(q.largest, int64(len(e.Body))), true
	now := jsonText(len(e.Message.Headers) == 0, e.Message.Headers)
	return v.run("update message set body = ?, hash = ?, headers = ?, texts = ? where pos = ?",
		append([]byte{}, e.Body...), e.Message.Hash, now, messageSum(&m, textOf(now), origin), pos)
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
