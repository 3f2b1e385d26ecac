package console_test

import (
	"bytes"
	"encoding/json"
	"html"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/console/browser"
)

// sayings are bodies that a tree is tempted to say otherwise.
var sayings = map[string]string{
	"markup":                   `{"to": "Rüdiger & Söhne <b>", "quotes": "\"'` + "`" + `"}`,
	"escapes":                  `{"a": "R\u00fcdiger \u0026 \/ \t\n\u0001 \u2028"}`,
	"separators":               "{\"a\": \"line\u2028separator\u2029paragraph\"}",
	"half a pair":              `{"a": "\ud83d", "b": "\ude00\ud83d\ude00"}`,
	"names":                    `{"": 1, "a\nb": 2, "a\"b": {"<i>": 3}, "A&B": [4]}`,
	"twice the same name":      `{"a": 1, "a": {"b": 2, "b": 3}, "a": 1}`,
	"numbers":                  `[-0, 1.0, 1E400, 12345678901234567890.10, 1e-7, 0.10]`,
	"words and nothing":        `{"a": null, "b": true, "c": {}, "d": [], "e": "", "f": [[], {}, [{}]]}`,
	"spaces":                   `{"a": "two  spaces, and one at the end "}`,
	"brackets in texts":        `{"a": "}],:{[\\", "b": ["\\\"", "]"]}`,
	"signs that are invisible": "{\"a\": \"\u0085\u007f\", \"b\": \"\u202egnp.exe\u2066\"}",
}

var tags = regexp.MustCompile(`<[^>]*>`)

// treeText returns the text of the tree of a page.
func treeText(t *testing.T, page string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, `<div class="tree">`)
	tree, _, ended := strings.Cut(rest, "</div>")
	if !found || !ended {
		t.Fatalf("it has no tree:\n%s", page)
	}
	return html.UnescapeString(tags.ReplaceAllString(tree, ""))
}

// The text of a tree is the body, token by token.
func TestTreeSaysWhatTheBodySays(t *testing.T) {
	t.Parallel()
	var list []nixie.Letter
	names := map[string]nixie.ID{}
	for name, body := range sayings {
		l := letter(1+len(list), "orders", "timeout: slow", "slow", 0)
		l.Message.Body = []byte(body)
		list, names[name] = append(list, l), l.ID
	}
	s := open(t, console.Options{}, list...)
	for name, body := range sayings {
		var want, got bytes.Buffer
		says := treeText(t, s.page(http.StatusOK, "/letter/"+names[name].String()+"?as=tree"))
		if err := json.Compact(&got, []byte(says)); err != nil {
			t.Errorf("%s: the tree is no JSON: %v\n%s", name, err, says)
			continue
		}
		if name == "signs that are invisible" { // they are shown as what they are
			var a, b any
			if json.Unmarshal([]byte(body), &a) != nil || json.Unmarshal(got.Bytes(), &b) != nil || !reflect.DeepEqual(a, b) {
				t.Errorf("%s: %s became %s", name, body, &got)
			}
			continue
		}
		if err := json.Compact(&want, []byte(body)); err != nil {
			t.Fatal(name, err)
		}
		if got.String() != want.String() {
			t.Errorf("%s: %s became %s", name, &want, &got)
		}
	}
}

// A body that is not UTF-8 is no JSON, and no form but that of its bytes shows it as it is. One
// that is too long is cut between two characters.
func TestBodyThatIsNoText(t *testing.T) {
	t.Parallel()
	invalid, binary, long := letter(1, "orders", "a", "a", 0), letter(2, "orders", "b", "b", 0), letter(3, "orders", "c", "c", 0)
	invalid.Message.Body = []byte("{\"a\": \"\xff\"}")
	binary.Message.Body = bytes.Repeat([]byte{0xff, 0}, 70<<10)
	long.Message.Body = []byte("x" + strings.Repeat("ü", 40<<10))
	s := open(t, console.Options{}, invalid, binary, long)
	for _, as := range []string{"", "?as=tree", "?as=json", "?as=raw"} {
		s.has("/letter/"+invalid.ID.String()+as, "7b 22 61 22 3a 20 22 ff", `aria-current="true">hex`)
		s.has("/letter/"+binary.ID.String()+as, "ff 00 ff 00", `aria-current="true">hex`)
		if page := s.page(http.StatusOK, "/letter/"+long.ID.String()+as); strings.Contains(page, "\ufffd") {
			t.Errorf("%s: a character is cut in two", as)
		}
	}
}

// What is copied from the page is the body, in each of its forms.
func TestCopyOfABody(t *testing.T) {
	t.Parallel()
	b := browser.For(t)
	l := letter(1, "orders", "timeout: slow", "slow", 0)
	l.Message.Body = []byte("\n" + `{"to": "Rüdiger & Söhne  <b>", "lines": ["a\nb", 1.0, {}], "": {"deep": {"er": {"x": null}}}}`)
	s := open(t, console.Options{}, l)
	tab := b.Open(s.server.URL, browser.Look{})
	defer tab.Close()
	for as, exact := range map[string]bool{"tree": false, "json": false, "raw": true} {
		tab.Go("/letter/"+l.ID.String()+"?as="+as, http.StatusOK)
		copied := browser.Ask[string](tab, `(() => {
			for (const d of document.querySelectorAll(".tree details")) d.open = true;
			getSelection().selectAllChildren(document.querySelector(".tree, pre.body"));
			return getSelection().toString();
		})()`)
		var want, got bytes.Buffer
		if err := json.Compact(&got, []byte(copied)); err != nil {
			t.Errorf("a copy of %s is no JSON: %v\n%s", as, err, copied)
			continue
		}
		if err := json.Compact(&want, l.Message.Body); err != nil {
			t.Fatal(err)
		}
		if got.String() != want.String() || exact && copied != string(l.Message.Body) {
			t.Errorf("a copy of %s is %q", as, copied)
		}
	}
}
