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

// formats lists the choices of -o.
func formats() []string { return []string{asTable, asWide, asJSON, asJSONL, asCSV} }

// format refuses an -o that the command does not write.
func (g *globals) format(known ...string) error {
	if !slices.Contains(known, g.output) {
		return usagef("-o is %q: this command writes %s", g.output, strings.Join(known, ", "))
	}
	return nil
}

// choice is a flag with one of several words.
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

// Set refuses other words and lists the allowed ones.
func (c *choice) Set(text string) error {
	if !slices.Contains(c.of, text) {
		return fmt.Errorf("choose one of %s", strings.Join(c.of, ", "))
	}
	*c.value = text
	return nil
}

// formatFlag is the --format of an export. Without it -o decides.
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
