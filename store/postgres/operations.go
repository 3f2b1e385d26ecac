package postgres

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Plan implements store.Operations.
func (s *Store) Plan(ctx context.Context, op store.Operation, filter nixie.Filter, limit int) (store.Operation, error) {
	if !op.ID.IsZero() {
		return s.planAgain(ctx, op.ID)
	}
	if err := store.CheckPlan(&op, limit); err != nil {
		return op, err
	}
	if limit == 0 {
		limit = math.MaxInt32
	}
	var planned store.Operation
	err := s.write(ctx, func(t *tx) error {
		if err := t.time(); err != nil {
			return err
		}
		planned = op
		planned.ID, planned.CreatedAt = t.store.ids.New(lifecycle.Moment(t.now)), lifecycle.Moment(t.now)
		t.run("insert into @.operation (id, event, actor, reason, filter, force, created, destination, statuses, reviewed, guarded) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
			[16]byte(planned.ID), string(op.Event), plain(op.Actor), plain(op.Reason), plain(op.Filter), op.Force, t.now, plain(op.Destination), eachOf(op.Statuses, func(s nixie.Status) string { return string(s) }), op.Reviewed, op.Guarded)
		w := letterWhere(&filter, t.now)
		w.add("?::uuid is not null", [16]byte(planned.ID))
		t.number(&planned.Selected, fmt.Sprintf(`with found as materialized (select l.pos, l.died, l.rank, l.stream, l.revision, l.fingerprint from %s where %s order by l.died, l.pos limit %d),
			turns as (select pos, died, rank, revision, fingerprint, min(died) over (partition by coalesce(stream, -pos)) as turn, min(pos) over (partition by coalesce(stream, -pos)) as lead from found),
			put as (insert into @.item (operation, ordinal, letter, state, revision, fingerprint) select o.n, row_number() over (order by turn, lead, rank, died, t.pos), t.pos, 'pending', revision, fingerprint
				from turns t, @.operation o where o.id = $%d returning 1)
			select count(*) from put`, w.letters(), w, limit, len(w.args)), w.args...)
		err := t.send()
		planned.Pending = planned.Selected
		return err
	})
	return planned, err
}

// Operations implements store.Operations.
func (s *Store) Operations(ctx context.Context, look store.OperationQuery, page store.Page) (list []store.Operation, next string, err error) {
	if !look.ID.IsZero() {
		return s.lookAt(ctx, look)
	}
	before, err := cursorNumber(page.Cursor)
	if err != nil {
		return nil, "", err
	}
	limit := page.Rows()
	err = s.view(ctx, func(t *tx) error {
		t.readOperations(&list, &before, "o.n in (select n from @.operation where $1::bigint = 0 or n < $1 order by n desc limit $2) order by o.n desc", before, limit)
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
	var outcome store.Outcome
	err = s.view(ctx, func(t *tx) error {
		t.readOperations(&list, nil, "o.id = $1", id)
		if look.Next > 0 {
			t.read(func(r row) error {
				var letter nixie.ID
				err := r.Scan((*idColumn)(&letter))
				letters = append(letters, letter)
				return err
			}, `select l.id from @.item i join @.letter l on l.pos = i.letter where i.operation = (select n from @.operation where id = $1) and i.state = 'pending' order by i.ordinal limit $2`, id, look.Next)
		}
		if look.Outcome {
			t.read(func(r row) error {
				var status nixie.Status
				var same bool
				var count int64
				err := r.Scan(&status, &same, &count)
				outcome.Add(status, same, count)
				return err
			}, `select l.status, coalesce(l.fingerprint = i.fingerprint, false), count(*) from @.letter l
				left join @.item i on i.operation = (select n from @.operation where id = $1) and i.letter = l.pos where l.operation = $1 group by 1, 2`, id)
		}
		return t.send()
	})
	if err == nil && len(list) == 0 {
		err = store.NoOperation(look.ID)
	}
	if err != nil {
		return nil, "", err
	}
	list[0].Next, list[0].Outcome = letters, outcome
	return list, "", nil
}

// readOperations reads operations with their counts, the newest first, and the number of
// the last.
func (t *tx) readOperations(into *[]store.Operation, last *int64, where string, args ...any) {
	t.read(func(r row) error {
		var op store.Operation
		var created, n int64
		var statuses []string
		if err := r.Scan(&n, (*idColumn)(&op.ID), &op.Event, &op.Actor, &op.Reason, &op.Filter, &op.Force, &created, &op.Destination, &statuses, &op.Reviewed, &op.Guarded,
			&op.Done, &op.Skipped, &op.Failed, &op.Pending); err != nil {
			return err
		}
		for _, status := range statuses {
			op.Statuses = append(op.Statuses, nixie.Status(status))
		}
		op.CreatedAt, op.Selected = lifecycle.Moment(created), op.Done+op.Skipped+op.Failed+op.Pending
		if *into = append(*into, op); last != nil {
			*last = n
		}
		return nil
	}, `select o.n, o.id, o.event, o.actor, o.reason, o.filter, o.force, o.created, o.destination, o.statuses, o.reviewed, o.guarded, c.*
		from @.operation o cross join lateral (select count(*) filter (where state = 'done'), count(*) filter (where state = 'skipped'), count(*) filter (where state = 'failed'), count(*) filter (where state = 'pending')
			from @.item i where i.operation = o.n) c where `+where, args...)
}

// planAgain makes items of letters that died again pending again.
func (s *Store) planAgain(ctx context.Context, id nixie.ID) (store.Operation, error) {
	if err := s.write(ctx, func(t *tx) error {
		t.run(`update @.item i set state = 'pending', revision = l.revision, fingerprint = l.fingerprint from @.letter l, @.operation o
			where o.id = $1 and i.operation = o.n and i.state = 'done' and l.pos = i.letter and l.operation = $1 and l.status in ('open', 'review', 'quarantined')`, [16]byte(id))
		return t.send()
	}); err != nil {
		return store.Operation{}, err
	}
	return store.FindOperation(ctx, s, store.OperationQuery{ID: id})
}
