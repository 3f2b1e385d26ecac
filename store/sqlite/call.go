package sqlite

import (
	"cmp"
	"errors"
	"slices"

	"github.com/nixie-go/nixie"
)

// call is what is known of the settlements of one call before the transaction:
// where its messages lie, so that those side by side are looked at and written
// together.
type call struct {
	spans []span // one for each batch
	runs  []run
	rows  []int    // plain rows: where they stand in the call, in the order of their places
	docs  []string // the failures as they will be kept; nil when there are none
}

// doc is the failure of the i-th settlement, encoded.
func (c *call) doc(i int) string {
	if c.docs == nil {
		return ""
	}
	return c.docs[i]
}

// encode encodes the failures, before the transaction and not in it: others wait
// for that.
func (c *call) encode(settlements []nixie.Settlement, refused []error) error {
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

// span is where the members of a batch lie that a call settles, and how many they
// are.
type span struct{ batch, first, last, settled int64 }

// run is a number of plain settlements whose messages lie side by side in one
// batch.
type run struct {
	batch, first int64
	at           []int // where the settlements stand in the call
}

// survey looks over the settlements that were not refused.
func survey(settlements []nixie.Settlement, refused []error) (*call, error) {
	c := &call{}
	if err := c.encode(settlements, refused); err != nil {
		return nil, err
	}
	c.locate(settlements, refused)
	return c, nil
}

// locate finds spans and runs. It finds none when a message is settled twice in
// the call, where the first one counts, or when nobody knows where it lies.
func (c *call) locate(settlements []nixie.Settlement, refused []error) {
	type one struct {
		batch, place int64
		at           int
		plain        bool
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
	slices.SortFunc(all, func(a, b one) int { return cmp.Or(cmp.Compare(a.batch, b.batch), cmp.Compare(a.place, b.place)) })
	places := make([]int, len(all))
	for lo, i := 0, 0; i < len(all); i++ {
		this := &all[i]
		places[i] = this.at
		if this.batch == 0 && isPlainRow(&settlements[this.at]) {
			c.rows = append(c.rows, this.at)
		}
		if i > 0 && this.place == all[i-1].place {
			c.spans, c.runs, c.rows = nil, nil, nil
			return
		}
		if n := len(c.spans); n > 0 && c.spans[n-1].batch == this.batch {
			c.spans[n-1].last = this.place
			c.spans[n-1].settled++
		} else if this.batch != 0 {
			c.spans = append(c.spans, span{this.batch, this.place, this.place, 1})
		}
		if next := i + 1; next < len(all) && all[lo].plain && all[next].plain && all[next].batch == this.batch && all[next].place == this.place+1 {
			continue
		}
		if i > lo {
			c.runs = append(c.runs, run{all[lo].batch, all[lo].place, places[lo : i+1]})
		}
		lo = i + 1
	}
}

// look is a span of a batch in which only those members that are gone were
// settled or have rows of their own.
type look struct {
	span
	gone map[int64]bool
}

// maxGone is how many members a look at a span may find gone for each that the
// call settles: beyond that it is cheaper to look at each of those by itself.
const maxGone = 4

// lookAt finds out once for a span what settling would ask for each member.
func (t *tx) lookAt(s span) error {
	if s.first == s.last {
		return nil
	}
	b, err := t.batch(s.batch)
	if err != nil || !b.has(s.first, t.now) || !b.has(s.last, t.now) {
		return err
	}
	k := &look{span: s, gone: map[int64]bool{}}
	tables := []string{"select pos from log where pos between ? and ?", "select pos from pending where pos between ? and ?"}
	if !b.apart {
		tables = tables[:1]
	}
	for _, query := range tables {
		err := t.each(query, func(row rows) error {
			if k.gone[row.ColumnInt64(0)] = true; int64(len(k.gone)) > maxGone*s.settled {
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
	if t.looks == nil {
		t.looks = map[int64]*look{}
	}
	t.looks[s.batch] = k
	return nil
}

// isMember reports whether a place is known to be an unsettled member of a
// batch.
func (t *tx) isMember(batch, pos int64) bool {
	k := t.looks[batch]
	return k != nil && k.first <= pos && pos <= k.last && !k.gone[pos]
}

// allMembers is isMember for n places side by side.
func (t *tx) allMembers(batch, first, n int64) bool {
	k := t.looks[batch]
	if k == nil || first < k.first || first+n-1 > k.last {
		return false
	}
	if len(k.gone) == 0 {
		return true
	}
	for pos := first; pos < first+n; pos++ {
		if k.gone[pos] {
			return false
		}
	}
	return true
}
