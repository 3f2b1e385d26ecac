package sqlite

import (
	"cmp"
	"errors"
	"slices"

	"github.com/nixie-go/nixie"
)

// callPlan groups the plain settlements of one call by position. Neighbouring members of a batch
// are then checked and written by one statement.
type callPlan struct {
	adjacent []adjacent
	rows     []int // indexes of plain rows in the call, ordered by position
}

// settleRange holds the first and the last position of the members of a batch that a call settles,
// and their number.
type settleRange struct{ batch, first, last, settled int64 }

// adjacent are plain settlements of one batch whose positions follow each other without a gap.
type adjacent struct {
	batch, first int64
	at           []int // indexes of the settlements in the call
}

// planCall plans the settlements of a call. It reports false when a handle has no position or a
// message is settled twice: then they are applied one by one, and of two the first counts.
func planCall(settlements []nixie.Settlement) (c callPlan, ok bool) {
	type one struct {
		batch, pos int64
		at         int
		plain      bool
	}
	all := make([]one, len(settlements))
	for i := range settlements {
		st := &settlements[i]
		handle := st.Delivery.Lease.Handle
		if handle.Pos == 0 {
			return callPlan{}, false
		}
		all[i] = one{handle.Batch, handle.Pos, i, isPlain(st) && st.Delivery.DedupeKey == ""}
	}
	slices.SortFunc(all, func(a, b one) int { return cmp.Or(cmp.Compare(a.batch, b.batch), cmp.Compare(a.pos, b.pos)) })
	order := make([]int, len(all))
	for lo, i := 0, 0; i < len(all); i++ {
		this := &all[i]
		order[i] = this.at
		if this.batch == 0 && isPlainRow(&settlements[this.at]) {
			c.rows = append(c.rows, this.at)
		}
		if i > 0 && this.pos == all[i-1].pos {
			return callPlan{}, false
		}
		if next := i + 1; next < len(all) && all[lo].plain && all[next].plain && all[next].batch == this.batch &&
			all[next].pos == this.pos+1 {
			continue
		}
		if i > lo {
			c.adjacent = append(c.adjacent, adjacent{all[lo].batch, all[lo].pos, order[lo : i+1]})
		}
		lo = i + 1
	}
	return c, true
}

// checkedRange is a settleRange of which the transaction knows the members that have ended or have
// a row of their own: gone lists their positions.
type checkedRange struct {
	settleRange
	gone map[int64]bool
}

// maxGone limits a check of a range. When more members are gone for each member that the call
// settles, checking the latter one by one is cheaper.
const maxGone = 4

// checkBatches checks the ranges of the members of batches among deliveries.
func (v *verb) checkBatches(of []*nixie.Delivery) error {
	ranges := map[int64]*settleRange{}
	for _, d := range of {
		if d == nil || d.Lease.Handle.Batch == 0 || d.Lease.Handle.Pos == 0 {
			continue
		}
		at := d.Lease.Handle
		r := ranges[at.Batch]
		if r == nil {
			r = &settleRange{at.Batch, at.Pos, at.Pos, 0}
			ranges[at.Batch] = r
		}
		r.first, r.last = min(r.first, at.Pos), max(r.last, at.Pos)
		r.settled++
	}
	v.checked = make(map[int64]*checkedRange, len(ranges))
	for _, r := range ranges {
		if err := v.checkRange(*r); err != nil {
			return err
		}
	}
	return nil
}

// checkRange reads once for a range what settling would otherwise read for each member.
func (v *verb) checkRange(s settleRange) error {
	if s.first == s.last {
		return nil
	}
	b, err := v.batch(s.batch)
	if err != nil || !b.has(s.first, v.now) || !b.has(s.last, v.now) {
		return err
	}
	r := &checkedRange{settleRange: s, gone: map[int64]bool{}}
	tables := []string{"select pos from log where pos between ? and ?", "select pos from pending where pos between ? and ?"}
	if !b.hasRows {
		tables = tables[:1]
	}
	for _, query := range tables {
		err := v.each(query, func(row rows) error {
			if r.gone[row.ColumnInt64(0)] = true; int64(len(r.gone)) > maxGone*s.settled {
				return errEnough
			}
			return nil
		}, s.first, s.last)
		if errors.Is(err, errEnough) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	v.checked[s.batch] = r
	return nil
}

// isMember reports whether a checked range shows a position as an unsettled member of a batch.
func (v *verb) isMember(batch, pos int64) bool {
	r := v.checked[batch]
	return r != nil && r.first <= pos && pos <= r.last && !r.gone[pos]
}

// allMembers reports isMember of n positions that follow each other.
func (v *verb) allMembers(batch, first, n int64) bool {
	r := v.checked[batch]
	if r == nil || first < r.first || first+n-1 > r.last {
		return false
	}
	if len(r.gone) == 0 {
		return true
	}
	for pos := first; pos < first+n; pos++ {
		if r.gone[pos] {
			return false
		}
	}
	return true
}
