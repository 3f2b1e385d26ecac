package cli

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixie-go/nixie/office"
)

// inner gives its members to the struct that embeds it.
type inner struct {
	At office.Timestamp `json:"at"`
}

// sample has a member of every kind that a view has.
type sample struct {
	Name string `json:"name"`
	N    int    `json:"n"`
	Age  *int64 `json:"age_s"`
	inner
	Done   bool     `json:"done"`
	List   []string `json:"list,omitempty"`
	Hidden string   `json:"-"`

	note string
}

func sampleColumns() []column[sample] {
	return []column[sample]{
		{name: "name", kind: flex, paint: func(s *sample) ink { return red }},
		{name: "n"},
		{name: "age_s", show: asWide},
		{name: "at"},
		{name: "done"},
		{name: "note", cell: func(s *sample) string { return s.note }},
	}
}

func samples() []sample {
	age := int64(7)
	at := inner{office.Timestamp{Time: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}}
	return []sample{{Name: "=日本", N: -3, Age: &age, inner: at, Done: true, List: []string{"a", "b"}, Hidden: "x", note: "one"},
		{Name: "b,\"c\"\nd", N: 10, note: "two"}}
}

// One declaration, five formats.
func TestListingInEveryForm(t *testing.T) {
	for format, want := range map[string]string{
		asTable: "NAME       N  AT                    DONE  NOTE\n=日本     -3  2026-05-04 12:00:00Z  yes   one\nb,\"c\"\\nd  10  -       " +
			"              no    two\n",
		asWide: "NAME       N  AGE S  AT                    DONE  NOTE\n=日本     -3      7  2026-05-04 12:00:00Z  yes   " +
			"one\nb,\"c\"\\nd  10         -                     no    two\n",
		asJSONL: `{"name":"=日本","n":-3,"age_s":7,"at":"2026-05-04T12:00:00Z","done":true,"list":["a","b"]}` + "\n" +
			`{"name":"b,\"c\"\nd","n":10,"age_s":null,"at":null,"done":false}` + "\n",
		asJSON: "[\n" + `{"name":"=日本","n":-3,"age_s":7,"at":"2026-05-04T12:00:00Z","done":true,"list":["a","b"]}` + ",\n" +
			`{"name":"b,\"c\"\nd","n":10,"age_s":null,"at":null,"done":false}` + "\n]\n",
		asCSV: "name,n,age_s,at,done,list\n'=日本,-3,7,2026-05-04T12:00:00Z,true,\"[\"\"a\"\",\"\"b\"\"]\"\n\"b,\"\"c\"\"\n" +
			"d\",10,,,false,\n",
	} {
		if got := printSamples(t, &globals{output: format}, samples()...); got != want {
			t.Errorf("-o %s:\n%s\nwant\n%s", format, got, want)
		}
	}
	for format, want := range map[string]string{asTable: "", asWide: "", asJSONL: "", asJSON: "[]\n",
		asCSV: "name,n,age_s,at,done,list\n"} {
		if got := printSamples(t, &globals{output: format}); got != want {
			t.Errorf("-o %s of nothing: %q, want %q", format, got, want)
		}
	}
}

func printSamples(t *testing.T, g *globals, list ...sample) string {
	t.Helper()
	var out bytes.Buffer
	g.Out = &out
	if g.Env == nil {
		g.Env = func(string) string { return "" }
	}
	l := newListing(g, sampleColumns())
	for _, s := range list {
		if err := l.add(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Colours are for a terminal, unless --color or the environment decides otherwise.
func TestColours(t *testing.T) {
	for _, tc := range []struct {
		color   string
		tty     bool
		env     string // that is set
		colours bool
	}{
		{"", true, "", true}, {"", false, "", false}, {colorAuto, true, "NO_COLOR=1", false}, {colorAuto, true, "TERM=dumb", false},
		{colorAuto, true, "TERM=xterm", true},
		{colorAlways, false, "NO_COLOR=1", true}, {colorNever, true, "", false},
	} {
		name, value, _ := strings.Cut(tc.env, "=")
		g := &globals{Streams: Streams{OutTTY: tc.tty, Env: func(n string) string {
			if n == name {
				return value
			}
			return ""
		}}, output: asTable, color: tc.color}
		got := printSamples(t, g, samples()...)
		if strings.Contains(got, "\x1b[31m=日本\x1b[0m") != tc.colours || strings.Contains(got, "\x1b") != tc.colours {
			t.Errorf("%+v: %q", tc, got)
		}
		if plain := printSamples(t, &globals{output: asTable}, samples()...); uncoloured(t, got) != plain {
			t.Errorf("%+v: colours move the text:\n%s\n%s", tc, got, plain)
		}
	}
}

// uncoloured takes our own colours out of a text.
func uncoloured(t *testing.T, s string) string {
	t.Helper()
	for _, i := range [...]ink{bold, faint, red, green, yellow} {
		s = strings.ReplaceAll(s, "\x1b["+string(i)+"m", "")
	}
	return strings.ReplaceAll(s, "\x1b[0m", "")
}

// gone is a pipe whose reader has gone.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, &writeError{syscall.EPIPE} }

type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }

// Who pipes into head is not told about it.
func TestClosedPipeEndsSilently(t *testing.T) {
	for _, format := range formats() {
		var errs bytes.Buffer
		if code := Main([]string{"policy", "profiles", "-o", format},
			Streams{Out: gone{}, Err: &errs, Env: func(string) string { return "" }, Now: time.Now}); code != ExitOK || errs.Len() > 0 {
			t.Errorf("-o %s: exit code %d, %q", format, code, errs.String())
		}
	}
	if code := exitCode(Streams{Err: io.Discard}, fmt.Errorf("store: %w", syscall.EPIPE)); code != ExitFailure {
		t.Errorf("a broken connection to a store ends with %d", code)
	}
}

// A column that is called by no name of the view is a mistake that no run can
// miss.
func TestColumnWithoutCell(t *testing.T) {
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "wrong") {
			t.Errorf("recovered %v", v)
		}
	}()
	newListing(&globals{output: asTable, Streams: Streams{Env: func(string) string { return "" }}}, []column[sample]{{name: "wrong"}})
}

// A CSV of any text reads back as that text made harmless, in as many cells.
func FuzzCSV(f *testing.F) {
	for _, s := range []string{"", "=1", "a,b\n\"c\"", "\r\n", "'x", "\x00", "\x1b[0m", "日本"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		a, b = strings.ToValidUTF8(a, "�"), strings.ToValidUTF8(b, "�")
		var out bytes.Buffer
		if err := writeRows(&out, reflect.ValueOf([]struct{ A, B string }{{a, b}, {b, a}})); err != nil {
			t.Fatal(err)
		}
		lines, err := csv.NewReader(&out).ReadAll()
		if err != nil || len(lines) != 3 && a+b != "" {
			t.Fatalf("%q: %v", lines, err)
		}
		for _, line := range lines[1:] {
			for i, have := range line {
				if want := neutral(escape([]string{a, b}[i])); have != want && lines[1][i] == have {
					t.Errorf("%q came back as %q, want %q", []string{a, b}[i], have, want)
				}
				if strings.ContainsAny(have[:min(1, len(have))], "=@") {
					t.Errorf("%q is a formula", have)
				}
			}
		}
	})
}

func TestTableFits(t *testing.T) {
	for _, width := range []int{0, 200, 60, 40, 20} {
		var out bytes.Buffer
		table := newTable(&out, width, true, heading{text: "KEY", flex: true}, heading{text: "N", right: true},
			heading{text: "TEXT", flex: true})
		for _, row := range [][]string{{"日本語の注文番号", "1", strings.Repeat("x", 80)}, {"e\u0301\u202e\x1b[31m", "100", "short"}} {
			if err := table.add(cell{row[0], red}, cell{text: row[1]}, cell{row[2], faint}); err != nil {
				t.Fatal(err)
			}
		}
		if err := table.flush(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			line = uncoloured(t, strings.TrimSuffix(line, "\n"))
			if least := max(width, 26); width > 0 && displayWidth(line) > least {
				t.Errorf("width %d: %q takes %d columns", width, line, displayWidth(line))
			}
			if strings.ContainsFunc(line, harmful) {
				t.Errorf("%q acts on a terminal", line)
			}
		}
	}
}

func TestNeutral(t *testing.T) {
	for cell, want := range map[string]string{
		"": "", "plain": "plain", "=1+1": "'=1+1", "+x": "'+x", "-x": "'-x", "@x": "'@x", "\tx": "'\tx", "\rx": "'\rx", "\nx": "'\nx",
		"＝1": "'＝1", "＠x": "'＠x", "＋": "'＋", "-5": "-5", "+1e3": "+1e3", "a=b": "a=b",
		"-1e400": "-1e400", "-9007199254740993": "-9007199254740993", "-1.10": "-1.10", "-Inf": "'-Inf", "+0x1p4": "'+0x1p4",
	} {
		if got := neutral(cell); got != want {
			t.Errorf("%q became %q, want %q", cell, got, want)
		}
	}
}

// For every input JSON stays the same value and never acts on a terminal.
func FuzzEncode(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b]0;x\x07", "\u202e\u2028\u009b", "\U000e0001", "\xff", "\"\\<>&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "�")
		line, err := encode(map[string]string{"v": s})
		if err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsFunc(line, harmful) || bytes.ContainsAny(line, "\n") {
			t.Errorf("%q acts on a terminal", line)
		}
		var back map[string]string
		if err := json.Unmarshal(line, &back); err != nil || back["v"] != s {
			t.Errorf("%q came back as %q, %v", s, back["v"], err)
		}
	})
}
