package postgres

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// where collects the conditions of a query with their arguments. Values only ever travel as
// arguments.
type where struct {
	terms []string
	args  []any
}

// add adds a condition, with ? for each argument.
func (w *where) add(term string, args ...any) { w.terms = append(w.terms, w.with(term, args...)) }

// with returns a text whose question marks are the numbers of arguments.
func (w *where) with(text string, args ...any) string {
	for _, a := range args {
		w.args = append(w.args, a)
		text = strings.Replace(text, "?", "$"+strconv.Itoa(len(w.args)), 1)
	}
	return text
}

func (w *where) String() string {
	if len(w.terms) == 0 {
		return "true"
	}
	return strings.Join(w.terms, " and ")
}

// oneOf adds that a column has one of the values, if there are values.
func oneOf[T ~string](w *where, column string, values []T) {
	if len(values) == 0 {
		return
	}
	if slices.Contains(values, "") { // kept as null
		column = "coalesce(" + column + ", '')"
	}
	w.add(column+" = any(?)", eachOf(values, func(v T) string { return string(v) }))
}

// contains adds that a text has a part, in any case. PostgreSQL knows the small letters of ASCII in
// every locale; texts with other letters are kept in small letters, too.
func (w *where) contains(column, low, part string) {
	if part != "" {
		w.add("position(? in coalesce("+low+", lower("+column+` collate "C"))) > 0`, strings.ToLower(part))
	}
}

// errorTypes adds that the type of the newest failure has one of some parts, in any case. Types
// have small letters of their own nowhere: of letters beyond ASCII the case counts.
func (w *where) errorTypes(of string, parts []string) {
	if len(parts) > 0 {
		w.add("exists (select from unnest(?::text[]) part where position(lower(part collate \"C\") in lower("+
			asked("newest_type", "of", of)+" collate \"C\")) > 0)", parts)
	}
}

// low returns a text in small letters, or empty if it is ASCII.
func low(text string) string {
	small := strings.ToLower(text)
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return small
		}
	}
	return ""
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

// age bounds the time since a moment.
func (w *where) age(column string, s nixie.Durations, now int64) {
	if s.Min != 0 {
		w.add(column+" <= ?", now-int64(s.Min))
	}
	if s.Max != 0 {
		w.add(column+" >= ?", now-int64(s.Max))
	}
}

// counted adds conditions on columns that letters and messages both have.
func (w *where) counted(f *nixie.Filter, of string) {
	if len(f.Queues) > 0 {
		w.add(of+".queue = any(array(select n from @.queue where name = any(?)))", f.Queues)
	}
	oneOf(w, of+".type", f.Types)
	w.bounds(of+".redrives", f.Redrives)
	w.bounds(of+".attempts", f.Attempts)
	w.bounds(of+".crashes", f.Crashes)
}

// message adds conditions on columns that only current c has.
func (w *where) message(f *nixie.Filter, now int64) {
	oneOf(w, "c.key", f.Keys)
	oneOf(w, "c.stream", f.Streams)
	for _, h := range f.Headers {
		w.add("position(? in c.headers) > 0", toJSON(false, h))
	}
	if len(f.States) > 0 {
		w.add("c.state = any(?)", eachOf(f.States, func(s nixie.State) int64 { return int64(lifecycle.Number(s)) }))
	}
	w.bounds("c.deliveries", f.Deliveries)
	if f.Due != (nixie.Times{}) {
		w.add("c.state = 0 and c.due > ?", now)
		w.times("c.due", f.Due)
	}
}

// asked returns a text of the folder sql as a part of a condition, with what its file leaves open.
func asked(part string, open ...string) string {
	return strings.ReplaceAll(fill(part, open...), "$1", "?")
}

// letterWhere is a filter over letter l and, if it asks for it, current c.
func letterWhere(f *nixie.Filter, now int64) *where {
	w := &where{}
	w.letterAll(f, now)
	return w
}

func (w *where) letterAll(f *nixie.Filter, now int64) {
	w.facet(f, now)
	w.letter(f, now)
	w.age("l.died", f.Age, now)
	w.times("l.died", f.Died)
}

// not adds that conditions do not hold.
func (w *where) not(add func(*where)) {
	of := &where{args: w.args}
	add(of)
	w.args, w.terms = of.args, append(w.terms, "("+of.String()+") is not true")
}

// ofFacetsOnly reports whether facets answer all of a filter.
func ofFacetsOnly(f *nixie.Filter, now int64) bool {
	rest := where{}
	rest.letter(f, now)
	return len(rest.terms) == 0 && f.Age == nixie.Durations{} && f.Died == nixie.Times{}
}

// facetsOfGroups finds the facets of letters with some fingerprints.
const facetsOfGroups = "select facet from @.death where whole and fingerprint = any(?)"

// letters returns the tables that a filter of letters reads.
func (w *where) letters() string {
	if strings.Contains(w.String(), "c.") {
		return "@.letter l join @.current c on c.pos = l.pos"
	}
	return "@.letter l"
}

// facetWhere has the conditions on what letters are counted by.
func facetWhere(f *nixie.Filter, now int64) *where {
	w := &where{}
	w.facet(f, now)
	return w
}

func (w *where) facet(f *nixie.Filter, now int64) {
	w.counted(f, "l")
	oneOf(w, "l.status", f.Statuses)
	oneOf(w, "l.reason", f.Reasons)
	oneOf(w, "l.class", f.Classes)
	oneOf(w, "l.cause", f.Causes)
	w.contains("l.signature", "l.label_low", f.Signature)
	if oneOf(w, "l.fingerprint", f.Fingerprints); len(f.Fingerprints) > 0 {
		w.add("l.facet = any(array("+facetsOfGroups+"))", f.Fingerprints) // which has an index
	}
	if f.Redrivable != nil {
		w.add("l.redrivable = ?", *f.Redrivable)
	}
	if f.NeedsReview != nil {
		w.add("l.needs_review = ?", *f.NeedsReview)
	}
	for i := range f.Not {
		if n := &f.Not[i]; ofFacetsOnly(n, now) {
			w.not(func(w *where) { w.facet(n, now) })
		}
	}
}

// letter adds the conditions on neither facets nor times of death.
func (w *where) letter(f *nixie.Filter, now int64) {
	if len(f.IDs)+len(f.Endings) > 0 {
		w.add("l.pos = any(" + w.named(f) + ")")
	}
	for i := range f.Not {
		if n := &f.Not[i]; !ofFacetsOnly(n, now) {
			w.not(func(w *where) { w.letterAll(n, now) })
		}
	}
	w.contains("l.text", "l.text_low", f.Text)
	w.errorTypes("l.pos", f.ErrorTypes)
	w.times("l.first_failed", f.FirstFailed)
	w.times("l.last_failed", f.LastFailed)
	if !f.Operation.IsZero() {
		w.add("l.operation = ?", [16]byte(f.Operation))
	}
	w.message(f, now)
}

// named returns an array of the positions of letters that a filter names by their IDs or the ends
// of these.
func (w *where) named(f *nixie.Filter) string {
	return w.with("array("+asked("letters_with")+" union all "+asked("messages_with")+" union all "+asked("ending", "table", "letter")+")",
		uuids(f.IDs), uuids(f.IDs), endings(f))
}

// messageWhere is a filter over current c. What only letters have matches no
// message, as in filter.MatchMessage.
func messageWhere(f *nixie.Filter, now int64) *where {
	w := &where{}
	w.messageAll(f, now)
	return w
}

func (w *where) messageAll(f *nixie.Filter, now int64) {
	if len(f.Statuses)+len(f.Classes)+len(f.Causes)+len(f.Fingerprints) > 0 || f.Signature != "" ||
		f.Redrivable != nil || f.NeedsReview != nil || !f.Operation.IsZero() ||
		f.FirstFailed != (nixie.Times{}) || f.LastFailed != (nixie.Times{}) {
		w.add("false")
	}
	if len(f.IDs)+len(f.Endings) > 0 {
		w.add("c.pos = any(array("+asked("messages_with")+" union all "+asked("ending", "table", "message")+"))", uuids(f.IDs), endings(f))
	}
	for i := range f.Not {
		w.not(func(w *where) { w.messageAll(&f.Not[i], now) })
	}
	w.contains(texts()["newest_text"], "(select f.low from @.history f where f.pos = c.pos order by f.ordinal desc limit 1)", f.Text)
	w.errorTypes("c.pos", f.ErrorTypes)
	oneOf(w, "c.reason", f.Reasons)
	w.counted(f, "c")
	w.message(f, now)
	w.age("c.enqueued", f.Age, now)
	w.times("c.enqueued", f.Died)
}

// endings returns the endings of a filter; what is too short names nothing.
func endings(f *nixie.Filter) []string {
	return slices.DeleteFunc(slices.Clone(f.Endings), func(ending string) bool { return len(ending) < nixie.MinEnding })
}

// cursorNumber reads a cursor that is one number.
func cursorNumber(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || n < 0 {
		return 0, store.BadCursor(cursor)
	}
	return n, nil
}

// cursorNumbers reads a cursor that is several numbers.
func cursorNumbers(cursor string, n int) ([]int64, error) {
	parts := strings.Split(cursor, ".")
	if len(parts) != n {
		return nil, store.BadCursor(cursor)
	}
	numbers := make([]int64, n)
	for i, part := range parts {
		var err error
		if numbers[i], err = strconv.ParseInt(part, 10, 64); err != nil {
			return nil, store.BadCursor(cursor)
		}
	}
	return numbers, nil
}
