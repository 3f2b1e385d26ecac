package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// Adjust implements store.Overview.
func (s *Store) Adjust(
	ctx context.Context, queue, actor, reason string, edit func(*nixie.QueueSettings) error,
) (nixie.QueueSettings, error) {
	var settings nixie.QueueSettings
	if err := store.CheckOperator(queue, actor, reason); err != nil {
		return settings, err
	}
	err := s.write(ctx, 0, func(t *tx) error {
		settings = nixie.QueueSettings{}
		known, err := t.queue(queue)
		if err != nil {
			return err
		}
		if known != nil {
			settings = known.settings
		}
		if err := edit(&settings); err != nil {
			return err
		}
		if err := settings.Check(); err != nil {
			return err
		}
		if known != nil && known.settings == settings {
			return nil
		}
		if err := t.refuseNotices(queue, &settings); err != nil {
			return err
		}
		q, err := t.openQueue(queue)
		if err != nil {
			return err
		}
		if err := t.reorder(q, &settings); err != nil {
			return err
		}
		q.settings = settings
		if err := t.saveSettings(q); err != nil {
			return err
		}
		t.wake(queue)
		return t.audit(q.n, actor, store.OnConfigure, nixie.ID{}, reason)
	})
	return settings, err
}

// tried implements Tried of store.Features.
func (s *Store) tried(ctx context.Context, queue, actor, reason string) error {
	if err := store.CheckOperator(queue, actor, reason); err != nil {
		return err
	}
	return s.write(ctx, 0, func(t *tx) error {
		q, err := t.queue(queue)
		if err != nil {
			return err
		}
		if q == nil {
			return nixie.Errorf(nixie.CodeNotFound, "no queue is called %q", queue)
		}
		return t.audit(q.n, actor, store.OnTry, nixie.ID{}, reason)
	})
}

// refuseNotices asks [lifecycle.RefuseNotices].
func (t *tx) refuseNotices(name string, set *nixie.QueueSettings) error {
	if set.DeadLetterTo == "" && !set.Closed {
		return nil
	}
	if err := t.flush(); err != nil {
		return err
	}
	others := map[string]nixie.QueueSettings{}
	if err := t.each("select name, settings from queue where name <> ?", func(row rows) error {
		var q nixie.QueueSettings
		err := fromJSON(row.ColumnText(1), &q)
		others[row.ColumnText(0)] = q
		return err
	}, name); err != nil {
		return err
	}
	return lifecycle.RefuseNotices(name, set, others)
}

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
