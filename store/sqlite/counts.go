package sqlite

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// Counts implements store.DeadLetters. Each kind is asked once for all that is
// counted, and no letter is read for an example.
func (s *Store) Counts(ctx context.Context, filter nixie.Filter, by ...nixie.GroupBy) ([]map[string]int64, error) {
	if err := checkGroupings(by...); err != nil {
		return nil, err
	}
	n := &counter{now: s.Now(), by: by, counts: make([]map[string]int64, len(by))}
	for i := range by {
		n.counts[i] = map[string]int64{}
	}
	err := s.read(ctx, func(c conn) error {
		n.c = c
		counted, others := known(&filter, n.now, by...)
		if counted != nil {
			if err := n.known(counted); err != nil {
				return err
			}
		}
		if others == nil {
			return nil
		}
		return n.each(others)
	})
	return n.counts, err
}

// counter counts letters by several properties.
type counter struct {
	c      conn
	now    time.Time
	by     []nixie.GroupBy
	counts []map[string]int64
}

// add counts letters whose keys are columns of a row, each after the first one.
func (n *counter) add(row rows, letters int64, but nixie.GroupBy) {
	for i, by := range n.by {
		if by != but {
			n.counts[i][row.ColumnText(1+i)] += letters
		}
	}
}

// known sums up what kinds and times of death say all of.
func (n *counter) known(f *nixie.Filter) error {
	g := &grouper{c: n.c, by: nixie.ByHour, filter: f, now: n.now}
	if i := slices.Index(n.by, nixie.ByHour); i >= 0 {
		if err := n.hours(g, n.counts[i]); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(n.by, func(by nixie.GroupBy) bool { return by != nixie.ByHour }) {
		return nil
	}
	letters := map[int64]int64{} // by kind
	if err := g.byKind(func(k *kindRow) (err error) {
		if k.bounded {
			k.letters, err = g.c.number("select count(*)"+ofKind, k.args()...)
		}
		letters[k.n] = k.letters
		return err
	}); err != nil {
		return err
	}
	w := kindWhere(f)
	return n.c.each("select k.n"+n.columns(func(by nixie.GroupBy) string { return groupings[by].kind })+" from kind k where "+w.String(), func(row rows) error {
		if letters := letters[row.ColumnInt64(0)]; letters > 0 {
			n.add(row, letters, nixie.ByHour)
		}
		return nil
	}, w.args...)
}

// hours counts by the hour of death, from the counters of hours if they say all
// that is asked.
func (n *counter) hours(g *grouper, counts map[string]int64) error {
	if !hoursSay(g.filter) {
		return g.byKind(func(k *kindRow) error {
			return g.c.each("select died / ?6 - (died % ?6 < 0), count(*) from letter where kind = +?1 and (died, pos) < (?2, ?3) and (died, pos) > (?4, ?5) group by 1", func(row rows) error {
				counts[hourName(row.ColumnInt64(0))] += row.ColumnInt64(1)
				return nil
			}, k.args(hour)...)
		})
	}
	w := hourWhere(g.filter)
	return n.c.each("select hour, sum(n) from deaths where "+w.String()+" group by hour", func(row rows) error {
		counts[hourName(row.ColumnInt64(0))] += row.ColumnInt64(1)
		return nil
	}, w.args...)
}

// each goes through all letters that match.
func (n *counter) each(f *nixie.Filter) error {
	p, err := newPicker(n.c, f, n.now)
	if err != nil {
		return err
	}
	_, err = p.walk("l.pos"+n.columns(func(by nixie.GroupBy) string { return groupings[by].each }), maxLooked/4, math.MaxInt, func(row rows) error {
		n.add(row, 1, "")
		return nil
	})
	return err
}

// columns names the key of each property, to stand after another column.
func (n *counter) columns(of func(nixie.GroupBy) string) string {
	list := ""
	for _, by := range n.by {
		list += ", " + of(by)
	}
	return list
}
