package items_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/items"
)

// chosen returns the IDs that a selection takes of a list, which it reads twice.
func chosen(t *testing.T, list string, format items.Format, c items.Selection) string {
	t.Helper()
	r, err := items.Open(items.Options{Path: "-", Stdin: strings.NewReader(list), Format: format, Select: &c})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // it was only read
	sum, err := r.Check()
	if err != nil || sum.Items == 0 {
		t.Fatal(sum, err)
	}
	var all [2][]string
	for i := range all {
		for {
			item, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			all[i] = append(all[i], item.ID)
		}
		if err := r.Rewind(); err != nil {
			t.Fatal(err)
		}
	}
	if have, again := strings.Join(all[0], " "), strings.Join(all[1], " "); have != again {
		t.Errorf("%q, and then %q", have, again)
	}
	return strings.Join(all[0], " ")
}

func sorted(t *testing.T, by string) []items.SortKey {
	t.Helper()
	keys, err := items.ParseSort(by)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// Null comes last in both directions, unless NullsFirst. The types of values have an order; arrays
// and objects are ordered by length.
func TestR54_Sort(t *testing.T) {
	const mixed = `{"id":"n","v":null}
{"id":"o2","v":{"a":1,"b":2}}
{"id":"x","v":"x"}
{"id":"2","v":2}
{"id":"none"}
{"id":"t","v":true}
{"id":"a1","v":[7]}
{"id":"10","v":10.0}
{"id":"f","v":false}
{"id":"a","v":"a"}
{"id":"a0","v":[]}
{"id":"o1","v":{"z":1}}`
	for by, want := range map[string]string{
		"v":                           "f t 2 10 a x a0 a1 o1 o2 n none",
		"v DESC":                      "o2 o1 a1 a0 x a 10 2 t f n none",
		"v desc nulls first":          "n none o2 o1 a1 a0 x a 10 2 t f",
		"v NULLS FIRST":               "n none f t 2 10 a x a0 a1 o1 o2",
		"item.v asc nulls last, id":   "f t 2 10 a x a0 a1 o1 o2 n none",
		"nothing":                     "n o2 x 2 none t a1 10 f a a0 o1",
		"nothing, id DESC":            "x t o2 o1 none n f a1 a0 a 2 10",
		"v DESC NULLS LAST,  id DESC": "o2 o1 a1 a0 x a 10 2 t f none n",
	} {
		if have := chosen(t, mixed, items.JSONL, items.Selection{Sort: sorted(t, by)}); have != want {
			t.Errorf("by %s: %s, want %s", by, have, want)
		}
	}
	// In a CSV file all values are texts, and numbers among them are sorted as numbers.
	if have := chosen(t, "id,v\na,10\nb,9\nc,x\nd,\n", items.CSV, items.Selection{Sort: sorted(t, "v")}); have != "b a d c" {
		t.Errorf("CSV: %s", have)
	}
	// Names such as Nan and Infinity are texts, although ParseFloat takes them.
	if have := chosen(t, "id,v\na,Nina\nb,Nan\nc,Infinity\nd,1\n", items.CSV, items.Selection{Sort: sorted(t, "v")}); have != "d c b a" {
		t.Errorf("names in CSV: %s", have)
	}
	for _, by := range []string{"v UP", "v,,w", ",", "v NULLS", "v DESC ASC"} {
		if _, err := items.ParseSort(by); nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%q: %v", by, err)
		}
	}
}

// The steps are filter, sort, distinct, offset, limit. Each other order would take other items.
func TestR54_Order(t *testing.T) {
	const list = `[{"id":"a","g":1,"p":5},{"id":"b","g":1,"p":9},{"id":"c","g":2,"p":7},{"id":"d","g":3,"p":1},
{"id":"e","p":6},{"id":"f","g":null,"p":8},{"id":"g","g":"1","p":4},{"id":"h","g":2,"p":0}]`
	keep := func(item *items.Item) bool { return !bytes.Contains(item.Body, []byte(`"h"`)) }
	c := items.Selection{Keep: keep, Sort: sorted(t, "p DESC"), Distinct: "g", Offset: 1, Max: 3}
	if have := chosen(t, list, items.JSON, c); have != "f c g" { // of b f c e a g d: without e and a
		t.Errorf("%s", have)
	}
	if have := chosen(t, list, items.JSON, items.Selection{Offset: 99}); have != "" {
		t.Errorf("after the end: %s", have)
	}
	if have := chosen(t, list, items.JSON, items.Selection{Distinct: "g"}); have != "a c d e g" {
		t.Errorf("distinct: %s", have)
	}
	if have := chosen(t, "b\na\nc\n", items.Lines, items.Selection{Sort: sorted(t, "line"), Max: 2}); strings.Count(have, " ") != 1 {
		t.Errorf("lines: %s", have)
	}
}

// The error of an item is reported although the selection does not take the item.
func TestChoiceOfABadList(t *testing.T) {
	r, err := items.Open(items.Options{Path: "-", Stdin: strings.NewReader("{\"id\":1}\n{\n"), Format: items.JSONL,
		Select: &items.Selection{Max: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // it was only read
	if _, err := r.Next(); nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Errorf("%v", err)
	}
}
