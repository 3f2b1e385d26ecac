package postgres

import (
	"context"
	"fmt"
	"math"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Plan implements store.Operations.
func (s *Store) Plan(ctx context.Context, op store.Operation, filter nixie.Filter, limit int) (store.Operation, error) {
	if err := store.CheckEvent(op.Event); err != nil {
		return op, err
	}
	switch {
	case op.Actor == "":
		return op, nixie.Errorf(nixie.CodeInvalid, "actor is empty: say who plans the operation")
	case limit < 0:
		return op, nixie.Errorf(nixie.CodeInvalid, "operation is limited to %d letters: give 0 for all or a positive number", limit)
	case limit == 0:
		limit = math.MaxInt32
	}
	var planned store.Operation
	err := s.write(ctx, func(t *tx) error {
		if err := t.time(); err != nil {
			return err
		}
		planned = op
		planned.ID, planned.CreatedAt = t.store.ids.New(moment(t.now)), moment(t.now)
		t.run("insert into @.operation (id, event, actor, reason, filter, force, created) values ($1, $2, $3, $4, $5, $6, $7)",
			[16]byte(planned.ID), string(op.Event), plain(op.Actor), plain(op.Reason), plain(op.Filter), op.Force, t.now)
		w := letterWhere(&filter, t.now)
		w.add("?::uuid is not null", [16]byte(planned.ID))
		t.number(&planned.Selected, fmt.Sprintf(`with found as materialized (select l.pos, l.died, l.rank, l.stream from @.letter l join @.current c on c.pos = l.pos where %s order by l.died, l.pos limit %d),
			turns as (select pos, died, rank, min(died) over (partition by coalesce(stream, -pos)) as turn, min(pos) over (partition by coalesce(stream, -pos)) as lead from found),
			put as (insert into @.item (operation, ordinal, letter, state) select o.n, row_number() over (order by turn, lead, rank, died, t.pos), t.pos, 'pending'
				from turns t, @.operation o where o.id = $%d returning 1)
			select count(*) from put`, w, limit, len(w.args)), w.args...)
		err := t.send()
		planned.Pending = planned.Selected
		return err
	})
	return planned, err
}

// Operation implements store.Operations.
func (s *Store) Operation(ctx context.Context, id nixie.ID, limit int) (store.Operation, []nixie.ID, error) {
	var op store.Operation
	var letters []nixie.ID
	err := s.view(ctx, func(t *tx) error {
		found := false
		t.read(func(r row) error {
			var created int64
			found, op.ID = true, id
			err := r.Scan(&op.Event, &op.Actor, &op.Reason, &op.Filter, &op.Force, &created)
			op.CreatedAt = moment(created)
			return err
		}, "select event, actor, reason, filter, force, created from @.operation where id = $1", [16]byte(id))
		t.read(func(r row) error {
			return r.Scan(&op.Selected, &op.Done, &op.Skipped, &op.Failed, &op.Pending)
		}, `select count(*), count(*) filter (where state = 'done'), count(*) filter (where state = 'skipped'), count(*) filter (where state = 'failed'), count(*) filter (where state = 'pending')
			from @.item where operation = (select n from @.operation where id = $1)`, [16]byte(id))
		t.read(func(r row) error {
			var letter nixie.ID
			err := r.Scan((*idColumn)(&letter))
			letters = append(letters, letter)
			return err
		}, `select l.id from @.item i join @.letter l on l.pos = i.letter where i.operation = (select n from @.operation where id = $1) and i.state = 'pending' order by i.ordinal limit $2`,
			[16]byte(id), max(limit, 0))
		if err := t.send(); err != nil {
			return err
		}
		if !found {
			return nixie.Errorf(nixie.CodeNotFound, "no operation %s", id)
		}
		return nil
	})
	return op, letters, err
}
