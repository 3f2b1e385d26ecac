package postgres

import (
	"context"
	"strconv"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Select implements engine.Tx.
func (v *verb) Select(op *store.Operation, filter *nixie.Filter, most int) (selected int64, err error) {
	id := [16]byte(op.ID)
	v.run("insert_operation.sql", id, string(op.Event), plain(op.Actor), plain(op.Reason), plain(op.Filter), op.Force, v.now,
		plain(op.Destination), eachOf(op.Statuses, func(s nixie.Status) string { return string(s) }), op.Reviewed, op.Guarded)
	w := letterWhere(filter, v.now)
	w.add("?::uuid is not null", id)
	v.number(&selected, fill("plan_items.sql", "letters", w.letters(), "where", w.String(), "limit", strconv.Itoa(most),
		"operation", "$"+strconv.Itoa(len(w.args))), w.args...)
	return selected, v.send()
}

// SelectAgain implements engine.Tx.
func (v *verb) SelectAgain(id nixie.ID) error {
	v.run("replan_items.sql", [16]byte(id))
	return v.send()
}

// Operations implements store.Operations.
func (s *Store) Operations(ctx context.Context, look store.OperationQuery, page store.Page) (list []store.Operation, next string,
	err error) {
	if !look.ID.IsZero() {
		return s.lookAt(ctx, look)
	}
	before, err := cursorNumber(page.Cursor)
	if err != nil {
		return nil, "", err
	}
	limit := page.Rows()
	err = s.view(ctx, func(t *tx) error {
		t.readOperations(&list, &before,
			"o.n in (select n from @.operation where $1::bigint = 0 or n < $1 order by n desc limit $2) order by o.n desc", before, limit)
		return t.send()
	})
	if err != nil || len(list) < limit {
		return list, "", err
	}
	return list, strconv.FormatInt(before, 10), nil
}

// lookAt shows one operation.
func (s *Store) lookAt(ctx context.Context, look store.OperationQuery) (list []store.Operation, _ string, err error) {
	id := [16]byte(look.ID)
	var letters []nixie.ID
	err = s.view(ctx, func(t *tx) error {
		t.readOperations(&list, nil, "o.id = $1", id)
		if look.Next > 0 {
			t.read(func(r row) error {
				var letter nixie.ID
				err := r.Scan((*idColumn)(&letter))
				letters = append(letters, letter)
				return err
			}, "next_items.sql", id, look.Next)
		}
		return t.send()
	})
	if err == nil && len(list) == 0 {
		err = store.NoOperation(look.ID)
	}
	if err != nil {
		return nil, "", err
	}
	list[0].Next = letters
	return list, "", nil
}

// readOperations reads operations with their counts, the newest first, and the number of the last.
func (t *tx) readOperations(into *[]store.Operation, last *int64, where string, args ...any) {
	t.read(func(r row) error {
		var op store.Operation
		var created, n int64
		var statuses []string
		var counts string
		if err := r.Scan(&n, (*idColumn)(&op.ID), &op.Event, &op.Actor, &op.Reason, &op.Filter, &op.Force, &created, &op.Destination,
			&statuses, &op.Reviewed, &op.Guarded, &counts); err != nil {
			return err
		}
		var items lifecycle.Items
		if err := fromJSON(counts, &items); err != nil {
			return err
		}
		items.Count(&op)
		for _, status := range statuses {
			op.Statuses = append(op.Statuses, nixie.Status(status))
		}
		op.CreatedAt = lifecycle.Moment(created)
		if *into = append(*into, op); last != nil {
			*last = n
		}
		return nil
	}, fill("read_operations.sql", "where", where), args...)
}
