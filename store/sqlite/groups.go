package sqlite

import (
	"context"
	"math"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// groupings maps a property to a column of facet f: all letters of a facet are in one group. Only
// the hour of death is no column of facet.
var groupings = map[store.GroupBy]string{
	store.ByFingerprint: "f.fingerprint",
	store.ByReason:      "f.reason",
	store.ByClass:       "f.class",
	store.ByType:        "f.type",
	store.ByQueue:       "(select name from queue where n = f.queue)",
	store.ByStatus:      "f.status",
	store.ByHour:        "''",
	store.ByQueueHour:   "(select name from queue where n = f.queue)",
	store.ByLabel:       "f.fingerprint || char(10) || f.reason || char(10) || f.type || char(10) || f.signature",
	store.ByRedrivable:  "iif(f.redrivable, 'yes', 'no')",
	store.ByAttempts:    "cast(f.attempts as text)",
	store.ByReview:      "iif(f.needs_review, 'yes', 'no')",
}

// Count implements store.DeadLetters.
func (s *Store) Count(
	ctx context.Context, filter nixie.Filter, of store.Counting,
) (lists [][]store.Group, covered store.Coverage, err error) {
	if err := of.Check(); err != nil {
		return nil, covered, err
	}
	err = s.read(ctx, func(c conn) (err error) {
		if !of.Retrying && !of.Described {
			lists, covered, err = sizesOf(plan(c, &filter, s.look()), of)
			return err
		}
		for _, by := range of.By {
			var list []store.Group
			if of.Retrying {
				list, err = countRetrying(c, &filter, s.look(), by)
			} else {
				list, covered, err = described(plan(c, &filter, s.look()), of.Scan, by)
			}
			if err != nil {
				return err
			}
			lists = append(lists, list)
		}
		return nil
	})
	return lists, covered, err
}

// described counts letters by one property and describes each group by three letters. It sums up
// facets where the filter allows it; then its cost does not depend on the number of letters.
func described(p *picker, scan store.Scan, by store.GroupBy) (_ []store.Group, covered store.Coverage, err error) {
	g := &grouper{c: p.c, by: by, facets: map[int64]*facetRow{}, groups: map[string]*groupSum{}}
	if p.counted() {
		g.within = p.interval
		err = g.counted(p.facets)
	} else {
		covered, err = g.each(p, scan)
	}
	if err == nil {
		err = g.nameExamples()
	}
	return g.sorted(), covered, err
}

// grouper sums letters up.
type grouper struct {
	c      conn
	by     store.GroupBy
	within interval            // times of death that the filter asks for
	facets map[int64]*facetRow // chosen by the filter, by number
	groups map[string]*groupSum
}

// groupSum is a group under construction.
type groupSum struct {
	store.Group
	first, last int64
	newest      []example // latest death first
	mixed       bool      // it has several reasons
}

type example struct {
	deathPos
	id nixie.ID
}

// group returns the group of a key.
func (g *grouper) group(key string, reason nixie.Reason) *groupSum {
	s := g.groups[key]
	if s == nil {
		s = &groupSum{Group: store.Group{Key: key, Reason: reason}, first: math.MaxInt64, last: math.MinInt64}
		g.groups[key] = s
	}
	return s
}

// add counts letters with a signature and a reason.
func (g *grouper) add(s *groupSum, letters int64, signature string, reason nixie.Reason) {
	s.Count += letters
	if g.by == store.ByFingerprint {
		s.Label = max(s.Label, signature)
	}
	s.mixed = s.mixed || s.Reason != reason
}

// meets updates the group's times with a letter, and its examples if the letter is one of the
// newest.
func (s *groupSum) meets(e example) {
	s.first, s.last = min(s.first, e.died), max(s.last, e.died)
	if len(s.newest) == store.Examples && s.newest[store.Examples-1].compare(e.deathPos) < 0 {
		return
	}
	at, there := slices.BinarySearchFunc(s.newest, e, func(a, b example) int { return a.compare(b.deathPos) })
	if there {
		return
	}
	s.newest = slices.Insert(s.newest, at, e)
	s.newest = s.newest[:min(len(s.newest), store.Examples)]
}

func (g *grouper) sorted() []store.Group {
	var list []store.Group
	for _, s := range g.groups {
		s.FirstAt, s.LastAt = lifecycle.Moment(s.first), lifecycle.Moment(s.last)
		if s.mixed {
			s.Reason = ""
		}
		for _, e := range s.newest {
			s.Examples = append(s.Examples, e.id)
		}
		list = append(list, s.Group)
	}
	store.SortGroups(list)
	return list
}

// facetRow is a facet that a filter chose.
type facetRow struct {
	n, letters     int64
	key, signature string
	reason         nixie.Reason
}

// counted sums up facets. The filter asks only for their properties and the time of death.
func (g *grouper) counted(facets *where) error {
	query := "select f.n, f.letters, " + groupings[g.by] + ", f.signature, f.reason from facet f where " + facets.String()
	if err := g.c.each(query, func(row rows) error {
		g.facets[row.ColumnInt64(0)] = &facetRow{row.ColumnInt64(0), row.ColumnInt64(1), row.ColumnText(2), row.ColumnText(3),
			nixie.Reason(row.ColumnText(4))}
		return nil
	}, facets.args...); err != nil {
		return err
	}
	if g.by == store.ByHour {
		return g.byHour(facets)
	}
	letters := map[int64]int64{} // within the times of death, by facet
	if g.within != allTime() {
		if err := eachDeathOf(g.c, facets, len(g.facets), g.within, func(facet, _, n int64) { letters[facet] += n }); err != nil {
			return err
		}
	}
	for _, f := range g.facets {
		n := f.letters
		if g.within != allTime() {
			n = letters[f.n]
		}
		if n == 0 {
			continue
		}
		g.add(g.group(f.key, f.reason), n, f.signature, f.reason)
	}
	return g.endsOfEach(facets)
}

// endsOfEach meets the newest letters of each facet, and the oldest one, within the times of death.
func (g *grouper) endsOfEach(facets *where) error {
	meet := func(row rows) error {
		if s := g.groups[g.facets[row.ColumnInt64(0)].key]; s != nil {
			s.meets(example{deathPos{row.ColumnInt64(1), row.ColumnInt64(2)}, columnID(row, 3)})
		}
		return nil
	}
	for _, end := range [...]struct {
		query string
		want  int
	}{{"facets_newest", store.Examples}, {"facets_oldest", 1}} {
		args := []any{g.within.below.died, g.within.below.pos, g.within.least.died, g.within.least.pos, end.want}
		if err := g.c.each(sqlText(end.query)+" "+facets.String(), meet, append(args, facets.args...)...); err != nil {
			return err
		}
	}
	return nil
}

// ends meets the newest letters of a facet, and the oldest one. letters is their number.
func (g *grouper) ends(s *groupSum, f *facetRow, within interval, letters int64) error {
	args := []any{f.n, within.below.died, within.below.pos, within.least.died, within.least.pos, store.Examples}
	meet := func(row rows) error {
		s.meets(example{deathPos: deathPos{row.ColumnInt64(0), row.ColumnInt64(1)}})
		return nil
	}
	if err := g.c.each(sqlText("letters_newest"), meet, args...); err != nil || letters <= store.Examples {
		return err
	}
	args[len(args)-1] = 1
	return g.c.each(sqlText("letters_oldest"), meet, args...)
}

// each scans matching letters, latest death first, and returns how many it scanned if those were
// not all.
func (g *grouper) each(p *picker, scan store.Scan) (store.Coverage, error) {
	return p.through(groupings[g.by]+", f.signature, f.reason, l.died, l.pos, l.id", scan, func(row rows) error {
		e := example{deathPos{row.ColumnInt64(3), row.ColumnInt64(4)}, columnID(row, 5)}
		key, reason := row.ColumnText(0), nixie.Reason(row.ColumnText(2))
		if g.by == store.ByHour {
			key = hourName(lifecycle.Hour(e.died))
		}
		s := g.group(key, reason)
		g.add(s, 1, row.ColumnText(1), reason)
		s.meets(e)
		return nil
	})
}

// nameExamples reads the IDs of examples that came from an index.
func (g *grouper) nameExamples() error {
	for _, s := range g.groups {
		for i := range s.newest {
			e := &s.newest[i]
			if !e.id.IsZero() {
				continue
			}
			if err := g.c.each("select id from letter where pos = ?", func(row rows) error {
				e.id = columnID(row, 0)
				return nil
			}, e.pos); err != nil {
				return err
			}
		}
	}
	return nil
}
