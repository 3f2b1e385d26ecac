package sqlite

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
)

// groupings names what letters are grouped by: of kind k, where all letters of a
// kind are in one group, and of letter l and current c.
var groupings = map[nixie.GroupBy]struct{ kind, each string }{
	nixie.ByFingerprint: {"k.fingerprint", "l.fingerprint"},
	nixie.ByReason:      {"k.reason", "l.reason"},
	nixie.ByClass:       {"k.class", "l.class"},
	nixie.ByType:        {"k.type", "coalesce(c.type, '')"},
	nixie.ByQueue:       {"(select name from queue where n = k.queue)", "c.queue_name"},
	nixie.ByStatus:      {"k.status", "l.status"},
	nixie.ByHour:        {"''", "strftime('%Y-%m-%dT%H', l.died / 1000000000, 'unixepoch')"},
	nixie.ByRedrivable:  {"iif(k.redrivable, 'yes', 'no')", "iif(l.redrivable, 'yes', 'no')"},
	nixie.ByAttempts:    {"cast(k.attempts as text)", "cast(c.attempts as text)"},
	nixie.ByReview:      {"iif(k.needs_review, 'yes', 'no')", "iif(l.needs_review, 'yes', 'no')"},
}

// examples is how many letters of a group are named.
const examples = 3

// Groups implements store.DeadLetters. What kinds know is summed up from them,
// with three letters of each: how many letters there are does not matter then.
func (s *Store) Groups(ctx context.Context, filter nixie.Filter, by nixie.GroupBy) ([]nixie.Group, error) {
	if err := checkGroupings(by); err != nil {
		return nil, err
	}
	g := &grouper{by: by, filter: &filter, now: s.Now(), groups: map[string]*groupSum{}}
	err := s.read(ctx, func(c conn) error {
		g.c = c
		if err := g.run(); err != nil {
			return err
		}
		return g.nameExamples()
	})
	return g.sorted(), err
}

func checkGroupings(by ...nixie.GroupBy) error {
	for _, g := range by {
		if _, known := groupings[g]; !known {
			return nixie.Errorf(nixie.CodeInvalid, "cannot group by %q: give one of fingerprint, reason, class, type, queue, status, hour, redrivable, needs_review, attempts", g)
		}
	}
	return nil
}

// grouper sums letters up.
type grouper struct {
	c      conn
	by     nixie.GroupBy
	filter *nixie.Filter
	now    time.Time
	groups map[string]*groupSum
}

// groupSum is a group while it grows.
type groupSum struct {
	nixie.Group
	first, last int64
	newest      []example // latest death first
	mixed       bool      // several reasons
}

type example struct {
	place
	id nixie.ID
}

// group returns the group of a key, with what one more of its letters, or kinds,
// says of it.
func (g *grouper) group(key, label string, reason nixie.Reason) *groupSum {
	s := g.groups[key]
	if s == nil {
		s = &groupSum{Group: nixie.Group{Key: key, Reason: reason}, first: math.MaxInt64, last: math.MinInt64}
		g.groups[key] = s
	}
	if g.by == nixie.ByFingerprint {
		s.Label = max(s.Label, label)
	}
	s.mixed = s.mixed || s.Reason != reason
	return s
}

// meets takes a letter for an end of the group's time, and for an example if it is
// one of the newest.
func (s *groupSum) meets(e example) {
	s.first, s.last = min(s.first, e.died), max(s.last, e.died)
	if len(s.newest) == examples && s.newest[examples-1].compare(e.place) < 0 {
		return
	}
	at, there := slices.BinarySearchFunc(s.newest, e, func(a, b example) int { return a.compare(b.place) })
	if there {
		return
	}
	s.newest = slices.Insert(s.newest, at, e)
	s.newest = s.newest[:min(len(s.newest), examples)]
}

func (g *grouper) sorted() []nixie.Group {
	var list []nixie.Group
	for _, s := range g.groups {
		s.FirstAt, s.LastAt = moment(s.first), moment(s.last)
		if s.mixed {
			s.Reason = ""
		}
		for _, e := range s.newest {
			s.Examples = append(s.Examples, e.id)
		}
		list = append(list, s.Group)
	}
	slices.SortFunc(list, func(a, b nixie.Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key))
	})
	return list
}

// run chooses the cheapest way that is right: by kinds, by the counters of hours,
// or letter by letter.
func (g *grouper) run() error {
	counted, others := known(g.filter, g.now, g.by)
	if counted != nil {
		g.filter = counted
		if err := g.counted(); err != nil {
			return err
		}
	}
	if others == nil {
		return nil
	}
	g.filter = others
	return g.each()
}

// known splits what a filter asks for: letters that kinds know all of, for
// groupings, and letters that have to be looked at. What counts attempts or crashes
// has to be asked of each letter whose message is on its way. Nil is none.
func known(f *nixie.Filter, now time.Time, by ...nixie.GroupBy) (counted, others *nixie.Filter) {
	plain := *f
	plain.Attempts, plain.Crashes = nixie.Range{}, nixie.Range{}
	if len(restWhere(&plain, now).terms) > 0 {
		return nil, f
	}
	if !slices.Contains(by, nixie.ByAttempts) && f.Attempts == plain.Attempts && f.Crashes == plain.Crashes {
		return f, nil
	}
	all := f.Statuses
	if len(all) == 0 {
		all = nixie.Statuses()
	}
	ended := slices.DeleteFunc(slices.Clone(all), func(s nixie.Status) bool { return s == nixie.StatusRedriving })
	if len(ended) > 0 {
		c := *f
		c.Statuses = ended
		counted = &c
	}
	if len(ended) < len(all) {
		o := *f
		o.Statuses = []nixie.Status{nixie.StatusRedriving}
		others = &o
	}
	return counted, others
}

// counted sums up what kinds and times of death say all of.
func (g *grouper) counted() error {
	if g.by != nixie.ByHour {
		return g.byKind(g.kind)
	}
	dense, err := g.dense()
	switch {
	case err != nil:
		return err
	case dense:
		return g.byHour()
	}
	return g.byKind(g.hours)
}

// kindRow is a kind that a filter chose.
type kindRow struct {
	n, letters int64
	key, label string
	reason     nixie.Reason
	span       stretch // the times of death that are asked for
	bounded    bool
}

// byKind calls f for each kind that the filter chooses.
func (g *grouper) byKind(f func(*kindRow) error) error {
	w := kindWhere(g.filter)
	p := &picker{stretch: allTime()}
	p.bound(g.filter, g.now)
	var list []kindRow
	if err := g.c.each("select k.n, k.letters, "+groupings[g.by].kind+", k.signature, k.reason from kind k where "+w.String(), func(row rows) error {
		list = append(list, kindRow{
			n: row.ColumnInt64(0), letters: row.ColumnInt64(1), key: row.ColumnText(2), label: row.ColumnText(3), reason: nixie.Reason(row.ColumnText(4)),
			span: p.stretch, bounded: p.stretch != allTime(),
		})
		return nil
	}, w.args...); err != nil {
		return err
	}
	for i := range list {
		if err := f(&list[i]); err != nil {
			return err
		}
	}
	return nil
}

const ofKind = " from letter where kind = +? and (died, pos) < (?, ?) and (died, pos) > (?, ?)"

func (k *kindRow) args(more ...any) []any {
	return append([]any{k.n, k.span.below.died, k.span.below.n, k.span.least.died, k.span.least.n}, more...)
}

// kind adds a kind to its group: its counter, or what its index counts between two
// moments, its newest letters and its oldest.
func (g *grouper) kind(k *kindRow) error {
	if k.bounded {
		var err error
		if k.letters, err = g.c.number("select count(*)"+ofKind, k.args()...); err != nil || k.letters == 0 {
			return err
		}
	}
	s := g.group(k.key, k.label, k.reason)
	s.Count += k.letters
	meet := func(row rows) error {
		s.meets(example{place{row.ColumnInt64(0), row.ColumnInt64(1)}, columnID(row, 2)})
		return nil
	}
	if err := g.c.each("select died, pos, id"+ofKind+" order by died desc, pos desc limit ?", meet, k.args(examples)...); err != nil || k.letters <= examples {
		return err
	}
	return g.c.each("select died, pos, id"+ofKind+" order by died, pos limit ?", meet, k.args(1)...)
}

// hours adds the letters of a kind to the groups of their hours.
func (g *grouper) hours(k *kindRow) error {
	var s *groupSum
	in := int64(math.MinInt64)
	return g.c.each("select died, pos"+ofKind+" order by died desc, pos desc", func(row rows) error {
		e := example{place: place{row.ColumnInt64(0), row.ColumnInt64(1)}}
		if h := hourOf(e.died); h != in {
			in, s = h, g.group(hourName(h), "", k.reason)
		}
		s.Count++
		s.meets(e)
		return nil
	}, k.args()...)
}

func hourName(h int64) string { return time.Unix(h*3600, 0).UTC().Format("2006-01-02T15") }

// hoursKnow is how many of all letters have to be asked for to make it cheaper to
// look for some in each hour that has a counter than to look at each letter.
const hoursKnow = 8

// hoursSay reports whether the counters of hours say all that is asked.
func hoursSay(f *nixie.Filter) bool {
	rest := *f
	rest.Queues, rest.Statuses, rest.Reasons = nil, nil, nil
	return rest.IsZero()
}

// dense reports whether the counters of hours say what is asked, of many letters.
func (g *grouper) dense() (bool, error) {
	if !hoursSay(g.filter) {
		return false, nil
	}
	w := kindWhere(g.filter)
	n, err := g.c.number("select sum(letters) * ? >= (select sum(letters) from kind) from kind k where "+w.String(), append([]any{hoursKnow}, w.args...)...)
	return n != 0, err
}

// hourWhere is what a filter says of counters of hours.
func hourWhere(f *nixie.Filter) *where {
	w := &where{}
	if len(f.Queues) > 0 {
		q := &where{}
		oneOf(q, "name", f.Queues)
		w.add("queue in (select n from queue where "+q.String()+")", q.args...)
	}
	oneOf(w, "status", f.Statuses)
	oneOf(w, "reason", f.Reasons)
	return w
}

// byHour takes the counters of hours, and of each hour its newest letters and its
// oldest.
func (g *grouper) byHour() error {
	w := hourWhere(g.filter)
	var hours []int64
	if err := g.c.each("select hour, sum(n), min(reason), max(reason) from deaths where "+w.String()+" group by hour", func(row rows) error {
		h := row.ColumnInt64(0)
		hours = append(hours, h)
		s := g.group(hourName(h), "", nixie.Reason(row.ColumnText(2)))
		s.Count, s.mixed = row.ColumnInt64(1), row.ColumnText(2) != row.ColumnText(3)
		return nil
	}, w.args...); err != nil {
		return err
	}
	for _, h := range hours {
		s := g.groups[hourName(h)]
		meet := func(row rows) error {
			s.meets(example{place{row.ColumnInt64(0), row.ColumnInt64(1)}, columnID(row, 2)})
			return nil
		}
		from := "select died, pos, id from letter indexed by letter_died where died >= ? and died < ? and " + w.String()
		args := append([]any{h * hour, (h + 1) * hour}, w.args...)
		if err := g.c.each(from+" order by died desc, pos desc limit ?", meet, append(args[:len(args):len(args)], examples)...); err != nil {
			return err
		}
		if err := g.c.each(from+" order by died, pos limit ?", meet, append(args[:len(args):len(args)], 1)...); err != nil {
			return err
		}
	}
	return nil
}

// each goes through all letters that match.
func (g *grouper) each() error {
	p, err := newPicker(g.c, g.filter, g.now)
	if err != nil {
		return err
	}
	_, err = p.walk(groupings[g.by].each+", l.signature, l.reason, l.died, l.pos, l.id", maxLooked/4, math.MaxInt, func(row rows) error {
		s := g.group(row.ColumnText(0), row.ColumnText(1), nixie.Reason(row.ColumnText(2)))
		s.Count++
		s.meets(example{place{row.ColumnInt64(3), row.ColumnInt64(4)}, columnID(row, 5)})
		return nil
	})
	return err
}

// nameExamples reads the IDs of examples that an index gave.
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
			}, e.n); err != nil {
				return err
			}
		}
	}
	return nil
}
