package items_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/internal/proof"
)

// A number of any size is told from its neighbour where a list is ordered, chosen or looked into.
func TestExactNumbers(t *testing.T) {
	for _, n := range proof.Numbers() {
		jsonl := fmt.Sprintf(`{"id":"c","v":%s}
{"id":"a","v":%s}
{"id":"b","v": %s}
`, n.Next, n.Text, n.Same)
		csv := fmt.Sprintf("id,v\nc,%s\na,%s\nb,%s\n", n.Next, n.Text, n.Same)
		nested := strings.NewReplacer(`"v":`, `"v":[{"w": `, "}\n", "}]}\n").Replace(jsonl)
		for _, spot := range []struct {
			name, list, want string
			format           items.Format
			by               items.Selection
		}{
			{"--sort-by", jsonl, "a b c", items.JSONL, items.Selection{Sort: sorted(t, "v")}},
			{"--sort-by DESC", jsonl, "c a b", items.JSONL, items.Selection{Sort: sorted(t, "v DESC")}},
			{"--sort-by of CSV", csv, "a b c", items.CSV, items.Selection{Sort: sorted(t, "v")}},
			{"--distinct", jsonl, "c a", items.JSONL, items.Selection{Distinct: "v"}},
			{"--distinct, in a list", nested, "c a", items.JSONL, items.Selection{Distinct: "v"}},
		} {
			if have := chosen(t, spot.list, spot.format, spot.by); have != spot.want {
				t.Errorf("%s, %s: %s, want %s", spot.name, n.Name, have, spot.want)
			}
			t.Logf("%-22s %-14s exact", spot.name, n.Name)
		}
		for _, spot := range []struct {
			name, list string
			open       items.Options
		}{
			{"{field}", jsonl, items.Options{Format: items.JSONL}},
			{"JSON path", `{"all": [{"v": ` + n.Next + `}, {"v": ` + n.Text + `}]}`, items.Options{JSONPath: "$.all"}},
		} {
			spot.open.Path, spot.open.Stdin = "-", strings.NewReader(spot.list)
			if have := values(t, spot.open, "v"); !strings.Contains(have, " "+n.Text+" ") || !strings.Contains(have, " "+n.Next+" ") {
				t.Errorf("%s, %s: %.200s", spot.name, n.Name, have)
			}
			t.Logf("%-22s %-14s as written", spot.name, n.Name)
		}
	}
}

// values returns a field of all items, with a blank around each.
func values(t *testing.T, from items.Options, field string) string {
	t.Helper()
	r, err := items.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // it was only read
	all := " "
	for {
		item, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		value, _ := item.Field(field)
		all += value + " "
	}
}

// A CSV file has numbers as people write them; a name that looks like one is a text. An exponent
// beyond the limit makes a text of a number.
func TestExactCells(t *testing.T) {
	const list = "id,v\na,+10\nb,007\nc,9.\nd,.5\ne,1e400\nf,-0\ng,1e9999999999999999999\nh,0x10\ni,1_000\nj,-\nk,\"\"\n"
	if have := chosen(t, list, items.CSV, items.Selection{Sort: sorted(t, "v")}); have != "f d b c a e k j h i g" {
		t.Error(have)
	}
}

// Value takes what is one value of JSON, and nothing else.
func TestValue(t *testing.T) {
	for text, want := range map[string]string{
		`[1.10, -0, 1e400, "a\u0041", true, false, null, {"a": 1, "a": 2}]`: `[1.10 -0 1e400 aA true false <nil> map[a:2]]`,
		" 7 ": "7", `""`: "", "": "none", "1 2": "none", "[1": "none", "{1:2}": "none", "01": "none",
		"[1]]": "none", "nul": "none",
	} {
		v, ok := items.Value([]byte(text))
		have := fmt.Sprint(v)
		if !ok {
			have = "none"
		}
		if have != want {
			t.Errorf("%s is %s, want %s", text, have, want)
		}
	}
}

// What a program rounded that computes with float64 is found; what it changed is not.
func TestRounded(t *testing.T) {
	for _, tc := range []struct{ before, after, was, is string }{
		{`{"a": 1, "n": [{"v": 9007199254740993}]}`, `{"a":2,"n":[{"v":9007199254740992}]}`, "9007199254740993", "9007199254740992"},
		{`[1e400]`, `[1.7976931348623157e+308]`, "1e400", "1.7976931348623157e+308"},
		{`3.14159265358979323846`, `3.141592653589793`, "3.14159265358979323846", "3.141592653589793"},
		{`{"v": 9007199254740992, "w": 1.10, "z": -0}`, `{"v": 9007199254740992.0, "w": 1.1, "z": 0}`, "", ""},
		{`{"v": 9007199254740993}`, `{"v": 9007199254740995, "w": 9007199254740992}`, "", ""},
		{`{"v": 9007199254740993}`, `{"v": "9007199254740992"}`, "", ""},
		{`{"v": 9007199254740993}`, `not JSON`, "", ""},
		{`[9007199254740993]`, `[]`, "", ""},
	} {
		if was, is := items.Rounded([]byte(tc.before), []byte(tc.after)); was != tc.was || is != tc.is {
			t.Errorf("%s, %s: %q, %q", tc.before, tc.after, was, is)
		}
	}
}
