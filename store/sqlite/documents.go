package sqlite

import (
	"context"
	"encoding/json"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Documents implements engine.Driver. Each way to look has an index.
func (d engineDriver) Documents(ctx context.Context, q store.DocumentQuery, after string, most int) (list []store.Document, err error) {
	now := d.now()
	w := &where{}
	w.add("space = ? and (expires = 0 or expires > ?)", q.Space, now)
	order := "key"
	if q.Label != "" {
		w.add("label = ?", q.Label)
	}
	switch {
	case q.Key != "":
		w.add("key = ?", q.Key)
	case q.DueBy.IsZero():
		w.add("key > ?", after)
	}
	if !q.DueBy.IsZero() {
		w.add("due > 0 and due <= ?", lifecycle.Nanos(q.DueBy))
		order = "due, key"
	}
	err = d.read(ctx, func(c conn) error {
		return c.each(sqlText("documents")+" where "+w.String()+" order by "+order+limited, func(row rows) error {
			list = append(list, scanDocument(row))
			return nil
		}, append(w.args, most)...)
	})
	return list, err
}

func scanDocument(row rows) store.Document {
	return store.Document{
		DocumentKey: store.DocumentKey{Space: row.ColumnText(0), Key: row.ColumnText(1)},
		Value:       json.RawMessage(row.ColumnText(2)), Label: row.ColumnText(3),
		Due: lifecycle.Moment(row.ColumnInt64(4)), Expires: lifecycle.Moment(row.ColumnInt64(5)), Revision: row.ColumnInt64(6),
		Owner: row.ColumnText(7), Until: lifecycle.Moment(row.ColumnInt64(8)), At: lifecycle.Moment(row.ColumnInt64(9)),
		By: row.ColumnText(10),
	}
}

// loadDocuments reads documents by their names.
func (v *verb) loadDocuments(w *engine.Want, facts *engine.Facts) error {
	facts.Documents = map[store.DocumentKey]*store.Document{}
	for _, key := range w.Documents {
		if err := v.each(sqlText("documents")+" where space = ? and key = ?", func(row rows) error {
			d := scanDocument(row)
			facts.Documents[key] = &d
			return nil
		}, key.Space, key.Key); err != nil {
			return err
		}
	}
	return nil
}

// writeDocuments replaces documents by new rows, so that no number of a row is used again.
func (v *verb) writeDocuments(c *engine.Changes) error {
	for _, w := range c.Documents {
		if err := v.run("delete from document where space = ? and key = ?", w.DocumentKey.Space, w.DocumentKey.Key); err != nil {
			return err
		}
		d := w.Document
		if d == nil {
			continue
		}
		if err := v.run(sqlText("add_document"), d.Space, d.Key, string(d.Value), d.Label, d.Due, d.Expires, d.Owner, d.Until, d.At, d.By,
			sumOf(d.Space, d.Key, string(d.Value), d.Label, d.Owner, d.By)); err != nil {
			return err
		}
		d.Revision = v.LastInsertRowID()
	}
	return nil
}
