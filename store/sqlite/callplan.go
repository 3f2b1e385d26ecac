package sqlite

import (
	"cmp"
	"errors"
	"slices"

	"github.com/nixie-go/nixie"
)

// callPlan groups the settlements of one call by position, before the transaction. Neighbouring
// members of a batch are then checked and written by one statement.
type callPlan struct {
	ranges   []settleRange // one for each batch
	adjacent []adjacent
	rows     []int    // indexes of plain rows in the call, ordered by position
	docs     []string // encoded failures; nil when there are none
}

// doc returns the encoded failure of the i-th settlement.
func (c *callPlan) doc(i int) string {
	if c.docs == nil {
		return ""
	}
	return c.docs[i]
}

// encode encodes the failures before the transaction, because other writers wait for that.
func (c *callPlan) encode(settlements []nixie.Settlement, refused []error) error {
	for i := range settlements {
		st := &settlements[i]
		if st.Failure == nil || refused[i] != nil {
			continue
		}
		if c.docs == nil {
			c.docs = make([]string, len(settlements))
		}
		var err error
		if c.docs[i], err = encodeFailure(st.Failure, st.Verb, st.Delivery.Steps); err != nil {
			return err
		}
	}
	return nil
}

// settleRange holds the first and the last position of the members of a batch that a call settles,
// and their number.
type settleRange struct{ batch, first, last, settled int64 }

// adjacent are plain settlements of one batch whose positions follow each other without a gap.
type adjacent struct {
	batch, first int64
	at           []int // indexes of the settlements in the call
}

// planCall plans the settlements that were not refused.
func planCall(settlements []nixie.Settlement, refused []error) (*callPlan, error) {
	c := &callPlan{}
	if err := c.encode(settlements, refused); err != nil {
		return nil, err
	}
	c.group(settlements, refused)
	return c, nil
}

// group fills ranges, adjacent and rows. They stay empty when a handle has no position or a message
// is settled twice. Then the settlements are applied one by one, and of two the first counts.
func (c *callPlan) group(settlements []nixie.Settlement, refused []error) {
	type one struct {
		batch, pos int64
		at         int
		plain      bool
	}
	all := make([]one, 0, len(settlements))
	for i := range settlements {
		if refused[i] != nil {
			continue
		}
		st := &settlements[i]
		handle := st.Delivery.Lease.Handle
		if handle.Pos == 0 {
			return
		}
		all = append(all, one{handle.Batch, handle.Pos, i, isPlain(st) && st.Delivery.DedupeKey == ""})
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
			c.ranges, c.adjacent, c.rows = nil, nil, nil
			return
		}
		if n := len(c.ranges); n > 0 && c.ranges[n-1].batch == this.batch {
			c.ranges[n-1].last = this.pos
			c.ranges[n-1].settled++
		} else if this.batch != 0 {
			c.ranges = append(c.ranges, settleRange{this.batch, this.pos, this.pos, 1})
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

// checkRange reads once for a range what settling would otherwise read for each member.
func (t *tx) checkRange(s settleRange) error {
	if s.first == s.last {
		return nil
	}
	b, err := t.batch(s.batch)
	if err != nil || !b.has(s.first, t.now) || !b.has(s.last, t.now) {
		return err
	}
	r := &checkedRange{settleRange: s, gone: map[int64]bool{}}
	tables := []string{"select pos from log where pos between ? and ?", "select pos from pending where pos between ? and ?"}
	if !b.hasRows {
		tables = tables[:1]
	}
	for _, query := range tables {
		err := t.each(query, func(row rows) error {
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
	if t.checked == nil {
		t.checked = map[int64]*checkedRange{}
	}
	t.checked[s.batch] = r
	return nil
}

// isMember reports whether a checked range shows a position as an unsettled member of a batch.
func (t *tx) isMember(batch, pos int64) bool {
	r := t.checked[batch]
	return r != nil && r.first <= pos && pos <= r.last && !r.gone[pos]
}

// allMembers reports isMember of n positions that follow each other.
func (t *tx) allMembers(batch, first, n int64) bool {
	r := t.checked[batch]
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
