package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// annotate writes a note on a letter of any status.
func (t *tx) annotate(l *letterRow, r *store.Resolution) error {
	if err := t.run(sqlText("add_note"), l.pos, t.now, r.Actor, r.Reason, sumOf(r.Actor, r.Reason)); err != nil {
		return err
	}
	if err := t.run("update letter set revision = ? where pos = ?", l.Revision, l.pos); err != nil {
		return err
	}
	return t.auditResolved(l.queue, r)
}

// notes reads the notes of a letter, oldest first.
func notes(c conn, letter int64) ([]nixie.Note, error) {
	var list []nixie.Note
	err := c.each("select at, by, text from note where letter = +? order by ordinal", func(row rows) error {
		list = append(list, nixie.Note{At: lifecycle.Moment(row.ColumnInt64(0)), By: row.ColumnText(1), Text: row.ColumnText(2)})
		return nil
	}, letter)
	return list, err
}
