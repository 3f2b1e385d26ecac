package postgres

import (
	"fmt"
	"math"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// asking is a question about numbers of letters: which rows l, each with a number of letters, match
// which conditions. Where facets and times of death decide, the rows are those of table death, one
// for each facet and hour. Otherwise they are the letters.
type asking struct {
	letters, where string // letters is empty where deaths are counted
	args           []any
	interval       interval
}

// counted reports whether rows of table death answer the question.
func (a *asking) counted() bool { return a.letters == "" }

// source returns the rows that count letters by a property.
func (a *asking) source(by store.GroupBy) string {
	if a.counted() {
		return a.interval.deaths(by == store.ByHour || by == store.ByQueueHour)
	}
	return a.letters
}

func (t *tx) ask(f *nixie.Filter) asking {
	rest := where{}
	rest.letter(f, t.now)
	if len(rest.terms) > 0 {
		w := letterWhere(f, t.now)
		return asking{letters: w.letters() + " cross join (select 1 as letters) one", where: w.String(), args: w.args}
	}
	w := facetWhere(f, t.now)
	return asking{where: w.String(), args: w.args, interval: intervalOf(f, t.now)}
}

const hour = int64(time.Hour)

// interval is an interval of times of death, with both ends.
type interval struct{ from, to int64 }

// intervalOf returns the times of death that a filter asks for.
func intervalOf(f *nixie.Filter, now int64) interval {
	s := interval{math.MinInt64, math.MaxInt64}
	if t := f.Died.After; !t.IsZero() {
		s.from = lifecycle.Nanos(t)
	}
	if t := f.Died.Before; !t.IsZero() {
		s.to = max(lifecycle.Nanos(t), math.MinInt64+1) - 1
	}
	if f.Age.Max != 0 {
		s.from = max(s.from, now-int64(f.Age.Max))
	}
	if f.Age.Min != 0 {
		s.to = min(s.to, now-int64(f.Age.Min))
	}
	return s
}

// always reports whether an interval has all times.
func (s interval) always() bool { return s == interval{math.MinInt64, math.MaxInt64} }

// within is the condition that a moment lies in an interval.
func (s interval) within(column string) string {
	return fmt.Sprintf("%s between '%d'::bigint and '%d'::bigint", column, s.from, s.to)
}

// deaths returns the rows that count the deaths in an interval: those of table death for its whole
// hours, and letters for the rest at its ends. For all times there is one row for all hours of a
// facet, unless hourly asks for each.
func (s interval) deaths(hourly bool) string {
	part := func(letters, from string) string {
		return fmt.Sprintf("select %s, facet, %s from %s", texts()["letter_counted_by"], letters, from)
	}
	switch always := s.always(); {
	case always && hourly:
		return "(select * from @.death where hour is not null) l"
	case always:
		return "(select * from @.death where whole) l"
	case s.from == math.MinInt64 && !hourly: // all, without those that died later
		later := interval{s.to + 1, math.MaxInt64}
		return "(" + part("letters", "@.death where whole") + " union all " + part("-letters", later.deaths(false)) + ") l"
	}
	first, last := int64(math.MinInt64), int64(math.MaxInt64) // whole hours
	var ends []interval
	if s.from != math.MinInt64 {
		first = lifecycle.Hour(s.from-1) + 1
		ends = append(ends, interval{s.from, first*hour - 1})
	}
	if s.to != math.MaxInt64 {
		last = lifecycle.Hour(s.to+1) - 1
		ends = append(ends, interval{(last + 1) * hour, s.to})
	}
	if first > last {
		ends = []interval{s}
	}
	counted := part("letters", fmt.Sprintf("@.death where hour between '%d'::bigint and '%d'::bigint and ", first, last))
	// Each of the two has an index.
	rows := counted + "kept union all " + counted + "whole and not kept"
	for _, end := range ends { // of the same types, or the server reads all columns of all parts
		rows += " union all " + part("1::bigint", "@.letter where queue = any(array(select n from @.queue)) and "+end.within("died"))
	}
	return "(" + rows + ") l"
}
