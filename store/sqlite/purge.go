package sqlite

import (
	"cmp"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/engine"
)

// queued finds queued messages of a queue, ordered by position: rows of pending, and new messages
// beyond the cursor. The cursor is the one of this transaction.
func (v *verb) queued(w *engine.Queued) ([]nixie.ID, error) {
	if err := v.flush(); err != nil { // the view current reads the tables
		return nil, err
	}
	q := v.queues[w.Queue.Name]
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
		is := &where{}
		is.add(part.where, part.from, last)
		is.and(messageWhere(w.Filter, v.at))
		if err := v.each("select c.pos, c.id from current c where "+is.String()+" order by c.pos limit ?", func(row rows) error {
			found = append(found, queued{row.ColumnInt64(0), columnID(row, 1)})
			return nil
		}, append(is.args, w.Most)...); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b queued) int { return cmp.Compare(a.pos, b.pos) })
	var ids []nixie.ID
	for _, p := range found[:min(len(found), w.Most)] {
		ids = append(ids, p.id)
	}
	return ids, nil
}
