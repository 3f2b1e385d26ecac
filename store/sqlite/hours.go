package sqlite

import (
	"math"
	"time"

	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

const hour = int64(time.Hour)

func hourName(h int64) string { return time.Unix(h*3600, 0).UTC().Format(store.HourForm) }

// hours returns the whole hours within an interval, from first to before end, and the rest at its
// ends, each part within one hour.
func (s interval) hours() (first, end int64, rest []interval) {
	from, till := s.least.died, s.below.died
	first, end = lifecycle.Hour(from), lifecycle.Hour(till)
	if from != math.MinInt64 && (from > first*hour || s.least.pos >= 0) {
		first++
		rest = append(rest, interval{below: deathPos{died: min(till, first*hour)}, least: s.least})
	}
	if till != math.MaxInt64 && end >= first && till > end*hour {
		rest = append(rest, interval{below: s.below, least: deathPos{end * hour, -1}})
	}
	return first, end, rest
}

// eachDeath calls f with the number of letters that died within an hour, for each of some facets
// and each hour of an interval. It reads counters for whole hours and counts letters at the ends.
func eachDeath(c conn, facets *where, s interval, f func(facet, hour, n int64)) error {
	return eachDeathBy(c, sqlText("deaths_in_hours")+" "+facets.String(), facets.args, facets, s, f)
}

// eachDeathBy is eachDeath with a query for the counters of whole hours.
func eachDeathBy(c conn, whole string, args []any, facets *where, s interval, f func(facet, hour, n int64)) error {
	meet := func(row rows) error {
		if n := row.ColumnInt64(2); n > 0 {
			f(row.ColumnInt64(0), row.ColumnInt64(1), n)
		}
		return nil
	}
	first, end, rest := s.hours()
	if err := c.each(whole, meet, append([]any{first, end}, args...)...); err != nil {
		return err
	}
	for _, r := range rest {
		if err := c.each(sqlText("deaths_within")+" "+facets.String(),
			meet, append([]any{lifecycle.Hour(r.least.died), r.below.died, r.below.pos, r.least.died, r.least.pos},
				facets.args...)...); err != nil {
			return err
		}
	}
	return nil
}

// oneByOne is the number of facets that cost as much as one letter that is found by its death, and
// the number of counters, or of letters in an index, that cost as much as to find those of one
// facet.
const oneByOne = 3

// eachDeathOf is eachDeath for a known number of facets, at less cost where these are very many: it
// looks at each letter of the interval if these are few, at the index of all letters or at all
// counters if these are not many more. Then f may hear of other facets too, and of one several
// times.
func eachDeathOf(c conn, facets *where, many int, s interval, f func(facet, hour, n int64)) error {
	args := []any{s.below.died, s.below.pos, s.least.died, s.least.pos}
	letter := func(row rows) error {
		if at := (deathPos{row.ColumnInt64(1), row.ColumnInt64(2)}); s.below.compare(at) < 0 && at.compare(s.least) < 0 {
			f(row.ColumnInt64(0), lifecycle.Hour(at.died), 1)
		}
		return nil
	}
	most := int64(many / oneByOne)
	n, err := c.number(sqlText("deaths_up_to"), append(args, most)...)
	if err != nil {
		return err
	}
	if n < most {
		return c.each(sqlText("deaths_one_by_one"), letter, args...)
	}
	most = int64(many * oneByOne)
	if n, err = c.number("select count(*) from (select 1 from letter limit ?)", most); err != nil {
		return err
	}
	if n < most {
		return c.each("select facet, died, pos from letter indexed by letter_facet", letter)
	}
	n, err = c.number("select count(*) from (select 1 from deaths limit ?)", most)
	switch {
	case err != nil:
		return err
	case n == most:
		return eachDeath(c, facets, s, f)
	}
	return eachDeathBy(c, "select facet, hour, n from deaths where hour >= ? and hour < ?", nil, facets, s, f)
}

// hourSum is the group of an hour under construction.
type hourSum struct {
	*groupSum
	facets []*facetRow // of its letters
	sums   []int64     // number of letters of each facet
}

// countHoursFrom decides how byHour works. Use hourly counters when the filter selects at least 1/8
// of all letters; otherwise scan each letter.
const countHoursFrom = 8

// byHour groups letters of some facets by the hour of death. It scans them when they are few.
// Otherwise it reads the hourly counters, and looks up the newest letters of each hour and the
// oldest.
func (g *grouper) byHour(facets *where) error {
	all, err := g.c.number("select sum(letters) from facet")
	if err != nil {
		return err
	}
	chosen := int64(0)
	for _, f := range g.facets {
		chosen += f.letters
	}
	if chosen*countHoursFrom < all {
		for _, f := range g.facets {
			if err := g.hoursOf(f); err != nil {
				return err
			}
		}
		return nil
	}
	hours := map[int64]*hourSum{}
	f := &facetRow{}
	if err := eachDeath(g.c, facets, g.within, func(facet, hour, n int64) {
		if facet != f.n { // rows of one facet follow each other
			f = g.facets[facet]
		}
		h := hours[hour]
		if h == nil {
			h = &hourSum{groupSum: g.group(hourName(hour), f.reason)}
			hours[hour] = h
		}
		h.facets, h.sums = append(h.facets, f), append(h.sums, n)
		g.add(h.groupSum, n, f.signature, f.reason)
	}); err != nil {
		return err
	}
	for hour, h := range hours {
		if err := g.endsOf(h, g.within.inHour(hour)); err != nil {
			return err
		}
	}
	return nil
}

// inHour returns the part of an interval that is in an hour.
func (s interval) inHour(h int64) interval {
	s.from(h * hour)
	s.till((h + 1) * hour)
	return s
}

// hoursOf adds the letters of a facet to the groups of their hours.
func (g *grouper) hoursOf(f *facetRow) error {
	var s *groupSum
	in := int64(math.MinInt64)
	return g.c.each(sqlText("letters_of_facet"), func(row rows) error {
		e := example{deathPos: deathPos{row.ColumnInt64(0), row.ColumnInt64(1)}}
		if h := lifecycle.Hour(e.died); h != in {
			in, s = h, g.group(hourName(h), f.reason)
		}
		g.add(s, 1, f.signature, f.reason)
		s.meets(e)
		return nil
	}, f.n, g.within.below.died, g.within.below.pos, g.within.least.died, g.within.least.pos)
}

// maxProbed limits the letters of an hour that endsOf scans before it asks each facet for its ends.
const maxProbed = countHoursFrom * (store.Examples + 1)

// endsOf meets the newest letters of an hour, and its oldest.
func (g *grouper) endsOf(h *hourSum, within interval) error {
	for _, end := range [...]struct {
		query string
		want  int
	}{{"letters_within_newest", store.Examples}, {"letters_within_oldest", 1}} {
		found, scanned := 0, 0
		err := g.c.each(sqlText(end.query), func(row rows) error {
			scanned++
			if g.facets[row.ColumnInt64(2)] == nil {
				return nil
			}
			h.meets(example{deathPos: deathPos{row.ColumnInt64(0), row.ColumnInt64(1)}})
			if found++; found == end.want {
				return errEnough
			}
			return nil
		}, within.least.died, within.below.died, maxProbed)
		if err = chosen(err); err != nil {
			return err
		}
		if found == end.want || scanned < maxProbed {
			continue
		}
		for i, f := range h.facets {
			if err := g.ends(h.groupSum, f, within, h.sums[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}
