package sqlite

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// notes reads the notes of a letter, oldest first.
func notes(c conn, letter int64) ([]nixie.Note, error) {
	var list []nixie.Note
	err := c.each("select at, by, text from note where letter = +? order by ordinal", func(row rows) error {
		list = append(list, nixie.Note{At: lifecycle.Moment(row.ColumnInt64(0)), By: row.ColumnText(1), Text: row.ColumnText(2)})
		return nil
	}, letter)
	return list, err
}
