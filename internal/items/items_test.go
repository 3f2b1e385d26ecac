package items

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

// readAll reads text as a list from standard input.
func readAll(t testing.TB, text string, opts Options) ([]Item, error) {
	t.Helper()
	opts.Path, opts.Stdin, opts.TempDir = "-", strings.NewReader(text), t.TempDir()
	r, err := Open(opts)
	if err != nil {
		return nil, err
	}
	return drain(t, r)
}

func drain(t testing.TB, r *Reader) ([]Item, error) {
	t.Helper()
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	var all []Item
	for {
		item, err := r.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			if _, again := r.Next(); again != err {
				t.Errorf("after %v Next returned %v", err, again)
			}
			return all, err
		}
		all = append(all, item)
	}
}

func TestRead(t *testing.T) {
	type want struct {
		body         string
		line, column int
	}
	for _, c := range []struct {
		name, text string
		opts       Options
		want       []want
	}{
		{"empty jsonl", "", Options{Format: JSONL}, nil},
		{"empty json", " \n", Options{Format: JSON}, nil},
		{"empty csv", "", Options{Format: CSV}, nil},
		{"empty lines", "", Options{Format: Lines}, nil},
		{"empty auto", "\n\n", Options{}, nil},
		{"jsonl", "{\"a\":1}\n\n  \n{\"a\":2}\r\n [3] ", Options{Format: JSONL},
			[]want{{`{"a":1}`, 1, 1}, {`{"a":2}`, 4, 1}, {` [3] `, 5, 1}}},
		{"bom", "\ufeff{\"a\":1}\n2", Options{Format: JSONL}, []want{{`{"a":1}`, 1, 1}, {"2", 2, 1}}},
		{"numbers and duplicate keys survive", `{"a":1e400,"a":9007199254740993,"b":-0.0E+1,"c":123456789012345678901234567890}`,
			Options{Format: JSONL},
			[]want{{`{"a":1e400,"a":9007199254740993,"b":-0.0E+1,"c":123456789012345678901234567890}`, 1, 1}}},
		{"scalars", "true\nfalse\nnull\n\"x\\u00e9\\n\"\n-1\n0", Options{Format: JSONL},
			[]want{{"true", 1, 1}, {"false", 2, 1}, {"null", 3, 1}, {`"x\u00e9\n"`, 4, 1}, {"-1", 5, 1}, {"0", 6, 1}}},
		{"array", "[1e400,\n {\"a\" :\n 2}, \"x\",[ ]]\n", Options{Format: JSON},
			[]want{{"1e400", 1, 2}, {"{\"a\" :\n 2}", 2, 2}, {`"x"`, 3, 6}, {"[ ]", 3, 10}}},
		{"array without elements", "[ ]", Options{Format: JSON}, nil},
		{"path to an array", `{"x":{"y":[9]},"data":{"items":[1,2]},"z":3}`, Options{JSONPath: "$.data.items"},
			[]want{{"1", 1, 33}, {"2", 1, 35}}},
		{"path to an empty array", `{"items":[]}`, Options{JSONPath: "$.items"}, nil},
		{"path with a wildcard", `{"items":[[1],[2]]}`, Options{JSONPath: "$.items[*]"}, []want{{"[1]", 1, 11}, {"[2]", 1, 15}}},
		{"path below a wildcard", `[{"p":1},{"q":0},{"p":{}},7]`, Options{JSONPath: "$[*].p"}, []want{{"1", 1, 7}, {"{}", 1, 23}}},
		{"members by wildcard", `{"a":1,"b":[2]}`, Options{JSONPath: "$.*"}, []want{{"1", 1, 6}, {"[2]", 1, 12}}},
		{"index", `[[1],[2,3]]`, Options{JSONPath: "$[1]"}, []want{{"2", 1, 7}, {"3", 1, 9}}},
		{"slice", `[0,1,2,3,4,5,6]`, Options{JSONPath: "$[1:6:2]"}, []want{{"1", 1, 4}, {"3", 1, 8}, {"5", 1, 12}}},
		{"open slice", `[0,1,2]`, Options{JSONPath: "$[1:]"}, []want{{"1", 1, 4}, {"2", 1, 6}}},
		{"quoted and escaped names", `{"a \"b\"":{"é.x":[1]}}`, Options{JSONPath: `$["a \"b\""]['é.x']`}, []want{{"1", 1, 21}}},
		{"escaped name in the document", `{"\u0069tems":[1]}`, Options{JSONPath: `$.items`}, []want{{"1", 1, 16}}},
		{"csv", "id,name\r\n1,\"a, \"\"b\"\"\"\n\n2,\"two\r\nlines\"\n3,\n", Options{Format: CSV},
			[]want{{`{"id":"1","name":"a, \"b\""}`, 2, 1}, {`{"id":"2","name":"two\r\nlines"}`, 4, 1}, {`{"id":"3","name":""}`, 6, 1}}},
		{"csv with control characters", "a\n\"\x00\t\x1f\\\"", Options{Format: CSV}, []want{{`{"a":"\u0000\t\u001f\\"}`, 2, 1}}},
		{"csv header only", "a,b\n", Options{Format: CSV}, nil},
		{"csv with \\r alone", "id,name\r1,\"two\nlines\"\r\r2,b", Options{Format: CSV},
			[]want{{`{"id":"1","name":"two\nlines"}`, 2, 1}, {`{"id":"2","name":"b"}`, 4, 1}}},
		{"csv with \\r alone and a quoted \\n in the header", "id,\"a\nb\"\r1,x\r", Options{Format: CSV},
			[]want{{`{"id":"1","a\nb":"x"}`, 2, 1}}},
		{"csv with semicolons and \\r alone", "id;name\r1;a,b\r", Options{Format: CSV}, []want{{`{"id":"1","name":"a,b"}`, 2, 1}}},
		{"csv with a \\r in quotes", "id,name\n1,\"a\rb\"\n", Options{Format: CSV}, []want{{`{"id":"1","name":"a\rb"}`, 2, 1}}},
		{"csv with rows of separators only", "id,name\n,\n1,a\n,\r\n,\n", Options{Format: CSV}, []want{{`{"id":"1","name":"a"}`, 3, 1}}},
		{"csv with a row of empty texts", "a,b\n1,a\n\"\",\n", Options{Format: CSV},
			[]want{{`{"a":"1","b":"a"}`, 2, 1}, {`{"a":"","b":""}`, 3, 1}}},
		{"jsonl with \\r alone", "{\"a\":1}\r[2]\r", Options{Format: JSONL}, []want{{`{"a":1}`, 1, 1}, {"[2]", 2, 1}}},
		{"lines with \\r alone", "a\r\rb", Options{Format: Lines}, []want{{"a", 1, 1}, {"b", 3, 1}}},
		{"lines", "a\n\n b \r\nc\x00\xff\r", Options{Format: Lines}, []want{{"a", 1, 1}, {" b ", 3, 1}, {"c\x00\xff\r", 4, 1}}},
		{"auto lines", "one\ntwo three\n", Options{}, []want{{"one", 1, 1}, {"two three", 2, 1}}},
		{"auto jsonl", "{\"a\":1}\n{\"a\":2}\n", Options{}, []want{{`{"a":1}`, 1, 1}, {`{"a":2}`, 2, 1}}},
		{"auto jsonl of arrays", "[1]\n[2]\n", Options{}, []want{{"[1]", 1, 1}, {"[2]", 2, 1}}},
		{"auto json", "[\n1,2]", Options{}, []want{{"1", 2, 1}, {"2", 2, 3}}},
		{"auto json in one line", "[1,2]\n", Options{}, []want{{"1", 1, 2}, {"2", 1, 4}}},
	} {
		got, err := readAll(t, c.text, c.opts)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: got %d items, want %d: %v", c.name, len(got), len(c.want), got)
			continue
		}
		for i, w := range c.want {
			if g := got[i]; string(g.Body) != w.body || g.Line != w.line || g.Column != w.column || g.Bad != nil {
				t.Errorf("%s: item %d is %q at %d:%d (%v), want %q at %d:%d", c.name, i, g.Body, g.Line, g.Column, g.Bad, w.body, w.line,
					w.column)
			}
		}
	}
}

func TestFormatBySuffix(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Format
	}{
		{"a.jsonl", "1\n2", JSONL}, {"a.NDJSON", "1\n2", JSONL}, {"a.json", "[1,2]", JSON}, {"a.csv", "h\n1\n2", CSV},
		{"a.tsv", "h,i\tj\n1\t2\n3\t4", CSV}, {"a.txt", "[1\n[2", Lines}, {"a", "[1,2]", JSON},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(Options{Path: path})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := drain(t, r)
		if r.Format() != c.want || err != nil || len(got) != 2 {
			t.Errorf("%s: format %s, %d items, %v; want %s and 2", c.name, r.Format(), len(got), err, c.want)
		}
		if c.name == "a.tsv" && string(got[0].Body) != `{"h,i":"1","j":"2"}` {
			t.Errorf("the first row with tabs is %s", got[0].Body)
		}
	}
}

func ids(items []Item) (all []string) {
	for _, item := range items {
		all = append(all, item.ID)
	}
	return all
}

func TestIDs(t *testing.T) {
	got, err := readAll(t, `{"id":"a"}
{"id":7}
{"id":1e400}
{"id":"x","id":"\u00e9 last"}
{"id":null}
{"id":null}
{}
`, Options{Format: JSONL})
	if err != nil {
		t.Fatal(err)
	}
	null := fmt.Sprintf("sha256-%x-", sha256.Sum256([]byte(`{"id":null}`)))
	null = null[:len("sha256-")+32] + "-"
	want := []string{"a", "7", "1e400", "é last", null + "0", null + "1", "sha256-44136fa355b3678a1146ad16f7e8649e-0"}
	if !slices.Equal(ids(got), want) {
		t.Errorf("got %v, want %v", ids(got), want)
	}

	a, _ := readAll(t, "x\ny\nx\n", Options{Format: Lines})
	b, _ := readAll(t, "y\nx\nz\nx\n", Options{Format: Lines})
	if a[0].ID != b[1].ID || a[2].ID != b[3].ID || a[1].ID != b[0].ID || a[0].ID == a[2].ID {
		t.Errorf("content IDs hang on the position: %v, %v", ids(a), ids(b))
	}

	nested, err := readAll(t, `{"meta":{"key":["", {"v":"k1"}]}}`, Options{Format: JSONL, IDField: "meta.key[1].v"})
	if err != nil || nested[0].ID != "k1" {
		t.Errorf("nested ID: %v, %v", ids(nested), err)
	}
	csv, err := readAll(t, "a.b,x\n1,2\n", Options{Format: CSV, IDField: "a.b"})
	if err != nil || csv[0].ID != "1" {
		t.Errorf("ID of a column with a dot: %v, %v", ids(csv), err)
	}
}

func TestFields(t *testing.T) {
	body := `{"s":"a\tb","n":1e400,"t":true,"z":null,"o":{"k":[10,{"x":"y"},[1,2]]},"a.b":"dotted",` +
		`"a":{"b":"nested"},"d":1,"d":2,"\u0065":"e"}`
	item := Item{Body: []byte(body)}
	for _, c := range []struct {
		path, want string
		ok         bool
	}{
		{"s", "a\tb", true}, {"n", "1e400", true}, {"t", "true", true}, {"z", "null", true}, {"o.k[0]", "10", true},
		{"o.k[1].x", "y", true}, {"o.k[2][1]", "2", true}, {"a.b", "dotted", true}, {"d", "2", true}, {"e", "e", true},
		{"o", "", false}, {"o.k", "", false}, {"o.k[3]", "", false}, {"o.k[-1]", "", false}, {"o.k[x]", "", false}, {"o.k[1", "", false},
		{"o..k", "", false}, {"o.", "", false}, {"", "", false}, {"missing", "", false}, {"s.x", "", false}, {"o.k[1]x", "", false},
		{"o.k[0].", "", false},
	} {
		if got, ok := item.Field(c.path); got != c.want || ok != c.ok {
			t.Errorf("Fields(%q) = %q, %v; want %q, %v", c.path, got, ok, c.want, c.ok)
		}
	}
	array := Item{Body: []byte(`[{"x":1}]`)}
	if got, ok := array.Field("[0].x"); got != "1" || !ok {
		t.Errorf("Fields([0].x) = %q, %v", got, ok)
	}
	lines, err := readAll(t, `{"a":1}`, Options{Format: Lines})
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := lines[0].Field(LineField); got != `{"a":1}` || !ok {
		t.Errorf("the field of a line is %q, %v", got, ok)
	}
	if _, ok := lines[0].Field("a"); ok {
		t.Error("a plain line has fields of JSON")
	}
}

func TestCheck(t *testing.T) {
	r, err := Open(Options{Path: "-", Stdin: strings.NewReader("\ufeff1\n2\nx\n"), Format: JSONL, SkipBad: true, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		sum, err := r.Check()
		if want := (Summary{Format: JSONL, Items: 2, Bytes: 2, Bad: 1}); err != nil || sum != want {
			t.Fatalf("Check is %+v, %v; want %+v", sum, err, want)
		}
	}
	got, err := drain(t, r)
	if err != nil || len(got) != 3 || string(got[0].Body) != "1" || !strings.HasSuffix(got[0].ID, "-0") {
		t.Errorf("after Check: %v, %v", got, err)
	}
}

func TestSpoolLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(Options{Path: "-", Stdin: strings.NewReader("1\n"), Format: JSONL, TempDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("the spooled copy has a name: %v, %v", left, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestSkipBad(t *testing.T) {
	long := strings.Repeat("x", nixie.MaxBody)
	for _, c := range []struct {
		name, text string
		format     Format
		bodies     []string
		bad        []bool
	}{
		{"jsonl", "1\n{bad\n\"\xff\"\n{\"id\":\"a\"}\n{\"id\":\"a\"}\n{\"id\":[]}\n2", JSONL,
			[]string{"1", "{bad", "\"\xff\"", `{"id":"a"}`, `{"id":"a"}`, `{"id":[]}`, "2"},
			[]bool{false, true, true, false, true, true, false}},
		{"json", `[1,{"id":""},2]`, JSON, []string{"1", `{"id":""}`, "2"}, []bool{false, true, false}},
		{"csv", "a,b\n1\nx,\"y\"z\nx,y\"z\n1,\xff\n1,2\n", CSV, []string{"1", `x,"y"z`, `x,y"z`, "1,\xff", `{"a":"1","b":"2"}`},
			[]bool{true, true, true, true, false}},
		{"long lines", "a\n" + long + "yy\nb", Lines, []string{"a", long, "b"}, []bool{false, true, false}},
		{"long jsonl", "1\n\"" + long + "\"\n2", JSONL, []string{"1", `"` + long[1:], "2"}, []bool{false, true, false}},
		{"long json", "[1,\"" + long + "\",2]", JSON, []string{"1", `"` + long[1:], "2"}, []bool{false, true, false}},
	} {
		got, err := readAll(t, c.text, Options{Format: c.format, SkipBad: true})
		if err != nil || len(got) != len(c.bodies) {
			t.Errorf("%s: %d items, %v", c.name, len(got), err)
			continue
		}
		seen := map[string]bool{}
		for i, item := range got {
			if string(item.Body) != c.bodies[i] || (item.Bad != nil) != c.bad[i] || seen[item.ID] || item.ID == "" {
				t.Errorf("%s: item %d is %.40q, ID %s, bad %v; want %.40q, bad %v", c.name, i, item.Body, item.ID, item.Bad, c.bodies[i],
					c.bad[i])
			}
			seen[item.ID] = true
			var in *InputError
			if item.Bad != nil && !errors.As(item.Bad, &in) {
				t.Errorf("%s: item %d has an error of type %T", c.name, i, item.Bad)
			}
		}
	}
}

// Records are objects of any layout. They need no IDs, and one may be the whole document.
func TestObjects(t *testing.T) {
	for _, c := range []struct {
		text   string
		format Format
		bodies []string
		errs   string
	}{
		{`{"a":1}`, JSON, []string{`{"a":1}`}, ""},
		{" {\n \"a\":\n1}\n", JSON, []string{"{\n \"a\":\n1}"}, ""},
		{"{\"id\":1}\n{\"id\":1}\n", JSONL, []string{`{"id":1}`, `{"id":1}`}, ""},
		{`[{"id":[]},{"id":[]}]`, JSON, []string{`{"id":[]}`, `{"id":[]}`}, ""},
		{"id,b\nx,1\n", CSV, []string{`{"id":"x","b":"1"}`}, ""},
		{`{"a":1} {}`, JSON, nil, "text after the end"},
		{`{"a":`, JSON, nil, "ends"},
		{"\"x\"\n", CSV, nil, ""},
		{"{\"a\":\n" + strings.Repeat(" ", 10) + "1}", JSON, nil, "the limit is 12"},
	} {
		opts := Options{Objects: true}
		if c.errs == "the limit is 12" {
			opts.MaxItem = 12
		}
		r := &Reader{opts: opts, name: "list", file: inMemory{strings.NewReader(c.text)}}
		if err := errors.Join(r.readPath(), r.detect(), r.Rewind()); err != nil {
			t.Fatal(err)
		}
		items, err := drain(t, r)
		if c.errs != "" {
			if err == nil || !strings.Contains(err.Error(), c.errs) {
				t.Errorf("%q: error is %v, want one about %q", c.text, err, c.errs)
			}
			continue
		}
		var bodies []string
		for _, item := range items {
			bodies = append(bodies, string(item.Body))
		}
		if err != nil || r.Format() != c.format || !slices.Equal(bodies, c.bodies) {
			t.Errorf("%q: %s of %q, %v", c.text, r.Format(), bodies, err)
		}
	}
}
