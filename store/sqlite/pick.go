package sqlite

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// place is where a letter stands in a listing: latest death first, and among
// equals the newest letter.
type deathPos struct{ died, pos int64 }

func (p deathPos) compare(q deathPos) int {
	return cmp.Or(cmp.Compare(q.died, p.died), cmp.Compare(q.pos, p.pos))
}

// Bounds of the work for one page. A page that would cost more ends early, with
// the cursor from which the next one goes on.
const (
	maxScanned = 12_000 // letters that are looked at, each by its weight
	maxRuns    = 4_000  // facets that are merged; with more of them the letters are gone through
	runsWeight = 3      // by how much more it costs to look at a letter of many facets
	runsFirst  = 10     // of which part of all letters the facets have at least to be that many that going through all is tried first
)

// strand is an index, or a part of one, that has letters in the order of a listing.
type strand struct {
	term   string // over table letter
	args   []any
	sorted bool // by the index; else there are few
}

// picker picks letters that may match a filter, latest death first. What it cannot
// tell by indexes is left to the query that reads them.
type picker struct {
	c      conn
	facets *where   // over facet f
	few    []strand // the letters that the filter names, if it does
	runs   []strand
	rest   *where // over letter l and current c, still to be asked
	interval
	scanned  int64  // how many letters walk looked at
	everyone *where // in place of rest while all letters are gone through; nil is not at all
	common   bool   // so many letters are of the facets that going through all is the shorter way for all of them
}

// interval is a part of the listing of all letters.
type interval struct {
	below deathPos // the first one comes after this
	least deathPos // and the last one before this
}

func allTime() interval {
	return interval{deathPos{math.MaxInt64, math.MaxInt64}, deathPos{math.MinInt64, -1}}
}

// plan takes a filter apart.
func plan(c conn, f *nixie.Filter, now time.Time) *picker {
	rest := *f
	rest.IDs = nil // few asks for them
	p := &picker{c: c, facets: facetWhere(f), few: fewWhere(f), rest: restWhere(&rest, now), interval: allTime()}
	p.bound(f, now)
	return p
}

// counted reports whether facets and times of death say all that is asked.
func (p *picker) counted() bool { return len(p.rest.terms) == 0 && p.few == nil }

// begin chooses the runs.
func (p *picker) begin() error {
	switch {
	case p.few != nil:
		p.runs = p.few
		p.rest.ofFacets(p.facets)
	case len(p.facets.terms) == 0:
		p.runs = everyLetter()
	default:
		return p.byFacets()
	}
	return nil
}

func everyLetter() []strand { return []strand{{term: "true", sorted: true}} }

// bound takes the times of death that a filter asks for.
func (s *interval) bound(f *nixie.Filter, now time.Time) {
	if t := f.Died.After; !t.IsZero() {
		s.from(lifecycle.Nanos(t))
	}
	if t := f.Died.Before; !t.IsZero() {
		s.till(lifecycle.Nanos(t))
	}
	if f.Age.Max != 0 {
		s.from(lifecycle.Nanos(now.Add(-f.Age.Max)))
	}
	if f.Age.Min != 0 {
		s.till(lifecycle.Nanos(now.Add(-f.Age.Min)) + 1)
	}
}

func (s *interval) from(at int64) { s.least.died = max(s.least.died, at) }

func (s *interval) till(at int64) {
	if at <= s.below.died {
		s.below = deathPos{died: at}
	}
}

// after begins behind a place.
func (s *interval) after(at deathPos) {
	if s.below.compare(at) < 0 {
		s.below = at
	}
}

// fewWhere are the runs of a filter that names letters or messages one by one, or
// streams.
func fewWhere(f *nixie.Filter) []strand {
	w := &where{}
	switch {
	case len(f.IDs) > 0:
		marks := "?" + strings.Repeat(", ?", len(f.IDs)-1)
		w.add("pos in (select pos from letter where id in ("+marks+") union all select h.pos from message m join letter h on h.pos = m.pos where m.id in ("+marks+"))",
			append(idArgs(f.IDs), idArgs(f.IDs)...)...)
	case len(f.Keys) > 0 && !slices.Contains(f.Keys, ""):
		oneOf(w, "key", f.Keys)
		w.terms[0] = "pos in (select pos from message where " + w.terms[0] + ")"
	case !f.Operation.IsZero():
		return []strand{{"operation = +?", []any{f.Operation}, true}}
	case len(f.Streams) > 0 && !slices.Contains(f.Streams, ""):
		var runs []strand
		for _, name := range slices.Compact(slices.Sorted(slices.Values(f.Streams))) {
			runs = append(runs, strand{"flow = +?", []any{name}, true})
		}
		return runs
	default:
		return nil
	}
	return []strand{{term: w.String(), args: w.args}}
}

// byFacets makes a run of each facet that has letters to show. Where those are many
// of all, or facets are too many, all letters are gone through.
func (p *picker) byFacets() error {
	all, err := p.c.number("select sum(letters) from facet")
	if err != nil {
		return err
	}
	chosen := int64(0)
	if err := p.c.each("select n, letters from facet f where "+p.facets.String(), func(row rows) error {
		p.runs = append(p.runs, strand{"facet = +?", []any{row.ColumnInt64(0)}, true})
		chosen += row.ColumnInt64(1)
		return nil
	}, p.facets.args...); err != nil {
		return err
	}
	everyone := &where{}
	everyone.and(p.rest)
	everyone.ofFacets(p.facets)
	switch {
	case len(p.runs) > maxRuns:
		p.runs, p.rest = everyLetter(), everyone
	case len(p.runs) > runsFirst && chosen*runsFirst > all:
		p.everyone, p.common = everyone, chosen*runsWeight > all
	}
	return nil
}

// first is how many letters to pick first for a page.
func (p *picker) first(limit int) int {
	if len(p.rest.terms) == 0 && p.everyone == nil {
		return limit // all of them match
	}
	return 4 * limit
}

// weight is by how much more it costs to look at a letter: some are found by going
// through many facets, and some are asked for what only their messages know.
func (p *picker) weight() int {
	weight := 1
	if len(p.runs) > 1 {
		weight = runsWeight
	}
	if asksMessages(p.rest.String()) {
		weight += 3
	}
	return weight
}

// asksMessages reports whether a part of a query is about current c.
func asksMessages(part string) bool { return strings.Contains(part, "c.") }

// pick returns the next letters, at most limit, and what is still to be asked of
// them. Fewer than limit are the last ones.
func (p *picker) pick(limit int) ([]deathPos, *where, error) {
	runs, rest := p.runs, p.rest
	if p.everyone != nil { // once: if they lie close together it is the shortest way
		runs, rest = everyLetter(), p.everyone
		p.everyone = nil
	}
	var list []deathPos
	low := p.least
	cut := func() {
		slices.SortFunc(list, deathPos.compare)
		if len(list) > limit {
			list = list[:limit]
			low = list[limit-1]
		}
	}
	for _, r := range runs {
		inOrder := " and (died, pos) < (?, ?) and (died, pos) > (?, ?) order by died desc, pos desc" + limited
		if !r.sorted {
			inOrder = strings.ReplaceAll(inOrder, "died", "+died")
		}
		args := append(slices.Clone(r.args), p.below.died, p.below.pos, low.died, low.pos, limit)
		if err := p.c.each("select died, pos from letter where "+r.term+inOrder, func(row rows) error {
			list = append(list, deathPos{row.ColumnInt64(0), row.ColumnInt64(1)})
			return nil
		}, args...); err != nil {
			return nil, nil, err
		}
		if len(list) >= 2*limit {
			cut()
		}
	}
	cut()
	if len(list) > 0 {
		p.below = list[len(list)-1]
	}
	return list, rest, nil
}

// among is a query over picked letters l, their facets k and, if it is asked, current
// c, in their order, with its first argument.
func among(list []deathPos, columns, rest string) (query string, arg string, err error) {
	numbers := make([]int64, len(list))
	for i, p := range list {
		numbers[i] = p.pos
	}
	data, err := json.Marshal(numbers)
	from := " " + sqlText["letters_picked"]
	if asksMessages(columns + rest) {
		from += " cross join current c on c.pos = l.pos"
	}
	return "select " + columns + from + " where " + rest, string(data), err
}

// walk calls f for letters that match, latest death first, until it returns
// errEnough, all were met, or so many were looked at that the rest has to wait. It
// returns from where to go on; the zero place is the end.
func (p *picker) walk(columns string, first, most int, f func(rows) error) (deathPos, error) {
	step, weight := first, p.weight()
	for scanned := 0; scanned < most; {
		step = min(step, (most-scanned-1)/weight+1)
		list, rest, err := p.pick(step)
		if err != nil || len(list) == 0 {
			return deathPos{}, err
		}
		query, arg, err := among(list, columns, rest.String())
		if err != nil {
			return deathPos{}, err
		}
		p.scanned += int64(len(list))
		if err := p.c.each(query, f, append([]any{arg}, rest.args...)...); err != nil {
			return deathPos{}, err
		}
		if len(list) < step {
			return deathPos{}, nil
		}
		scanned += len(list) * weight
		step = min(step*8, maxScanned/4)
	}
	return p.below, nil
}

// through calls f for letters that match, latest death first. If those that may match
// are too many to look at, it says how many of them it looked at.
func (p *picker) through(columns string, scan store.Scan, f func(rows) error) (store.Coverage, error) {
	if err := p.begin(); err != nil {
		return store.Coverage{}, err
	}
	if p.common {
		p.runs, p.rest = everyLetter(), p.everyone
	}
	p.everyone = nil
	within, most := p.interval, maxScanned
	if scan == store.ScanAll {
		most = math.MaxInt
	}
	next, err := p.walk(columns, maxScanned/4, most, f)
	if err != nil || next == (deathPos{}) {
		return store.Coverage{}, err
	}
	of, err := p.size(within)
	if err != nil {
		return store.Coverage{}, err
	}
	newest, err := p.size(interval{below: within.below, least: deathPos{next.died, next.pos - 1}})
	if err != nil || newest == of {
		return store.Coverage{}, err
	}
	return store.Coverage{Newest: newest, Of: of}, nil
}

// size is how many letters within a interval may match.
func (p *picker) size(within interval) (letters int64, err error) {
	switch {
	case p.few == nil && within == allTime():
		return p.c.number("select sum(letters) from facet f where "+p.facets.String(), p.facets.args...)
	case p.few == nil:
		err = eachDeath(p.c, p.facets, within, func(_, _, n int64) { letters += n })
		return letters, err
	}
	for _, r := range p.few {
		n, err := p.c.number("select count(*) from letter where "+r.term+" and (died, pos) < (?, ?) and (died, pos) > (?, ?)",
			append(slices.Clone(r.args), within.below.died, within.below.pos, within.least.died, within.least.pos)...)
		if err != nil {
			return 0, err
		}
		letters += n
	}
	return letters, nil
}
