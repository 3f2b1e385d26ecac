package sqlite

import (
	"cmp"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// isPlain reports whether a settlement is the most frequent one: a member of a batch succeeded at
// its first attempt. One short row of log records it.
func isPlain(st *nixie.Settlement) bool {
	d := st.Delivery
	return st.Verb == nixie.Complete && st.Failure == nil && st.Second == nil && d.Lease.Handle.Batch != 0 && d.Lease.Number == 1 &&
		len(d.Steps) == 0 && len(st.Then) == 0
}

// completeMember writes a plain settlement. The primary key of log refuses a second one.
func (t *tx) completeMember(st *nixie.Settlement) (bool, error) {
	d := st.Delivery
	pos := d.Lease.Handle.Pos
	b, err := t.batch(d.Lease.Handle.Batch)
	if err != nil || !b.has(pos, t.now) {
		return false, err
	}
	query := sqlText("log_member")
	if b.hasRows { // it may have a row of its own by now
		query = sqlText("log_member_without_row")
	}
	if added, err := t.logPlain(query, b, pos); added == 0 || err != nil {
		return false, err // when nothing was added, the engine finds the reason
	}
	q, err := t.succeeded(b, 1)
	if err != nil {
		return false, err
	}
	if d.DedupeKey == "" || q.settings.DedupeScope == nixie.DedupeEver {
		return true, nil
	}
	return true, t.freeKey(q.n, d.DedupeKey, pos)
}

// has reports whether the lease of a batch is current and its range contains a position.
func (b *batchRow) has(pos, now int64) bool {
	return b != nil && b.until > now && b.first <= pos && pos <= b.last
}

func (t *tx) logPlain(query string, b *batchRow, pos int64) (added int, err error) {
	ins, err := t.prepare(query)
	if err != nil {
		return 0, err
	}
	ins.BindInt64(1, pos)
	ins.BindInt64(2, t.now)
	ins.BindInt64(3, b.claimed)
	if _, err := ins.Step(); err != nil {
		return 0, err
	}
	return t.Changes(), nil
}

// succeeded counts n members of a batch as succeeded.
func (t *tx) succeeded(b *batchRow, n int64) (*queueRow, error) {
	b.left -= n
	b.dirty = true
	q, err := t.queueAt(b.first)
	if err == nil {
		q.ended[lifecycle.Succeeded] += n
		q.dirty = true
	}
	return q, err
}

// Statements about rowsOnce messages name their positions as ?4 and so on.
const (
	rowsOnce      = 32
	firstPosition = 4
)

// Complete implements engine.Tx: it settles plain messages, many at a time where it can.
func (v *verb) Complete(settlements []nixie.Settlement) ([]bool, error) {
	plan, ok := planCall(settlements)
	if !ok {
		return nil, nil
	}
	done := make([]bool, len(settlements))
	if len(plan.adjacent) > 0 {
		var members []*nixie.Delivery
		for i := range plan.adjacent {
			for _, at := range plan.adjacent[i].at {
				members = append(members, settlements[at].Delivery)
			}
		}
		if err := v.checkBatches(members); err != nil {
			return nil, err
		}
	}
	for i := range plan.adjacent {
		r := &plan.adjacent[i]
		ok, err := v.completeAdjacent(r)
		if err != nil {
			return nil, err
		}
		for _, at := range r.at {
			done[at] = ok
		}
	}
	if err := v.completeRows(settlements, plan.rows, done); err != nil {
		return nil, err
	}
	for i := range settlements {
		if st := &settlements[i]; !done[i] && isPlain(st) {
			var err error
			if done[i], err = v.completeMember(st); err != nil {
				return nil, err
			}
		}
	}
	return done, nil
}

// completeAdjacent settles adjacent if a checked range shows all of them as unsettled. A
// conflict is an error here and undoes the transaction.
func (v *verb) completeAdjacent(r *adjacent) (bool, error) {
	n := int64(len(r.at))
	if !v.allMembers(r.batch, r.first, n) {
		return false, nil
	}
	b, err := v.batch(r.batch)
	if err != nil || b == nil {
		return false, err
	}
	for pos, end := r.first, r.first+n; pos < end; {
		query, rows := sqlText("log_member_known"), int64(1)
		if end-pos >= rowsOnce {
			query, rows = sqlText("log_members"), rowsOnce
		}
		if _, err := v.logPlain(query, b, pos); err != nil {
			return false, err
		}
		pos += rows
	}
	_, err = v.succeeded(b, n)
	return true, err
}

// isPlainRow reports whether a message with a row of its own succeeded and has no letter, no dedupe
// key and no new step.
func isPlainRow(st *nixie.Settlement) bool {
	d := st.Delivery
	return st.Verb == nixie.Complete && st.Failure == nil && st.Second == nil && d.Lease.Handle.Batch == 0 &&
		d.Generation == 1 && d.DedupeKey == "" && len(lease.NewSteps(d)) == 0 && len(st.Then) == 0
}

// completeRows settles plain rows, rowsOnce at a time, and marks them in done. at has their indexes
// in the call, ordered by position. It skips a group of rowsOnce of which one cannot be settled so.
func (t *tx) completeRows(settlements []nixie.Settlement, at []int, done []bool) error {
	for ; len(at) >= rowsOnce; at = at[rowsOnce:] {
		some := at[:rowsOnce]
		args := make([]any, firstPosition-1, firstPosition-1+rowsOnce)
		args[0] = t.now
		for _, i := range some {
			args = append(args, settlements[i].Delivery.Lease.Handle.Pos)
		}
		held, err := t.holdRows(settlements, some, args)
		if err != nil {
			return err
		}
		if held == nil {
			continue
		}
		for _, statement := range [...]string{sqlText("log_rows"), sqlText("delete_rows")} {
			if err := t.run(statement, args...); err != nil {
				return err
			}
		}
		for i := range held {
			t.count(&held[i], -1)
			q, err := t.queueAt(held[i].pos)
			if err != nil {
				return err
			}
			q.ended[lifecycle.Succeeded]++
			q.dirty = true
			done[some[i]] = true
		}
	}
	return nil
}

// holdRows reads the rows of settlements, with the columns that counters need. It returns none
// unless each row is leased under the number of its delivery and has no letter and no stream.
func (t *tx) holdRows(settlements []nixie.Settlement, at []int, args []any) ([]pendingRow, error) {
	held := make([]pendingRow, 0, len(at))
	err := t.each(sqlText("leased_rows"), func(row rows) error {
		p := pendingRow{pos: row.ColumnInt64(0), reason: row.ColumnText(4), Message: lifecycle.Message{
			State: lifecycle.Leased, Number: row.ColumnInt64(1), Attempts: row.ColumnInt(2), Due: row.ColumnInt64(3),
		}}
		p.queue = p.pos >> seqBits
		i, found := slices.BinarySearchFunc(at, p.pos,
			func(i int, pos int64) int { return cmp.Compare(settlements[i].Delivery.Lease.Handle.Pos, pos) })
		if found && settlements[at[i]].Delivery.Lease.Number == p.Number {
			held = append(held, p)
		}
		return nil
	}, args...)
	if err != nil || len(held) < len(at) {
		return nil, err
	}
	return held, nil
}
