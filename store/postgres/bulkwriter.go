package postgres

import (
	"fmt"
	"slices"
	"strings"
)

// bulkWriters has the bulk writers of a store.
type bulkWriters struct {
	pending  bulkWriter[*message, pendingKind]
	log      bulkWriter[*message, logKind]
	failures bulkWriter[failureRow, failureKind]
	letters  bulkWriter[*letterRow, letterKind]
	audit    bulkWriter[entry, entryKind]
}

func (s *Store) makeBulkWriters() bulkWriters {
	return bulkWriters{s.pendingWriter(), s.logWriter(), s.failureWriter(), s.letterWriter(), s.auditWriter()}
}

// bulkWriter writes many rows of a table by one statement. Values that all rows share are sent
// once, and the rest as arrays: that halves the work of the server and of the client. The shared
// columns come first; rows that agree in them are of one kind.
type bulkWriter[T any, K comparable] struct {
	table   string
	columns []column[T]
	common  int
	kind    func(T) K
	alike   string // inserts rows of one kind
	mixed   string // inserts rows of any kind
	update  string // writes rows of any kind again, found by their positions
}

// column is a column with the array of its values for some rows.
type column[T any] struct {
	name   string
	sql    string // the type of a value
	value  string // the expression that is written, over a row u of values; empty: the value itself
	once   bool   // it is written with the row and never again
	usual  any    // the value for which it is null; nil: none
	is     func(row T, what any) bool
	values func([]T) any
	put    func(*copying, T) // writes a value for COPY; nil: the server computes it
}

// makeBulkWriter makes the statements for a table.
func makeBulkWriter[T any, K comparable](s *Store, table string, kind func(T) K, common []column[T], rest ...column[T]) bulkWriter[T, K] {
	columns := append(common, rest...)
	var names, values, sets, once, arrays []string
	var positions string
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
			positions = array
		case !c.once:
			sets = append(sets, c.name+" = r."+c.name)
		}
	}
	list := func(of []string) string { return strings.Join(of, ", ") }
	mixed := fmt.Sprintf("(select * from unnest(%s) o (%s)) u", list(arrays), list(names))
	alike := fmt.Sprintf("(select * from (select %s offset 0) k cross join unnest(%s) o (%s)) u", list(once[:len(common)]),
		list(arrays[len(common):]), list(names[len(common):]))
	insert := fmt.Sprintf("insert into @.%s (%s) select %s from ", table, list(names), list(values))
	return bulkWriter[T, K]{
		table, columns, len(common), kind, s.named(insert + alike), s.named(insert + mixed),
		// The positions are named twice, so that no plan reads the whole table for them.
		s.named(fmt.Sprintf("update @.%s t set %s from (select %s from %s) r where t.pos = r.pos and t.pos = any(%s)", table, list(sets),
			list(values), mixed, positions)),
	}
}

// fewAlike is the number of rows below which a kind gets no statement of its own.
const fewAlike = 16

// insert adds the statements that insert rows.
func (s *bulkWriter[T, K]) insert(t *tx, list []T) {
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
func (s *bulkWriter[T, K]) rewrite(t *tx, list []T) {
	if len(list) > 0 {
		t.say(s.update, s.args(list, 0))
	}
}

// args returns the arrays of a statement, with one value each where the rows agree.
func (s *bulkWriter[T, K]) args(list []T, common int) []any {
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

// of makes a column of the value that a row has for it.
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

// orNull makes a column null where it would have the usual value.
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

// fixed leaves a column as it was written first.
func (c column[T]) fixed() column[T] {
	c.once = true
	return c
}

// inStream is of for the name of an ordered stream, or nothing, of which the number is written.
func inStream[T any](value func(T) string) column[T] {
	c := text("stream", value)
	c.value, c.put = "case when u.stream <> '' then (select s.n from @.stream s where s.queue + 0 = u.queue and s.name = u.stream) end", nil
	return c
}
