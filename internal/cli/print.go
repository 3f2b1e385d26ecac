package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf16"

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

// formats lists the choices of -o.
func formats() []string { return []string{asTable, asWide, asJSON, asJSONL, asCSV} }

// format refuses an -o that the command does not write.
func (g *globals) format(known ...string) error {
	if !slices.Contains(known, g.output) {
		return usagef("-o is %q: this command writes %s", g.output, strings.Join(known, ", "))
	}
	return nil
}

// forPeople reports whether a person reads the output.
func (g *globals) forPeople() bool { return g.output == asTable || g.output == asWide }

// encode writes v as one line of JSON. It escapes characters that would act on a terminal; for a
// reader of JSON that changes nothing.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return escapeJSON(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// escapeJSON escapes what would act on a terminal in a line of JSON.
func escapeJSON(line []byte) []byte {
	if !bytes.ContainsFunc(line, harmful) {
		return line
	}
	var safe bytes.Buffer
	for _, r := range string(line) {
		if !harmful(r) {
			safe.WriteRune(r)
			continue
		}
		for _, half := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&safe, `\u%04x`, half)
		}
	}
	return safe.Bytes()
}

// one prints a value that was asked for, or passes the error on.
func one[V any](g *globals, human func(io.Writer, *V)) func(V, error) error {
	return func(v V, err error) error {
		if err != nil {
			return err
		}
		return g.object(v, func(w io.Writer) { human(w, &v) })
	}
}

// object prints one struct: as JSON, indented or on one line, as CSV with one row, or by human.
func (g *globals) object(v any, human func(io.Writer)) error {
	one := reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(v)), 0, 1)
	return g.objectOf(v, reflect.Append(one, reflect.ValueOf(v)).Interface(), human)
}

// objectOf is object for a value whose CSV is a list in it.
func (g *globals) objectOf(v, list any, human func(io.Writer)) error {
	var b bytes.Buffer
	switch g.output {
	case asJSON, asJSONL:
		line, err := encode(v)
		if err != nil {
			return err
		}
		if g.output == asJSONL {
			b.Write(line)
		} else if err := json.Indent(&b, line, "", "  "); err != nil {
			return err
		}
		b.WriteByte('\n')
	case asCSV:
		if err := writeRows(&b, reflect.ValueOf(list)); err != nil {
			return err
		}
	default:
		human(&b)
	}
	_, err := g.Out.Write(b.Bytes())
	return err
}

// countsOf lists the counts of a map, largest first.
func countsOf(m map[string]int64) []office.Count {
	list := make([]office.Count, 0, len(m))
	for value, n := range m {
		list = append(list, office.Count{Value: value, Count: n})
	}
	slices.SortFunc(list, func(a, b office.Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	})
	return list
}

// printCounts prints a distribution under a title.
func printCounts(w io.Writer, title string, counts []office.Count) {
	if len(counts) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", title)
	for _, c := range counts {
		value := c.Value
		if value == "" {
			value = "(none)"
		}
		fmt.Fprintf(w, "  %6d  %s\n", c.Count, escapeLine(value))
	}
}

// facts are names and values that are printed in two columns.
type facts [][2]string

// add takes names and values alternately. A value may be foreign text; an empty one is left out.
func (f *facts) add(pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			*f = append(*f, [2]string(pair))
		}
	}
}

func (f facts) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range f {
		fmt.Fprintf(t, "%s\t%s\n", row[0], escapeLine(row[1]))
	}
	_ = t.Flush() // w is in memory
}

func printFacts(w io.Writer, pairs ...string) {
	var f facts
	f.add(pairs...)
	f.print(w)
}

// step is a command to type next, and the reason for it.
type step struct{ command, why string }

func printSteps(w io.Writer, next []step) {
	fmt.Fprintln(w, "\nNext:")
	for _, s := range next {
		fmt.Fprintf(w, "  # %s\n  %s\n", s.why, s.command)
	}
}
