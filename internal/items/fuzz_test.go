package items

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// inMemory is a list without a file.
type inMemory struct{ *strings.Reader }

func (inMemory) Close() error { return nil }

// readText reads a list without a temporary file.
func readText(t *testing.T, text string, opts Options) ([]Item, error) {
	t.Helper()
	r := &Reader{opts: opts, name: "list", format: opts.Format, file: inMemory{strings.NewReader(text)}}
	err := r.readPath()
	if err == nil {
		err = r.detect()
	}
	if err == nil {
		err = r.Rewind()
	}
	if err != nil {
		return nil, err
	}
	return drain(t, r)
}

// fuzz reads text both ways and checks the invariants of every list.
func fuzz(t *testing.T, text string, opts Options) (items []Item, err error) {
	t.Helper()
	items, err = readText(t, text, opts)
	var in *InputError
	if err != nil && (!errors.As(err, &in) || in.Line < 1 || in.Column < 1) {
		t.Fatalf("%q: %v", text, err)
	}
	opts.SkipBad = true
	lenient, skipErr := readText(t, text, opts)
	if err == nil && (skipErr != nil || !reflect.DeepEqual(items, lenient)) {
		t.Fatalf("%q: SkipBad changes a good list: %v, %v", text, lenient, skipErr)
	}
	seen := map[string]bool{}
	for _, item := range lenient {
		if item.ID == "" || seen[item.ID] {
			t.Fatalf("%q: ID %q is empty or taken", text, item.ID)
		}
		seen[item.ID] = true
		if item.Bad == nil && opts.Format != Lines && (!json.Valid(item.Body) || !utf8.Valid(item.Body)) {
			t.Fatalf("%q: the item %q is no JSON", text, item.Body)
		}
	}
	return items, err
}

func FuzzJSONL(f *testing.F) {
	for _, seed := range []string{"", "1\n{\"a\":[true,null,1.5e-3]}\r\n\"\\u00e9\"", "\ufeff{}", "[1,", "{\"id\":\"a\"}\n{\"id\":\"a\"}",
		"\"\xff\"\n\x00", "{\"a\":{\"b\":\"\\ud800\"}} "} {
		f.Add(seed)
	}
	f.Add("0\r0")
	f.Add("0\r")
	f.Fuzz(func(t *testing.T, text string) {
		items, err := fuzz(t, text, Options{Format: JSONL, IDField: "no such field"})
		text = strings.TrimPrefix(text, "\ufeff")
		valid := utf8.ValidString(text)
		count, end := 0, "\n"
		head := strings.TrimSuffix(text[:min(len(text), sniffBytes)], "\r")
		if strings.Contains(head, "\r") && !strings.Contains(head, "\n") {
			end = "\r" // as old programs of the Mac write it
		}
		for line := range strings.SplitSeq(text, end) {
			if strings.Trim(line, " \t\r") != "" {
				valid = valid && json.Valid([]byte(line))
				count++
			}
		}
		if valid != (err == nil) {
			t.Fatalf("%q: %v, but encoding/json says valid: %v", text, err, valid)
		}
		if err == nil && len(items) != count {
			t.Fatalf("%q: %d items in %d lines", text, len(items), count)
		}
	})
}

func FuzzJSONArray(f *testing.F) {
	for _, seed := range []string{"", "[]", "[1, {\"a\" : [2]} ,\"x\"]\n", "[1", "[1]2", "[1,]", "{}", "\ufeff[[[]],1e400]",
		"[\"\\u0000\"]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		items, err := fuzz(t, text, Options{Format: JSON, IDField: "no such field"})
		text = strings.TrimPrefix(text, "\ufeff")
		var want []json.RawMessage
		trimmed := strings.TrimLeft(text, " \t\r\n")
		wantErr := json.Unmarshal([]byte(text), &want)
		valid := trimmed == "" || strings.HasPrefix(trimmed, "[") && wantErr == nil && utf8.ValidString(text)
		if valid != (err == nil) {
			t.Fatalf("%q: %v, but encoding/json says %v", text, err, wantErr)
		}
		if !valid {
			return
		}
		if len(items) != len(want) {
			t.Fatalf("%q: %d items, want %d", text, len(items), len(want))
		}
		for i := range want {
			if !bytes.Equal(items[i].Body, want[i]) {
				t.Fatalf("%q: item %d is %q, want %q", text, i, items[i].Body, want[i])
			}
		}
	})
}

func FuzzJSONPath(f *testing.F) {
	f.Add("$.a[*].b", `{"a":[{"b":1},{"b":[2]}]}`)
	f.Add("$['a'][1:9:2]", `{"a":[1,2,3]}`)
	f.Add("$[0]", `[[1]]`)
	f.Add(`$["\""].*`, `{"\"":{}}`)
	f.Fuzz(func(t *testing.T, path, text string) {
		items, err := readText(t, text, Options{Format: JSON, JSONPath: path, IDField: "no such field"})
		if err == nil && len(items) > 0 && !json.Valid([]byte(strings.TrimPrefix(text, "\ufeff"))) {
			t.Fatalf("%q chose from the invalid %q", path, text)
		}
	})
}

func FuzzCSV(f *testing.F) {
	for _, seed := range []string{"", "a,b\n1,2\n", "a\n\"x\ny\"\n", "a,b\n1\n", "a,a\n", "\"a\"\"\"\n\"\"\n", "a\nx\"y\n\"x\"y",
		"a\n\n\n1", "0\t\"0\"", "a;b\n1;2,3\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		items, err := fuzz(t, text, Options{Format: CSV, IDField: "no such field"})
		if strings.Contains(text, "\r") || strings.HasPrefix(text, "\ufeff") {
			return // encoding/csv changes line ends inside fields
		}
		comma := separator([]byte(text)[:min(len(text), sniffBytes)], '\n')
		for line := range strings.SplitSeq(text, "\n") {
			if line != "" && strings.Trim(line, string(comma)) == "" {
				return // encoding/csv returns rows of separators only
			}
		}
		oracle := csv.NewReader(strings.NewReader(text))
		oracle.Comma = rune(comma)
		rows, csvErr := oracle.ReadAll()
		if err != nil {
			return // it refuses more: names of columns, UTF-8
		}
		if csvErr != nil || len(items) != max(len(rows)-1, 0) {
			t.Fatalf("%q: %d items; encoding/csv says %d rows, %v", text, len(items), len(rows), csvErr)
		}
		for i, item := range items {
			for j, name := range rows[0] {
				if got, ok := item.Field(name); !ok || got != rows[i+1][j] {
					t.Fatalf("%q: item %d, column %q is %q, %v; want %q", text, i, name, got, ok, rows[i+1][j])
				}
			}
		}
	})
}

func FuzzLines(f *testing.F) {
	for _, seed := range []string{"", "a\nb\n", "a\r\n\r\n\x00\xff", "\ufeffx", "\n\n", "a\rb\r", "\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		items, err := fuzz(t, text, Options{Format: Lines})
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if len(text) < sniffBytes && !strings.Contains(text, "\n") {
			text = strings.ReplaceAll(text, "\r", "\n")
		}
		n := 0
		for line := range strings.SplitAfterSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
			if whole, ended := strings.CutSuffix(line, "\n"); ended {
				line = strings.TrimSuffix(whole, "\r")
			}
			if line == "" {
				continue
			}
			if n >= len(items) || string(items[n].Body) != line {
				t.Fatalf("%q: item %d is not %q", text, n, line)
			}
			n++
		}
		if n != len(items) {
			t.Fatalf("%q: %d items in %d lines", text, len(items), n)
		}
	})
}

func FuzzFields(f *testing.F) {
	f.Add(`{"a":{"b":[1,"x",null]}}`, "a.b[1]")
	f.Add(`[[1,2]]`, "[0][1]")
	f.Add(`{"a.b":1}`, "a.b")
	f.Add(`{"a":1,"a":2}`, "a")
	f.Add(`{"":{"":1}}`, ".")
	f.Add(`{bad`, "bad")
	f.Fuzz(func(t *testing.T, body, path string) {
		item := Item{Body: []byte(body)}
		got, ok := item.Field(path)
		if !ok && got != "" {
			t.Fatalf("%q of %q is %q although it is not there", path, body, got)
		}
		var top map[string]any
		if json.Unmarshal([]byte(body), &top) != nil {
			return
		}
		if text, is := top[path].(string); is && utf8.ValidString(body) && (!ok || got != text) {
			t.Fatalf("%q of %q is %q, %v; want %q", path, body, got, ok, text)
		}
	})
}
