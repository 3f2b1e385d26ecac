package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Purge implements store.Overview.
func (s *Store) Purge(ctx context.Context, queue string, filter nixie.Filter, most int, actor, reason string) (int, error) {
	if err := store.CheckOperator(queue, actor, reason); err != nil {
		return 0, err
	}
	n := 0
	err := s.write(ctx, 0, func(t *tx) error {
		n = 0
		q, err := t.queue(queue)
		if err != nil {
			return err
		}
		if q == nil {
			return nixie.Errorf(nixie.CodeNotFound, "no queue is called %q", queue)
		}
		found, err := t.purgeable(q, &filter, min(max(most, 0), nixie.MaxBatch))
		if err != nil {
			return err
		}
		cancel := store.Change{Verb: store.Cancel, Actor: actor, Reason: reason}
		for _, id := range found {
			if err := t.amend(id, &cancel); err != nil {
				return err
			}
		}
		if n = len(found); n == 0 {
			return nil
		}
		return t.audit(q.n, actor, store.OnPurge, nixie.ID{}, fmt.Sprintf("%d canceled: %s", n, reason))
	})
	return n, err
}

// purgeable finds queued messages of a queue, ordered by position: rows of pending, and new
// messages beyond the cursor. The cursor is the one of this transaction.
func (t *tx) purgeable(q *queueRow, f *nixie.Filter, most int) ([]nixie.ID, error) {
	if err := t.flush(); err != nil { // the view current reads the tables
		return nil, err
	}
	first, last := q.n<<seqBits, q.n<<seqBits|maxSeq
	type queued struct {
		pos int64
		id  nixie.ID
	}
	var found []queued
	for _, part := range [...]struct {
		where string
		from  int64
	}{
		{"c.pos in (select pos from pending where pos > ? and pos <= ? and state <> 1)", first},
		{"c.own = 0 and c.pos > ? and c.pos <= ?", first | q.cursor},
	} {
		w := &where{}
		w.add(part.where, part.from, last)
		w.and(messageWhere(f, t.at))
		if err := t.each("select c.pos, c.id from current c where "+w.String()+" order by c.pos limit ?", func(row rows) error {
			found = append(found, queued{row.ColumnInt64(0), columnID(row, 1)})
			return nil
		}, append(w.args, most)...); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b queued) int { return cmp.Compare(a.pos, b.pos) })
	var ids []nixie.ID
	for _, p := range found[:min(len(found), most)] {
		ids = append(ids, p.id)
	}
	return ids, nil
}
