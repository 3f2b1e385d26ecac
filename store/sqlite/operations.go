package sqlite

import (
	"context"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Select implements engine.Tx.
func (v *verb) Select(op *store.Operation, filter *nixie.Filter, most int) (int64, error) {
	if err := v.run(sqlText("add_operation"), op.ID, string(op.Event), op.Actor, op.Reason, op.Filter, op.Force, v.now, op.Destination,
		statusText(op.Statuses), op.Reviewed, op.Guarded); err != nil {
		return 0, err
	}
	n := v.LastInsertRowID()
	w := letterWhere(filter, v.at)
	selected, err := v.change(sqlText("plan_items")+" "+w.String()+" order by l.died, l.pos limit ?))",
		append(append([]any{n}, w.args...), most)...)
	return int64(selected), err
}

// SelectAgain implements engine.Tx.
func (v *verb) SelectAgain(id nixie.ID) error {
	n, err := operationNumber(v.each, id)
	if err != nil {
		return err
	}
	return v.run(sqlText("plan_again"), n, id)
}

// statusText joins statuses to one text, which statusesOf reads.
func statusText(list []nixie.Status) string {
	texts := make([]string, len(list))
	for i, status := range list {
		texts[i] = string(status)
	}
	return strings.Join(texts, ",")
}

func statusesOf(text string) (list []nixie.Status) {
	for status := range strings.SplitSeq(text, ",") {
		if status != "" {
			list = append(list, nixie.Status(status))
		}
	}
	return list
}

func scanOperation(row rows) (store.Operation, error) {
	op := store.Operation{
		ID: columnID(row, 1), Event: store.Event(row.ColumnText(2)), Actor: row.ColumnText(3), Reason: row.ColumnText(4),
		Filter: row.ColumnText(5), Force: row.ColumnBool(6), CreatedAt: lifecycle.Moment(row.ColumnInt64(7)),
		Destination: row.ColumnText(8),
		Statuses:    statusesOf(row.ColumnText(9)), Reviewed: row.ColumnBool(10), Guarded: row.ColumnBool(11),
	}
	var items lifecycle.Items
	err := fromJSON(row.ColumnText(12), &items)
	items.Count(&op)
	return op, err
}

// Operations implements store.Operations.
func (s *Store) Operations(
	ctx context.Context, query store.OperationQuery, page store.Page,
) (list []store.Operation, next string, err error) {
	if !query.ID.IsZero() {
		return s.readOperation(ctx, query)
	}
	before, err := cursorNumber(page.Cursor)
	if err != nil {
		return nil, "", err
	}
	limit := page.Rows()
	err = s.read(ctx, func(c conn) error {
		return c.each(sqlText("operations"), func(row rows) error {
			op, err := scanOperation(row)
			list, before = append(list, op), row.ColumnInt64(0)
			return err
		}, before, limit)
	})
	if err != nil || len(list) < limit {
		return list, "", err
	}
	return list, strconv.FormatInt(before, 10), nil
}

// readOperation reads one operation.
func (s *Store) readOperation(ctx context.Context, query store.OperationQuery) (list []store.Operation, _ string, err error) {
	err = s.read(ctx, func(c conn) error {
		n, err := operationNumber(c.each, query.ID)
		if err != nil {
			return err
		}
		if err := c.each(sqlText("operation"), func(row rows) error {
			op, err := scanOperation(row)
			list = append(list, op)
			return err
		}, n); err != nil {
			return err
		}
		op := &list[0]
		return c.each(sqlText("next_items"), func(row rows) error {
			op.Next = append(op.Next, columnID(row, 0))
			return nil
		}, n, max(query.Next, 0))
	})
	return list, "", err
}

func operationNumber(each func(query string, f func(row rows) error, args ...any) error, id nixie.ID) (n int64, err error) {
	err = each("select n from operation where id = ?", func(row rows) error {
		n = row.ColumnInt64(0)
		return nil
	}, id)
	if err == nil && n == 0 {
		err = store.NoOperation(id)
	}
	return n, err
}

// ends writes the outcomes of the items by which operations moved a letter, if they are still to
// come.
func (t *tx) ends(letter int64, endings ...lifecycle.Ending) error {
	for _, e := range endings {
		if e.Operation.IsZero() {
			continue
		}
		same, other := e.Outcome()
		err := t.run(sqlText("item_ends"), e.Early, e.Fingerprint, string(same), string(other), t.now, e.Operation, letter,
			string(e.From()), e.Sent)
		if err != nil {
			return err
		}
	}
	return nil
}
