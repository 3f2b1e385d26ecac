package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie/office"
)

// The output formats.
const (
	asTable = "table"
	asWide  = "wide"
	asJSON  = "json"
	asJSONL = "jsonl"
	asCSV   = "csv"
)

// format checks that -o is one that the command prints.
func (g *globals) format(known ...string) error {
	if !slices.Contains(known, g.output) {
		return usagef("-o is %q: this command prints %s", g.output, strings.Join(known, ", "))
	}
	return nil
}

func (g *globals) listFormat() error   { return g.format(asTable, asWide, asJSON, asJSONL, asCSV) }
func (g *globals) objectFormat() error { return g.format(asTable, asWide, asJSON, asJSONL) }

// forPeople reports whether the output is read by a person.
func (g *globals) forPeople() bool { return g.output == asTable || g.output == asWide }

// encode is v as one line of JSON. Characters that would act on a terminal are
// written as escapes, which changes nothing for a reader of JSON.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	line := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if bytes.ContainsFunc(line, harmful) {
		var safe bytes.Buffer
		for _, r := range string(line) {
			switch {
			case r > 0xffff && harmful(r):
				high, low := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
				fmt.Fprintf(&safe, `\u%04x\u%04x`, high, low)
			case harmful(r):
				fmt.Fprintf(&safe, `\u%04x`, r)
			default:
				safe.WriteRune(r)
			}
		}
		line = safe.Bytes()
	}
	return line, nil
}

// object prints one value: as JSON, indented or on one line, or by human.
func (g *globals) object(v any, human func(io.Writer) error) error {
	if g.forPeople() {
		var b bytes.Buffer
		if err := human(&b); err != nil {
			return err
		}
		_, err := g.Out.Write(b.Bytes())
		return err
	}
	line, err := encode(v)
	if err != nil {
		return err
	}
	if g.output == asJSON {
		var b bytes.Buffer
		if err := json.Indent(&b, line, "", "  "); err != nil {
			return err
		}
		line = b.Bytes()
	}
	_, err = g.Out.Write(append(line, '\n'))
	return err
}

// column is one column of a listing of views.
type column[T any] struct {
	name string // in CSV; the table's heading is made of it
	cell func(*T) string
	show string // asTable: always; asWide: not in a plain table; asCSV: in CSV only
	kind columnKind
}

type columnKind int

const (
	plain  columnKind = iota
	number            // to the right
	flex              // cut first
)

// listing prints views as they come, in flat memory.
type listing[T any] struct {
	g       *globals
	columns []column[T]
	table   *table
	csv     *csv.Writer
	n       int
}

func newListing[T any](g *globals, columns []column[T]) *listing[T] {
	l := &listing[T]{g: g}
	for _, c := range columns {
		if g.output == asTable && c.show == asTable || g.output == asWide && c.show != asCSV || g.output == asCSV {
			l.columns = append(l.columns, c)
		}
	}
	switch {
	case g.forPeople():
		var heads []heading
		for _, c := range l.columns {
			text := strings.ToUpper(strings.ReplaceAll(c.name, "_", " "))
			heads = append(heads, heading{text, c.kind == number, c.kind == flex})
		}
		l.table = newTable(g.Out, g.width(), heads...)
	case g.output == asCSV:
		l.csv = csv.NewWriter(g.Out)
	}
	return l
}

func (l *listing[T]) add(v T) error {
	l.n++
	switch l.g.output {
	case asJSON, asJSONL:
		line, err := encode(v)
		if err != nil {
			return err
		}
		if l.g.output == asJSON {
			before := ",\n"
			if l.n == 1 {
				before = "[\n"
			}
			line = append([]byte(before), line...)
		} else {
			line = append(line, '\n')
		}
		_, err = l.g.Out.Write(line)
		return err
	}
	cells := make([]string, len(l.columns))
	for i, c := range l.columns {
		cells[i] = c.cell(&v)
	}
	if l.table != nil {
		return l.table.add(cells...)
	}
	if err := l.headCSV(); err != nil {
		return err
	}
	for i := range cells {
		cells[i] = neutral(escape(cells[i]))
	}
	return l.csv.Write(cells)
}

func (l *listing[T]) headCSV() error {
	if l.n > 1 {
		return nil
	}
	var head []string
	for _, c := range l.columns {
		head = append(head, c.name)
	}
	return l.csv.Write(head)
}

// neutral keeps a spreadsheet from taking a text for a formula.
func neutral(cell string) string {
	if cell == "" || !strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return cell
	}
	if _, err := strconv.ParseFloat(cell, 64); err == nil {
		return cell
	}
	return "'" + cell
}

// close writes what is left. An empty list is an empty JSON array, a CSV with
// its header, and no table at all.
func (l *listing[T]) close() error {
	switch {
	case l.table != nil:
		return l.table.flush()
	case l.csv != nil:
		if l.n == 0 {
			if err := l.headCSV(); err != nil {
				return err
			}
		}
		l.csv.Flush()
		return l.csv.Error()
	case l.g.output == asJSON && l.n == 0:
		_, err := io.WriteString(l.g.Out, "[]\n")
		return err
	case l.g.output == asJSON:
		_, err := io.WriteString(l.g.Out, "\n]\n")
		return err
	}
	return nil
}

// clock writes a moment for people: to the second.
func clock(m office.Moment) string {
	if m.IsZero() {
		return "-"
	}
	return m.UTC().Format("2006-01-02 15:04:05Z")
}

// age writes how long ago something was: its two largest units, seconds at least.
func age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// took writes how long something lasted.
func took(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', -1, 64) + "ms"
	case d < time.Minute:
		return strconv.FormatFloat(float64(d.Milliseconds())/1000, 'f', -1, 64) + "s"
	}
	return age(d)
}

// plural writes a count with its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ey") {
		return strconv.FormatInt(n, 10) + " " + strings.TrimSuffix(noun, "y") + "ies"
	}
	return strconv.FormatInt(n, 10) + " " + noun + "s"
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// orDash shows an empty text.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
