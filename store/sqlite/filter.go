package sqlite

import (
	"encoding/hex"
	"strings"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// where collects the conditions of a query with their arguments. Values travel only as arguments.
type where struct {
	terms []string
	args  []any
}

func (w *where) add(term string, args ...any) {
	w.terms = append(w.terms, term)
	w.args = append(w.args, args...)
}

func (w *where) and(more *where) {
	w.terms, w.args = append(w.terms, more.terms...), append(w.args, more.args...)
}

func (w *where) String() string {
	if len(w.terms) == 0 {
		return "true"
	}
	return strings.Join(w.terms, " and ")
}

// oneOf adds the condition that a column has one of the values. It adds none for an empty list.
func oneOf[T ~string](w *where, column string, values []T) {
	if len(values) == 0 {
		return
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = string(v)
		if v == "" { // the empty text is stored as null
			column = "coalesce(" + column + ", '')"
		}
	}
	w.add(column+" in (?"+strings.Repeat(", ?", len(values)-1)+")", args...)
}

func (w *where) contains(column, part string) {
	if part != "" {
		w.add("contains("+column+", ?)", strings.ToLower(part))
	}
}

// errorTypes adds the condition that the type of the newest failure has one of some parts.
func (w *where) errorTypes(of string, parts []string) {
	if len(parts) == 0 {
		return
	}
	const newest = "(select iif(json_valid(doc), doc ->> '$.type', '') from failure where failure.pos = "
	args := make([]any, len(parts))
	for i, part := range parts {
		args[i] = strings.ToLower(part)
	}
	one := "contains(coalesce(" + newest + of + " order by ordinal desc limit 1), ''), ?)"
	w.add("("+one+strings.Repeat(" or "+one, len(parts)-1)+")", args...)
}

func (w *where) bounds(column string, r nixie.Range) {
	if r.Min != nil {
		w.add(column+" >= ?", *r.Min)
	}
	if r.Max != nil {
		w.add(column+" <= ?", *r.Max)
	}
}

func (w *where) times(column string, b nixie.Times) {
	if !b.After.IsZero() {
		w.add(column+" >= ?", lifecycle.Nanos(b.After))
	}
	if !b.Before.IsZero() {
		w.add(column+" < ?", lifecycle.Nanos(b.Before))
	}
}

// age adds bounds of the time since a moment.
func (w *where) age(column string, s nixie.Durations, now moment) {
	if s.Min != 0 {
		w.add(column+" <= ?", now.before(s.Min))
	}
	if s.Max != 0 {
		w.add(column+" >= ?", now.before(s.Max))
	}
}

// common adds the conditions that letters and messages share. c is the view current; ages count
// from the column began.
func (w *where) common(f *nixie.Filter, began string, now moment) {
	oneOf(w, "c.key", f.Keys)
	oneOf(w, "c.stream", f.Streams)
	if len(f.States) > 0 {
		args := make([]any, len(f.States))
		for i, s := range f.States {
			args[i] = lifecycle.Number(s)
		}
		w.add("c.state in (?"+strings.Repeat(", ?", len(args)-1)+")", args...)
	}
	w.age(began, f.Age, now)
	w.times(began, f.Died)
	w.bounds("c.attempts", f.Attempts)
	w.bounds("c.deliveries", f.Deliveries)
	w.bounds("c.crashes", f.Crashes)
	if f.Due != (nixie.Times{}) {
		w.add("c.state = 0 and c.due > ?", now.store)
		w.times("c.due", nixie.Times{After: now.dueAt(f.Due.After), Before: now.dueAt(f.Due.Before)})
	}
	for _, h := range f.Headers {
		w.add("instr(c.headers, ?) > 0", jsonText(false, h))
	}
}

// not adds that conditions do not hold.
func (w *where) not(of *where) { w.add("("+of.String()+") is not true", of.args...) }

// ofFacetsOnly reports whether facets answer all of a filter.
func ofFacetsOnly(f *nixie.Filter, now moment) bool {
	return len(restWhere(f, now).terms) == 0 && f.Age == nixie.Durations{} && f.Died == nixie.Times{}
}

// facetWhere returns the conditions of a filter on facet f.
func facetWhere(f *nixie.Filter, now moment) *where {
	w := &where{}
	if len(f.Queues) > 0 {
		q := &where{}
		oneOf(q, "name", f.Queues)
		w.add("f.queue in (select n from queue where "+q.String()+")", q.args...)
	}
	oneOf(w, "f.type", f.Types)
	oneOf(w, "f.status", f.Statuses)
	oneOf(w, "f.reason", f.Reasons)
	oneOf(w, "f.class", f.Classes)
	oneOf(w, "f.cause", f.Causes)
	w.contains("f.signature", f.Signature)
	oneOf(w, "f.fingerprint", f.Fingerprints)
	if f.Redrivable != nil {
		w.add("f.redrivable = ?", *f.Redrivable)
	}
	if f.NeedsReview != nil {
		w.add("f.needs_review = ?", *f.NeedsReview)
	}
	w.bounds("f.redrives", f.Redrives)
	w.bounds("f.attempts", f.Attempts)
	w.bounds("f.crashes", f.Crashes)
	for i := range f.Not {
		if ofFacetsOnly(&f.Not[i], now) {
			w.not(facetWhere(&f.Not[i], now))
		}
	}
	return w
}

// restWhere returns the conditions of a filter on letter l and current c that are neither about
// facets nor about the time of death.
func restWhere(f *nixie.Filter, now moment) *where {
	w := &where{}
	if len(f.IDs)+len(f.Endings) > 0 {
		named, args := letterNamed(f)
		w.add("l."+named, args...)
	}
	w.contains("l.text", f.Text)
	w.errorTypes("l.pos", f.ErrorTypes)
	w.times("l.first_failed", f.FirstFailed)
	w.times("l.last_failed", f.LastFailed)
	if !f.Operation.IsZero() {
		w.add("l.operation = ?", f.Operation)
	}
	rest := *f
	rest.Age, rest.Died, rest.Attempts, rest.Crashes = nixie.Durations{}, nixie.Times{}, nixie.Range{}, nixie.Range{}
	w.common(&rest, "", now)
	for i := range f.Not {
		if !ofFacetsOnly(&f.Not[i], now) {
			w.not(letterWhere(&f.Not[i], now))
		}
	}
	return w
}

// letterWhere returns all conditions of a filter on letter l and current c.
func letterWhere(f *nixie.Filter, now moment) *where {
	w := restWhere(f, now)
	w.age("l.died", f.Age, now)
	w.times("l.died", f.Died)
	w.ofFacets(facetWhere(f, now))
	return w
}

// ofFacets adds the condition that letter l has one of some facets.
func (w *where) ofFacets(facets *where) {
	if len(facets.terms) > 0 {
		w.add("l.facet in (select f.n from facet f where "+facets.String()+")", facets.args...)
	}
}

// messageWhere returns the conditions of a filter on current c. A property that only letters have
// matches no message, as in filter.MatchMessage.
func messageWhere(f *nixie.Filter, now moment) *where {
	w := &where{}
	if len(f.Statuses)+len(f.Classes)+len(f.Causes)+len(f.Fingerprints) > 0 || f.Signature != "" ||
		f.Redrivable != nil || f.NeedsReview != nil || !f.Operation.IsZero() ||
		f.FirstFailed != (nixie.Times{}) || f.LastFailed != (nixie.Times{}) {
		w.add("false")
	}
	if len(f.IDs)+len(f.Endings) > 0 {
		named, args := messageNamed(f)
		w.add("c."+named, args...)
	}
	for i := range f.Not {
		w.not(messageWhere(&f.Not[i], now))
	}
	w.contains("coalesce((select text from failure where failure.pos = c.pos order by ordinal desc limit 1), '')", f.Text)
	w.errorTypes("c.pos", f.ErrorTypes)
	oneOf(w, "(select reason from failure where failure.pos = c.pos order by ordinal desc limit 1)", f.Reasons)
	oneOf(w, "c.queue_name", f.Queues)
	oneOf(w, "c.type", f.Types)
	w.bounds("c.redrives", f.Redrives)
	w.common(f, "c.enqueued", now)
	return w
}

// letterNamed returns the condition that a filter names a letter or its message, without the alias
// of letter.
func letterNamed(f *nixie.Filter) (condition string, args []any) {
	var parts []string
	if len(f.IDs) > 0 {
		parts = append(parts, "select pos from letter where id in "+marks(f.IDs),
			"select h.pos from message m join letter h on h.pos = m.pos where m.id in "+marks(f.IDs))
		args = append(idArgs(f.IDs), idArgs(f.IDs)...)
	}
	return withEndings(parts, args, "letter", f.Endings)
}

// messageNamed is letterNamed for messages.
func messageNamed(f *nixie.Filter) (condition string, args []any) {
	var parts []string
	if len(f.IDs) > 0 {
		parts, args = []string{"select pos from message where id in " + marks(f.IDs)}, idArgs(f.IDs)
	}
	return withEndings(parts, args, "message", f.Endings)
}

// withEndings adds the rows of a table whose ID has an ending. The index of letters has the last
// three bytes; messages have no such index, as each would pay for it.
func withEndings(parts []string, args []any, table string, endings []string) (string, []any) {
	for _, ending := range endings {
		last, err := hex.DecodeString(ending[max(0, len(ending)-nixie.MinEnding):])
		if err != nil || len(ending) < nixie.MinEnding {
			continue // names nothing
		}
		parts = append(parts, "select pos from "+table+" where substr(id, 14) = ? and lower(hex(id)) like ?")
		args = append(args, last, "%"+ending)
	}
	if len(parts) == 0 {
		return "pos in ()", nil
	}
	return "pos in (" + strings.Join(parts, " union all ") + ")", args
}

func marks(ids []nixie.ID) string { return "(?" + strings.Repeat(", ?", len(ids)-1) + ")" }

func idArgs(ids []nixie.ID) []any {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	return args
}
