package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strings"

	"github.com/nixie-go/nixie/office"
)

// A listing prints views one by one and does not hold them all. A view is a struct with JSON
// names: it declares what programs read as JSON, JSON lines, and CSV with the names as its header.
// Columns declare what people read:
//
//	out := newListing(g, []column[office.QueueView]{
//		{name: "queue", kind: flex},             // the member of that name
//		{name: "total", show: asWide},           // with -o wide only
//		{name: "oldest", cell: func(q *office.QueueView) string { return ageOr(q.OldestAgeS) }},
//	})
//	for … { if err := out.add(view); err != nil { return err } }
//	return g.ended(out.close(), out.n, "queues") // says "no queues" if so
//
// [listed] does this for a slice, [rows] for a sequence, [list] for pages. One value (an outcome,
// a story) is printed by [one] and [globals.object].
type listing[V any] struct {
	g       *globals
	columns []column[V]
	table   *table
	csv     *csvRows
	n       int
}

// column is one column of a table.
type column[V any] struct {
	name  string          // the heading, with blanks for _
	cell  func(*V) string // nil: the member that JSON calls name
	show  string          // asWide: not in a plain table
	kind  columnKind      // a member that is a number is right-aligned in any case
	spare int             // on a narrow terminal the highest is left out first
	paint func(*V) ink    // nil: plain
}

type columnKind int

const (
	plain  columnKind = iota
	number            // to the right
	flex              // a name or text: the last one of a row gets the room that is left
	prose             // a sentence of ours, as flex: it is broken into lines and never cut
	ids               // a plain table has the last digits
)

func newListing[V any](g *globals, columns []column[V]) *listing[V] {
	l := &listing[V]{g: g}
	switch {
	case g.forPeople():
		for _, c := range columns {
			if c.show == "" || c.show == asTable || c.show == g.output {
				l.columns = append(l.columns, c.whole())
			}
		}
		var heads []heading
		for _, c := range l.columns {
			short := c.kind == ids && g.output == asTable
			heads = append(heads, heading{text: headline(c.name), right: c.kind == number, flex: c.kind == flex || c.kind == prose,
				prose: c.kind == prose, id: short, spare: c.spare})
		}
		l.table = newTable(g.Out, g.tableWidth(), g.colours(g.OutTTY), heads...)
	case g.output == asCSV:
		l.csv = newRows(g.Out, reflect.TypeFor[V]())
	}
	return l
}

// headline returns the heading of a column.
func headline(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "_", " ")) }

// whole gives a column without a cell the member of its name.
func (c column[V]) whole() column[V] {
	if c.cell != nil {
		return c
	}
	for _, f := range jsonFields(reflect.TypeFor[V]()) {
		if f.name != c.name {
			continue
		}
		if f.isNumber() {
			c.kind = number
		}
		c.cell = func(v *V) string {
			if at, is := reflect.ValueOf(v).Elem().FieldByIndex(f.index).Interface().(office.Timestamp); is {
				return clock(at) // JSON and CSV are in UTC
			}
			text, err := f.text(reflect.ValueOf(v).Elem())
			if err != nil {
				return "(" + err.Error() + ")"
			}
			if f.kind == reflect.Bool {
				return yesNo(text == "true")
			}
			return text
		}
		return c
	}
	panic(fmt.Sprintf("cli: a column of %s is called %s and has no cell", reflect.TypeFor[V](), c.name))
}

func (l *listing[V]) add(v V) error {
	l.n++
	switch {
	case l.table != nil:
		cells := make([]cell, len(l.columns))
		for i, c := range l.columns {
			cells[i].text = c.cell(&v)
			if c.paint != nil {
				cells[i].ink = c.paint(&v)
			}
		}
		return l.table.add(cells...)
	case l.csv != nil:
		return l.csv.add(reflect.ValueOf(&v).Elem())
	}
	line, err := encode(v)
	if err != nil {
		return err
	}
	switch {
	case l.g.output == asJSONL:
		line = append(line, '\n')
	case l.n == 1:
		line = append([]byte("[\n"), line...)
	default:
		line = append([]byte(",\n"), line...)
	}
	_, err = l.g.Out.Write(line)
	return err
}

// close writes the end. An empty list is an empty JSON array, a CSV with its header, and no table
// at all.
func (l *listing[V]) close() error {
	end := ""
	switch {
	case l.table != nil:
		return l.table.flush()
	case l.csv != nil:
		return l.csv.close()
	case l.g.output == asJSON && l.n == 0:
		end = "[]\n"
	case l.g.output == asJSON:
		end = "\n]\n"
	}
	_, err := io.WriteString(l.g.Out, end)
	return err
}

// rows prints a sequence of views. When it is empty it says that there are no such nouns.
func rows[V any](g *globals, noun string, columns []column[V], views iter.Seq2[V, error]) error {
	out := newListing(g, columns)
	for v, err := range views {
		if err != nil {
			return err
		}
		if err := out.add(v); err != nil {
			return err
		}
	}
	return g.ended(out.close(), out.n, noun)
}

// listed prints a slice of views that was asked for, or passes the error on.
func listed[V any](g *globals, noun string, columns []column[V]) func([]V, error) error {
	return func(views []V, err error) error {
		if err != nil {
			return err
		}
		return rows(g, noun, columns, func(yield func(V, error) bool) {
			for _, v := range views {
				if !yield(v, nil) {
					return
				}
			}
		})
	}
}

// csvRows writes views as CSV (RFC 4180): a header, then a line each.
type csvRows struct {
	fields []jsonField
	csv    *csv.Writer
	begun  bool
}

func newRows(out io.Writer, view reflect.Type) *csvRows {
	return &csvRows{fields: jsonFields(view), csv: csv.NewWriter(out)}
}

func (r *csvRows) begin() error {
	if r.begun {
		return nil
	}
	r.begun = true
	head := make([]string, len(r.fields))
	for i, f := range r.fields {
		head[i] = f.name
	}
	return r.csv.Write(head)
}

func (r *csvRows) add(view reflect.Value) error {
	if err := r.begin(); err != nil {
		return err
	}
	line := make([]string, len(r.fields))
	for i, f := range r.fields {
		text, err := f.text(view)
		if err != nil {
			return err
		}
		line[i] = neutral(escape(text))
	}
	return r.csv.Write(line)
}

func (r *csvRows) close() error {
	if err := r.begin(); err != nil {
		return err
	}
	r.csv.Flush()
	return r.csv.Error()
}

// writeRows writes a slice of views as CSV.
func writeRows(out io.Writer, views reflect.Value) error {
	r := newRows(out, views.Type().Elem())
	for i := range views.Len() {
		if err := r.add(views.Index(i)); err != nil {
			return err
		}
	}
	return r.close()
}
