package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// The output formats.
const (
	asTable = "table"
	asWide  = "wide"
	asJSON  = "json"
	asJSONL = "jsonl"
	asCSV   = "csv"
)

// formats are the choices of -o.
func formats() []string { return []string{asTable, asWide, asJSON, asJSONL, asCSV} }

// format checks that -o is one of those that a command writes.
func (g *globals) format(known ...string) error {
	if !slices.Contains(known, g.output) {
		return usagef("-o is %q: this command writes %s", g.output, strings.Join(known, ", "))
	}
	return nil
}

// choice is the value of a flag that is one word of a few.
type choice struct {
	value *string
	of    []string
}

func newChoice(value *string, initial string, of ...string) *choice {
	*value = initial
	return &choice{value, of}
}

func (c *choice) String() string { return *c.value }
func (c *choice) Type() string   { return strings.Join(c.of, "|") }

// Set takes a word and refuses others by naming all that there are.
func (c *choice) Set(text string) error {
	if !slices.Contains(c.of, text) {
		return fmt.Errorf("choose one of %s", strings.Join(c.of, ", "))
	}
	*c.value = text
	return nil
}

// formatFlag is --format of an export. Where it is not given, -o says it.
type formatFlag struct {
	flags *pflag.FlagSet
	value string
}

func (f *formatFlag) register(fs *pflag.FlagSet) {
	f.flags = fs
	fs.Var(newChoice(&f.value, asJSONL, asJSONL, asCSV), "format", "how")
}

func (f *formatFlag) read(g *globals) error {
	if f.flags.Changed("format") || !f.flags.Changed("output") {
		g.output = f.value
	}
	return g.format(asJSONL, asCSV)
}

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

// one prints a value that was asked for, unless that failed.
func one[V any](g *globals, human func(io.Writer, *V)) func(V, error) error {
	return func(v V, err error) error {
		if err != nil {
			return err
		}
		return g.object(v, func(w io.Writer) { human(w, &v) })
	}
}

// object prints one value, a struct: as JSON, indented or on one line, as CSV of
// one row, or by human.
func (g *globals) object(v any, human func(io.Writer)) error {
	one := reflect.MakeSlice(reflect.SliceOf(reflect.TypeOf(v)), 0, 1)
	return g.objectOf(v, reflect.Append(one, reflect.ValueOf(v)).Interface(), human)
}

// objectOf is object for a value whose CSV is a list that it holds.
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
