package items

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

// fault is a refused list with its error.
type fault struct {
	format       Format
	text         string
	line, column int
	says         string
}

func TestJSONLErrors(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth+1)
	long := strings.Repeat("x", nixie.MaxBody+1)
	checkFaults(t, []fault{
		{JSONL, "\"a\x1fb\"", 1, 3, "a control character (0x1f) inside a string"},
		{JSONL, "\"a\tb\"", 1, 3, "a control character (0x09) inside a string"},
		{JSONL, "1\n2\n3\n4\n5\n6\n{\"a\": tru}\n8", 7, 10, "invalid JSON: want the word true, found '}'\n  {\"a\": tru}\n           ^"},
		{JSONL, `{"a"}`, 1, 5, "want a colon after the name, found '}'"},
		{JSONL, `{"a":1,}`, 1, 8, "want a name in double quotes, found '}'"},
		{JSONL, `{a:1}`, 1, 2, "want a name in double quotes, found 'a'"},
		{JSONL, `[1 2]`, 1, 4, "want a comma or ], found '2'"},
		{JSONL, `[1,]`, 1, 4, "want a value, found ']'"},
		{JSONL, `[1`, 1, 3, "want a comma or ], but the text ends"},
		{JSONL, `01`, 1, 2, "text after the JSON value: in JSON lines each line holds one value"},
		{JSONL, `-`, 1, 2, "want a digit, but the text ends"},
		{JSONL, `1.`, 1, 3, "want a digit"},
		{JSONL, `1e+`, 1, 4, "want a digit"},
		{JSONL, `.5`, 1, 1, "want a value, found '.'"},
		{JSONL, `NaN`, 1, 1, "want a value, found 'N'"},
		{JSONL, `"abc`, 1, 5, "the text ends inside a string"},
		{JSONL, "\"a\x00b\"", 1, 3,
			`a control character (0x00) inside a string: escape it, or close the string` + "\n  \"a\\x00b\"\n    ^"},
		{JSONL, "\x1b[31m", 1, 1, `found '\x1b'`},
		{JSONL, `"\x"`, 1, 3, `want one of "\/bfnrtu after a backslash, found 'x'`},
		{JSONL, `"\u12g4"`, 1, 6, "want four hex digits"},
		{JSONL, "\"\xff\"", 1, 2, `byte 0xff is not valid UTF-8, which JSON and CSV must be: convert the list, with iconv for example`},
		{JSONL, "{\n", 1, 2, "want a name in double quotes, but the text ends"},
		{JSONL, deep, 1, MaxDepth + 1, "nest deeper than 10000, the limit: flatten the item"},
		{JSONL, "1\n\"" + long + "\"", 2, 1,
			"the item has 16777219 bytes, the limit is 16777216: store it elsewhere and list a reference to it"},
		{JSONL, `{"id":"a"}` + "\n\n" + `{"id":"a"}`, 3, 1,
			`line 1 has the ID "a" already: IDs are unique in a list; ` +
				`remove one of the two, or choose another field with --id-field`},
		{JSONL, `{"id":7}` + "\n" + `{"id":"7"}`, 2, 1, `line 1 has the ID "7" already`},
		{JSONL, `{"id":{}}`, 1, 1, `the ID field "id" is an object: want a string or number`},
		{JSONL, `{"id":[1]}`, 1, 1, `the ID field "id" is an array`},
		{JSONL, `{"id":true}`, 1, 1, `the ID field "id" is true or false`},
		{JSONL, `{"id":""}`, 1, 1, `the ID field "id" is empty: give 1 to 255 bytes`},
		{JSONL, `{"id":"` + strings.Repeat("x", 256) + `"}`, 1, 1,
			"the ID has 256 bytes, the limit is 255: shorten it or use a hash; or choose another field with --id-field"},
		{JSONL, `{"id":"a\nb"}`, 1, 1, "holds a control character: remove it"},
		{JSONL, "{}\n" + `{"id":"sha256-44136fa355b3678a1146ad16f7e8649e-0"}`, 2, 1, "was made for an earlier item without one"},
		{JSONL, `{"id":"sha256-44136fa355b3678a1146ad16f7e8649e-0"}` + "\n{}", 2, 1,
			`line 1 has the ID "sha256-44136fa355b3678a1146ad16f7e8649e-0", which this item without one would get`},
	})
}

func TestOtherInputErrors(t *testing.T) {
	long := strings.Repeat("x", nixie.MaxBody+1)
	checkFaults(t, []fault{
		{JSON, "[1,\n 2,\n x]", 3, 2, "want a value, found 'x'\n   x]\n   ^"},
		{JSON, "[1,\n2", 2, 2, "want a comma or ], but the text ends"},
		{JSON, "[1]\n[2]", 2, 1, "text after the end of the JSON document: if the list has a JSON value per line, say --format jsonl"},
		{JSON, "{\"a\":[1]}", 1, 1, "the document is an object: choose its items with --json-path"},
		{JSON, `"x"`, 1, 1, "the document is a string"},
		{JSON, `12`, 1, 1, "the document is a number"},
		{JSON, `null`, 1, 1, "the document is true, false or null"},
		{JSON, `nul`, 1, 1, "the document is true, false or null"},
		{JSON, `?`, 1, 1, "want a value, found '?'"},
		{JSON, "[1,\n \"a\xff\"]", 2, 4, "byte 0xff is not valid UTF-8"},
		{JSON, "[[\n \"a\xff\"]]", 2, 4, "byte 0xff is not valid UTF-8"},
		{JSON, "[{\"id\":1},\n{\"id\":1}]", 2, 1, `line 1 has the ID "1" already`},
		{JSON, "[\"" + long + "\"]", 1, 2, "the item has 16777219 bytes, the limit is 16777216"},
		{CSV, "a,b\n1\n", 2, 1, "the row has 1 fields, the header has 2: add or remove commas, or quote a field that holds one"},
		{CSV, "a,b\n1,2\n1,2,3\n", 3, 1, "the row has 3 fields, the header has 2"},
		{CSV, "a,,b\n", 1, 3, "column 2 of the header has no name: name it"},
		{CSV, "a,b,a\n", 1, 5, `columns 1 and 3 of the header are both called "a": rename one`},
		{CSV, "a\n\n\"x\ny", 3, 1, "the quote that begins here is never closed"},
		{CSV, "a,b\n1,x\"y\n", 2, 4,
			"a quote inside a field without quotes: put the whole field in quotes and double the quote\n  1,x\"y\n     ^"},
		{CSV, "a,b\n1,\"x\"y\n", 2, 6, "text after a closing quote"},
		{CSV, "a\n\xff\n", 2, 1, "byte 0xff is not valid UTF-8"},
		{CSV, "a\xff\n", 1, 2, "byte 0xff is not valid UTF-8"},
		{CSV, "a\n\"" + long + "\"\n", 2, 1,
			"the row has at least 16777220 bytes, the limit is 16777216: close an open quote"},
		{CSV, "a\n\"" + strings.Repeat("x\n", nixie.MaxBody/2) + "\"\n", 2, 1, "close an open quote"},
		{CSV, "a\n\"" + strings.Repeat("\t", nixie.MaxBody-2) + "\"", 2, 1, "the item has 33554436 bytes, the limit is 16777216"},
		{CSV, strings.Repeat("a,", MaxColumns) + "b", 1, 1, "the header has 10001 columns, the limit is 10000"},
		{Lines, "a\n" + long + "\n", 2, 1, "the item has 16777217 bytes, the limit is 16777216"},
	})
}

func checkFaults(t *testing.T, faults []fault) {
	t.Helper()
	for _, c := range faults {
		_, err := readAll(t, c.text, Options{Format: c.format})
		var in *InputError
		if !errors.As(err, &in) {
			t.Errorf("%s %.60q: got %v, want an InputError", c.format, c.text, err)
			continue
		}
		if in.Line != c.line || in.Column != c.column || !strings.Contains(in.Error(), c.says) {
			t.Errorf("%s %.60q: got %s\nwant %d:%d: %s", c.format, c.text, in, c.line, c.column, c.says)
		}
		if code := nixie.CodeOf(err); code != nixie.CodeInvalid && code != nixie.CodeLimit {
			t.Errorf("%s %.60q: code %s", c.format, c.text, code)
		}
		for _, r := range err.Error() {
			if r < ' ' && r != '\n' {
				t.Errorf("%s %.60q: the error holds %q", c.format, c.text, r)
			}
		}
		if len(err.Error()) > 1000 {
			t.Errorf("%s %.60q: the error has %d bytes", c.format, c.text, len(err.Error()))
		}
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		opts Options
		text string
		code nixie.Code
		says string
	}{
		{Options{Path: filepath.Join(dir, "no\x1bne.jsonl")}, "", nixie.CodeNotFound,
			`no\x1bne.jsonl does not exist: check the path of the list`},
		{Options{Path: dir}, "", nixie.CodeInvalid, "is a directory: name a file, or pipe a list of its files"},
		{Options{}, "", nixie.CodeInvalid, "no list is named: give a file, or - for standard input"},
		{Options{Path: "-"}, "", nixie.CodeInvalid, "there is no standard input to read: name a file"},
		{Options{Format: "xml"}, "x", nixie.CodeInvalid, `format "xml" is unknown: give one of auto, jsonl, json, csv, lines`},
		{Options{Format: CSV, JSONPath: "$"}, "x", nixie.CodeInvalid, "the format is csv: leave one of them out"},
		{Options{}, "a,b\n1,2", nixie.CodeInvalid, "standard input could be CSV or plain lines: say which with --format"},
		{Options{}, `"a"`, nixie.CodeInvalid, "could be JSON lines, CSV or plain lines"},
		{Options{}, `{"items":[1]}`, nixie.CodeInvalid,
			"could be one JSON line or a JSON document with the items inside (then say --json-path)"},
		{Options{}, "\x1f\x8b\x08", nixie.CodeInvalid, "is compressed with gzip: zcat FILE | nixie … -"},
		{Options{}, "\xff\xfea\x00", nixie.CodeInvalid, "is UTF-16: iconv"},
		{Options{JSONPath: "items"}, "{}", nixie.CodeInvalid, "JSON path, column 1: a path begins with $"},
		{Options{JSONPath: "$..a"}, "{}", nixie.CodeInvalid,
			"JSON path, column 2: want .name, ['name'], [3], [*] or [from:to]; for filters, .. and negative"},
		{Options{JSONPath: "$.a[?@.b]"}, "{}", nixie.CodeInvalid, "JSON path, column 4: want"},
		{Options{JSONPath: "$[-1]"}, "{}", nixie.CodeInvalid, "JSON path, column 2: want"},
		{Options{JSONPath: "$[1:2:0]"}, "{}", nixie.CodeInvalid, "JSON path, column 2: want"},
		{Options{JSONPath: "$[:::]"}, "{}", nixie.CodeInvalid, "JSON path, column 2: want"},
		{Options{JSONPath: "$[1"}, "{}", nixie.CodeInvalid, "the bracket that begins here is not closed"},
		{Options{JSONPath: "$['a"}, "{}", nixie.CodeInvalid, "the name that begins here is not closed"},
		{Options{JSONPath: "$['a','b']"}, "{}", nixie.CodeInvalid, "several names at once are not supported"},
		{Options{JSONPath: `$['\n']`}, "{}", nixie.CodeInvalid, "a backslash is followed by"},
		{Options{JSONPath: "$" + strings.Repeat(".a", maxPathSteps+1)}, "{}", nixie.CodeInvalid, "a path has at most 100 steps"},
		{Options{JSONPath: "$.itms"}, `{"items":[1]}`, nixie.CodeInvalid, "the document has no $.itms: check --json-path"},
		{Options{JSONPath: "$.a.b[*]"}, `{"a":{"c":[1]}}`, nixie.CodeInvalid, "the document has no $.a.b"},
		{Options{JSONPath: "$.a[*]"}, `{"a":5}`, nixie.CodeInvalid, "the document has no $.a[*]"},
		{Options{JSONPath: "$.a[7]"}, `{"a":[1]}`, nixie.CodeInvalid, "the document has no $.a[7]"},
		{Options{JSONPath: "$.a"}, `{"a":{}}`, nixie.CodeInvalid,
			"$.a is an object, not an array of items: name the array, or choose the items with [*]"},
		{Options{JSONPath: "$.a"}, `{"a":[1],"a":[2]}`, nixie.CodeInvalid, "$.a occurs twice, first in line 1: remove one"},
	} {
		if c.text != "" {
			_, err := readAll(t, c.text, c.opts)
			checkError(t, err, c.code, c.says)
			continue
		}
		r, err := Open(c.opts)
		if err == nil {
			_, err = drain(t, r)
		}
		checkError(t, err, c.code, c.says)
	}
}

func checkError(t *testing.T, err error, code nixie.Code, says string) {
	t.Helper()
	if err == nil || nixie.CodeOf(err) != code || !strings.Contains(err.Error(), says) {
		t.Errorf("got %s: %v\nwant %s: %s", nixie.CodeOf(err), err, code, says)
	}
}

func TestUnreadable(t *testing.T) {
	for _, format := range []Format{JSONL, JSON, CSV, Lines} {
		path := filepath.Join(t.TempDir(), "list")
		if err := os.WriteFile(path, []byte("[1]"), 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := Open(Options{Path: path, Format: format})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = r.Next()
		checkError(t, err, nixie.CodeUnavailable, "list cannot be read: file already closed")
	}
	_, err := Open(Options{Path: "-", Stdin: strings.NewReader("x"), TempDir: filepath.Join(t.TempDir(), "none")})
	checkError(t, err, nixie.CodeUnavailable, "standard input cannot be copied to the temporary folder")
}
