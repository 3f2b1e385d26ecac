package sqlite

import (
	"context"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Plan implements store.Operations.
func (s *Store) Plan(ctx context.Context, op store.Operation, filter nixie.Filter, limit int) (store.Operation, error) {
	if op.Actor == "" {
		return op, nixie.Errorf(nixie.CodeInvalid, "actor is empty: say who does it")
	}
	if err := store.CheckEvent(op.Event); err != nil {
		return op, err
	}
	if limit <= 0 {
		limit = 1<<31 - 1
	}
	var planned store.Operation
	err := s.write(ctx, 0, func(t *tx) error {
		planned = op
		planned.ID, planned.CreatedAt = t.store.ids.New(moment(t.now)), moment(t.now)
		if err := t.run("insert into operation (id, event, actor, reason, filter, force, created) values (?, ?, ?, ?, ?, ?, ?)",
			planned.ID, string(op.Event), op.Actor, op.Reason, op.Filter, op.Force, t.now); err != nil {
			return err
		}
		n := t.LastInsertRowID()
		w := letterWhere(&filter, moment(t.now))
		selected, err := t.change(`insert into item (operation, ordinal, letter, state)
			select ?, row_number() over (order by turn, rank, died, pos), pos, 'pending' from
			(select pos, died, rank, min(died) over (partition by coalesce(stream, -pos)) as turn from
			(select l.pos, l.died, l.rank, l.stream from letter l join current c on c.pos = l.pos where `+w.String()+" order by l.died, l.pos limit ?))",
			append(append([]any{n}, w.args...), limit)...)
		planned.Selected, planned.Pending = int64(selected), int64(selected)
		return err
	})
	return planned, err
}

// Operation implements store.Operations.
func (s *Store) Operation(ctx context.Context, id nixie.ID, limit int) (store.Operation, []nixie.ID, error) {
	var op store.Operation
	var letters []nixie.ID
	err := s.read(ctx, func(c conn) error {
		n := int64(0)
		if err := c.each("select n, event, actor, reason, filter, force, created from operation where id = ?", func(row rows) error {
			n = row.ColumnInt64(0)
			op = store.Operation{
				ID: id, Event: nixie.Event(row.ColumnText(1)), Actor: row.ColumnText(2), Reason: row.ColumnText(3),
				Filter: row.ColumnText(4), Force: row.ColumnBool(5), CreatedAt: moment(row.ColumnInt64(6)),
			}
			return nil
		}, id); err != nil {
			return err
		}
		if n == 0 {
			return nixie.Errorf(nixie.CodeNotFound, "no operation %s", id)
		}
		counts := map[string]*int64{"pending": &op.Pending, "done": &op.Done, "skipped": &op.Skipped, "failed": &op.Failed}
		if err := c.each("select state, count(*) from item where operation = ? group by state", func(row rows) error {
			if into := counts[row.ColumnText(0)]; into != nil {
				*into = row.ColumnInt64(1)
			}
			op.Selected += row.ColumnInt64(1)
			return nil
		}, n); err != nil {
			return err
		}
		return c.each("select l.id from item i join letter l on l.pos = i.letter where i.operation = ? and i.state = 'pending' order by i.ordinal limit ?", func(row rows) error {
			letters = append(letters, columnID(row, 0))
			return nil
		}, n, max(limit, 0))
	})
	return op, letters, err
}
