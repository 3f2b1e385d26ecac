package postgres

import (
	"fmt"
	"slices"
	"strings"
)

// sheets are those of a store.
type sheets struct {
	pending  sheet[*message, pendingKind]
	log      sheet[*message, logKind]
	failures sheet[failureRow, failureKind]
	letters  sheet[*letterRow, letterKind]
	audit    sheet[entry, entryKind]
}

func (s *Store) makeSheets() sheets {
	return sheets{s.pendingSheet(), s.logSheet(), s.failureSheet(), s.letterSheet(), s.auditSheet()}
}

// sheet says how rows of a table are written, many at a time. What many rows have in
// common is said once in a statement, and the rest are arrays: for the server and for
// us that is half of the work. The common columns are the first ones; rows that agree
// in them are of one kind.
type sheet[T any, K comparable] struct {
	table   string
	columns []column[T]
	common  int
	kind    func(T) K
	alike   string // inserts rows of one kind
	mixed   string // inserts rows of any
	update  string // writes rows of any again, which are found by their pos
}

// column is a column with the array of its values for some rows.
type column[T any] struct {
	name   string
	sql    string // the type of a value
	value  string // what is written of a row u of values; empty is the value itself
	once   bool   // it is written with the row and stays so
	usual  any    // it is null where it would be this; nil: nowhere
	is     func(row T, what any) bool
	values func([]T) any
	put    func(*copying, T) // writes a value for COPY; nil: the server makes it
}

// makeSheet makes the statements for a table.
func makeSheet[T any, K comparable](s *Store, table string, kind func(T) K, common []column[T], rest ...column[T]) sheet[T, K] {
	columns := append(common, rest...)
	var names, values, sets, once, arrays []string
	var places string
	for i, c := range columns {
		array := fmt.Sprintf("$%d::%s[]", i+1, c.sql)
		value := c.value
		if value == "" {
			value = "u." + c.name
		}
		names, arrays, values = append(names, c.name), append(arrays, array), append(values, value+" as "+c.name)
		once = append(once, fmt.Sprintf("(%s)[1] as %s", array, c.name))
		switch {
		case c.name == "pos":
			places = array
		case !c.once:
			sets = append(sets, c.name+" = r."+c.name)
		}
	}
	list := func(of []string) string { return strings.Join(of, ", ") }
	mixed := fmt.Sprintf("(select * from unnest(%s) o (%s)) u", list(arrays), list(names))
	alike := fmt.Sprintf("(select * from (select %s offset 0) k cross join unnest(%s) o (%s)) u", list(once[:len(common)]), list(arrays[len(common):]), list(names[len(common):]))
	insert := fmt.Sprintf("insert into @.%s (%s) select %s from ", table, list(names), list(values))
	return sheet[T, K]{
		table, columns, len(common), kind, s.named(insert + alike), s.named(insert + mixed),
		// The places are said twice, so that no plan goes through all of the table for them.
		s.named(fmt.Sprintf("update @.%s t set %s from (select %s from %s) r where t.pos = r.pos and t.pos = any(%s)", table, list(sets), list(values), mixed, places)),
	}
}

// fewAlike is how many rows of a kind are not worth a statement of their own.
const fewAlike = 16

// insert adds the statements that insert rows.
func (s *sheet[T, K]) insert(t *tx, list []T) {
	if len(list) == 0 || s.copy(t, list) {
		return
	}
	if first := s.kind(list[0]); !slices.ContainsFunc(list[1:], func(r T) bool { return s.kind(r) != first }) {
		t.say(s.alike, s.args(list, s.common))
		return
	}
	kinds := map[K][]T{}
	var order []K
	for from, to := 0, 0; from < len(list); from = to {
		kind := s.kind(list[from])
		for to = from + 1; to < len(list) && s.kind(list[to]) == kind; to++ {
		}
		if kinds[kind] == nil {
			order = append(order, kind)
		}
		kinds[kind] = append(kinds[kind], list[from:to]...)
	}
	if len(list) < fewAlike*len(order) {
		t.say(s.mixed, s.args(list, 0))
		return
	}
	for _, kind := range order {
		t.say(s.alike, s.args(kinds[kind], s.common))
	}
}

// rewrite adds the statement that writes rows again.
func (s *sheet[T, K]) rewrite(t *tx, list []T) {
	if len(list) > 0 {
		t.say(s.update, s.args(list, 0))
	}
}

// args are the arrays of a statement, of one value each where the rows agree.
func (s *sheet[T, K]) args(list []T, common int) []any {
	args := make([]any, len(s.columns))
	for i, c := range s.columns {
		if i < common {
			args[i] = c.values(list[:1])
		} else {
			args[i] = c.values(list)
		}
	}
	return args
}

// say adds a statement whose text is complete.
func (t *tx) say(query string, args []any) { t.list = append(t.list, stmt{query: query, args: args}) }

// of makes a column of what there is to say of a row.
func of[T, V any](name, sql string, value func(T) V) column[T] {
	return column[T]{
		name: name, sql: sql, values: func(list []T) any { return eachOf(list, value) }, put: putting(sql, value),
		is: func(row T, usual any) bool { return any(value(row)) == usual },
	}
}

// text is of for a text that is null if it is empty.
func text[T any](name string, value func(T) string) column[T] {
	return of(name, "text", value).orNull("")
}

// orNull lets a column be null where it would be this.
func (c column[T]) orNull(usual any) column[T] {
	literal := fmt.Sprint(usual)
	if literal == "" {
		literal = "''"
	}
	c.value, c.usual = "nullif(u."+c.name+", "+literal+")", usual
	return c
}

// isNull reports whether a column is null in a row.
func (c *column[T]) isNull(row T) bool { return c.usual != nil && c.is(row, c.usual) }

// fixed lets a column stay as it was written first.
func (c column[T]) fixed() column[T] {
	c.once = true
	return c
}

// inStream is of for the name of an ordered stream, or nothing, for which its number
// is written.
func inStream[T any](value func(T) string) column[T] {
	c := text("stream", value)
	c.value, c.put = "case when u.stream <> '' then (select s.n from @.stream s where s.queue + 0 = u.queue and s.name = u.stream) end", nil
	return c
}
