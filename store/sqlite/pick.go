package sqlite

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// deathPos is a position in a listing of letters: the latest death first, and among equal deaths
// the newest letter.
type deathPos struct{ died, pos int64 }

func (p deathPos) compare(q deathPos) int {
	return cmp.Or(cmp.Compare(q.died, p.died), cmp.Compare(q.pos, p.pos))
}

// These limits bound the work for one page. A page that would cost more ends early, with a cursor
// for the next page.
const (
	maxScanned  = 12_000 // letters that one page scans, counted by their weight
	maxSources  = 4_000  // facets that a page merges; with more of them it scans all letters
	mergeWeight = 3      // scanning a letter costs that much more when facets are merged
	scanFirst   = 10     // see byFacets
)

// source reads letters in the order of a listing from an index, or from a part of one.
type source struct {
	term   string // over table letter
	args   []any
	sorted bool // the index has the order; otherwise the letters are few
}

// picker picks letters that may match a filter, latest death first. The query that reads a letter
// checks the conditions that no index can answer.
type picker struct {
	c       conn
	facets  *where   // over facet f
	named   []source // sources of a filter that names letters, or nil
	sources []source
	rest    *where // over letter l and current c: conditions that no index answers
	interval
	scanned  int64  // letters that walk has scanned
	scanAll  *where // replaces rest for the first pick, which scans all letters; nil is none
	scanOnly bool   // scanning all letters is cheaper to the end
}

// interval is a part of the listing of all letters.
type interval struct {
	below deathPos // the first letter comes after this position
	least deathPos // and the last one before this one
}

func allTime() interval {
	return interval{deathPos{math.MaxInt64, math.MaxInt64}, deathPos{math.MinInt64, -1}}
}

// plan sorts the conditions of a filter by what can answer them.
func plan(c conn, f *nixie.Filter, now moment) *picker {
	rest := *f
	rest.IDs, rest.Endings = nil, nil // named has them
	p := &picker{c: c, facets: facetWhere(f, now), named: namedBy(f), rest: restWhere(&rest, now), interval: allTime()}
	p.bound(f, now)
	return p
}

// counted reports whether facets and the time of death answer the whole filter.
func (p *picker) counted() bool { return len(p.rest.terms) == 0 && p.named == nil }

// begin chooses the sources.
func (p *picker) begin() error {
	switch {
	case p.named != nil:
		p.sources = p.named
		p.rest.ofFacets(p.facets)
	case len(p.facets.terms) == 0:
		p.sources = everyLetter()
	default:
		return p.byFacets()
	}
	return nil
}

func everyLetter() []source { return []source{{term: "true", sorted: true}} }

// bound narrows an interval to the times of death in a filter.
func (s *interval) bound(f *nixie.Filter, now moment) {
	if t := f.Died.After; !t.IsZero() {
		s.from(lifecycle.Nanos(t))
	}
	if t := f.Died.Before; !t.IsZero() {
		s.till(lifecycle.Nanos(t))
	}
	if f.Age.Max != 0 {
		s.from(now.before(f.Age.Max))
	}
	if f.Age.Min != 0 {
		s.till(now.before(f.Age.Min) + 1)
	}
}

func (s *interval) from(at int64) { s.least.died = max(s.least.died, at) }

func (s *interval) till(at int64) {
	if at <= s.below.died {
		s.below = deathPos{died: at}
	}
}

// after narrows an interval to the letters behind a position.
func (s *interval) after(at deathPos) {
	if s.below.compare(at) < 0 {
		s.below = at
	}
}

// namedBy returns the sources of a filter that names letters, messages or streams one by one, or
// nil.
func namedBy(f *nixie.Filter) []source {
	w := &where{}
	switch {
	case len(f.IDs)+len(f.Endings) > 0:
		named, args := letterNamed(f)
		w.add(named, args...)
	case len(f.Keys) > 0 && !slices.Contains(f.Keys, ""):
		oneOf(w, "key", f.Keys)
		w.terms[0] = "pos in (select pos from message where " + w.terms[0] + ")"
	case !f.Operation.IsZero():
		return []source{{"operation = +?", []any{f.Operation}, true}}
	case len(f.Streams) > 0 && !slices.Contains(f.Streams, ""):
		var sources []source
		for _, name := range slices.Compact(slices.Sorted(slices.Values(f.Streams))) {
			sources = append(sources, source{"flow = +?", []any{name}, true})
		}
		return sources
	default:
		return nil
	}
	return []source{{term: w.String(), args: w.args}}
}

// byFacets makes each matching facet a source. It scans all letters instead when the facets are too
// many. It scans all letters first when more than scanFirst facets match and hold at least
// 1/scanFirst of all letters.
func (p *picker) byFacets() error {
	all, err := p.c.number("select sum(letters) from facet")
	if err != nil {
		return err
	}
	chosen := int64(0)
	if err := p.c.each("select n, letters from facet f where "+p.facets.String(), func(row rows) error {
		p.sources = append(p.sources, source{"facet = +?", []any{row.ColumnInt64(0)}, true})
		chosen += row.ColumnInt64(1)
		return nil
	}, p.facets.args...); err != nil {
		return err
	}
	every := &where{}
	every.and(p.rest)
	every.ofFacets(p.facets)
	switch {
	case len(p.sources) > maxSources:
		p.sources, p.rest = everyLetter(), every
	case len(p.sources) > scanFirst && chosen*scanFirst > all:
		p.scanAll, p.scanOnly = every, chosen*mergeWeight > all
	}
	return nil
}

// first returns how many letters to pick first for a page.
func (p *picker) first(limit int) int {
	if len(p.rest.terms) == 0 && p.scanAll == nil {
		return limit // all of them match
	}
	return 4 * limit
}

// weight returns the relative cost of scanning a letter. Merging many sources costs more, and so
// does reading messages.
func (p *picker) weight() int {
	weight := 1
	if len(p.sources) > 1 {
		weight = mergeWeight
	}
	if asksMessages(p.rest.String()) {
		weight += 3
	}
	return weight
}

// asksMessages reports whether a part of a query is about current c.
func asksMessages(part string) bool { return strings.Contains(part, "c.") }

// pick returns the next letters, at most limit, and the conditions that they have yet to meet.
// After the last letter it returns fewer than limit.
func (p *picker) pick(limit int) ([]deathPos, *where, error) {
	sources, rest := p.sources, p.rest
	if p.scanAll != nil { // once: it is cheapest if the matching letters are close to each other
		sources, rest = everyLetter(), p.scanAll
		p.scanAll = nil
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
	for _, r := range sources {
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

// among returns a query over picked letters l, their facets f and, where the query needs it,
// current c, in the order of the letters. arg is its first argument.
func among(list []deathPos, columns, rest string) (query string, arg string, err error) {
	numbers := make([]int64, len(list))
	for i, p := range list {
		numbers[i] = p.pos
	}
	data, err := json.Marshal(numbers)
	from := " " + sqlText("letters_picked")
	if asksMessages(columns + rest) {
		from += " cross join current c on c.pos = l.pos"
	}
	return "select " + columns + from + " where " + rest, string(data), err
}

// walk calls f for matching letters, latest death first. It ends when f returns errEnough, after
// the last letter, or when it has scanned most letters. It returns the position from which to go
// on, or the zero position at the end.
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

// through calls f for matching letters, latest death first. If it cannot scan all letters that may
// match, it returns how many it scanned.
func (p *picker) through(columns string, scan store.Scan, f func(rows) error) (store.Coverage, error) {
	if err := p.begin(); err != nil {
		return store.Coverage{}, err
	}
	if p.scanOnly {
		p.sources, p.rest = everyLetter(), p.scanAll
	}
	p.scanAll = nil
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

// size returns how many letters of an interval may match.
func (p *picker) size(within interval) (letters int64, err error) {
	switch {
	case p.named == nil && within == allTime():
		return p.c.number("select sum(letters) from facet f where "+p.facets.String(), p.facets.args...)
	case p.named == nil:
		err = eachDeath(p.c, p.facets, within, func(_, _, n int64) { letters += n })
		return letters, err
	}
	for _, r := range p.named {
		n, err := p.c.number("select count(*) from letter where "+r.term+" and (died, pos) < (?, ?) and (died, pos) > (?, ?)",
			append(slices.Clone(r.args), within.below.died, within.below.pos, within.least.died, within.least.pos)...)
		if err != nil {
			return 0, err
		}
		letters += n
	}
	return letters, nil
}
