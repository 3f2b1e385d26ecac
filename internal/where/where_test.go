package where_test

import (
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/where"
)

func letter(body string) *nixie.Letter {
	return &nixie.Letter{
		Status: nixie.StatusOpen, Reason: nixie.ReasonTimeout, Redrivable: true, Signature: "exit 4",
		Message: nixie.Message{Key: "a", Queue: "mapreduce/j", Type: "item", Body: []byte(body), Attempts: 2, LastFailure: "no route"},
		History: []nixie.Failure{{Type: "CommandFailed", Step: "shell: make"}},
	}
}

// An expression is true or false for every item.
func TestR54_Where(t *testing.T) {
	const body = `{"priority": 7, "text": "12", "name": "main.go", "tags": ["go", 5], "at": {"line": 3}, ` +
		`"none": null, "big": 1e3, "zero": "007", "yes": true, "a b": 1, "index": 0, "q": "say \"x\" \n"}`
	for text, want := range map[string]bool{
		`item.priority > 5`:               true,
		`item.priority == 7.0`:            true,
		`item.priority >= 8`:              false,
		`item.text > 5 && item.text < 13`: true, // of a CSV file
		`item.text == 12`:                 true,
		`item.text == "12"`:               true,
		`[item.priority] == [7.0]`:        true,
		`[item.text] == [12]`:             false, // inside, a text is no number
		`item.zero == 7`:                  false, // 007 is a name, not a number
		`item.name == "main.go"`:          true,
		`item.name != "main.go"`:          false,
		`item.name contains "main"`:       true,
		`item.name endsWith ".go" and item.name startsWith "m"`: true,
		`item.name > 5`:                              false,
		`item.tags contains "go"`:                    true,
		`5 in item.tags`:                             true,
		`item.tags[0] == "go" && item.tags[-1] == 5`: true,
		`item.tags[7] == nil`:                        true,
		`"go" in item.tags`:                          true,
		`item.at.line == 3`:                          true,
		`item?.at?.line == 3`:                        true,
		`item["at"]["line"] == 3`:                    true,
		`item.at.column > 1`:                         false, // nothing is there
		`item.no.such.thing == 1`:                    false,
		`item.no.such.thing != 1`:                    true,
		`!(item.no > 1)`:                             true,
		`item.none == nil`:                           true,
		`len(item.no) > 1`:                           false, // cannot be worked out
		`item.at`:                                    false, // neither true nor false
		`len(item.tags) == 2`:                        true,
		`item.tags contains 5`:                       true,
		`item.at contains "line"`:                    true,
		`item.priority in [1, 7.0, "x"]`:             true,
		`item.name in ["a", "b"] OR NOT (item.priority = 7)`: false,
		`item.priority = 7 AND item.name == 'main.go'`:       true,
		`not item.flag`:                                     true,
		`item.yes`:                                          true,
		`item.yes == true && !item.no`:                      true,
		`is_null(item.none) && is_null(item.no)`:            true,
		`is_not_null(item.at) && is_object(item.at)`:        true,
		`is_number(item.priority) && !is_number(item.text)`: true,
		`is_string(item.text) && is_array(item.tags)`:       true,
		`is_bool(item.yes)`:                                 true,
		`length(item.name) == 7 && length(item.tags, 2)`:    true,
		`length(item.no, 0)`:                                false,
		`contains(item.name, "in.g") && starts_with(item.name, "main") && ends_with(item.name, ".go")`: true,
		`matches(item.name, "^m.*\\.go$") && upper(item.name) == "MAIN.GO"`:                            true,
		`lower(item.priority) == nil`:                             true,
		`item.big == 1000 && item.priority > -1`:                  true,
		`item["a b"] == 1 && item.tags[item.index] == "go"`:       true,
		`item.q == "say \"x\" \n"`:                                true,
		`item.name matches "^ma.*go$"`:                            true,
		`failure_count < 3`:                                       true,
		`failure_count == 2 && reprocess_eligible`:                true,
		`error_signature == "exit 4" && reason == "timeout"`:      true,
		`error_type == "CommandFailed" || false`:                  true,
		`step_failed startsWith "shell:"`:                         true,
		`item.priority > 5 || item.no == 1 && item.priority == 0`: true, // && binds first
	} {
		e, err := where.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := e.Matches(letter(body)); got != want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
}

// A plain line has only the field line.
func TestLines(t *testing.T) {
	e, err := where.Parse(`item.line == "5"`)
	if err != nil {
		t.Fatal(err)
	}
	l := letter("5")
	l.Message.Type = "line"
	if !e.Matches(l) {
		t.Error("a line is not its text")
	}
	if l = letter("no json"); e.Matches(l) {
		t.Error("another text is")
	}
}

// An unreadable expression is refused with its position; it never matches all items.
func TestRefused(t *testing.T) {
	for text, says := range map[string]string{
		``:                        "at character 1: found the end, want a value",
		`item.priority >`:         "at character 16: found the end, want a value",
		`itme.priority > 5`:       "itme is not known: there are item.FIELD, class, error_message",
		`item.a > 5 7`:            "found 7, want the end",
		`item.a < item.b < 3`:     "found <, want the end",
		`item.a == "x`:            "the text has no end",
		`item.a matches item.b`:   "found item, want a pattern in quotes",
		`item.a matches "("`:      "is no regular expression",
		`matches(item.a)`:         ", want ,",
		`sum(item.a) > 1`:         "there is no function sum",
		`len(item.a, 2) == 1`:     "len has 2 arguments, wants 1",
		`item. == 1`:              "want the name of a field",
		`item[1 == 1`:             "found the end, want ]",
		`(item.a == 1`:            "found the end, want )",
		`item.a == - x`:           "is no number",
		`item.a & 1`:              "found &, want the end",
		strings.Repeat("(", 200):  "it nests deeper than 100",
		strings.Repeat("!", 200):  "it nests deeper than 100",
		strings.Repeat("a", 5000): "at most 4096",
		`[1, 2`:                   "found the end, want ]",
	} {
		_, err := where.Parse(text)
		if nixie.CodeOf(err) != nixie.CodeInvalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Missing names a field that no item has, because it is probably misspelt.
func TestMissing(t *testing.T) {
	e, err := where.Parse(`item.pirority > 5 || item.at.line > 1 || item.tags contains item.name || item.tags[0] == 1`)
	if err != nil {
		t.Fatal(err)
	}
	e.Matches(letter(`{"name": "x"}`))
	e.Matches(letter(`{"at": {"line": 1}}`))
	if names := strings.Join(e.Missing(), " "); names != "item.pirority item.tags" {
		t.Errorf("missing are %q", names)
	}
}

// Every text is refused as an expression, or has a value for every body.
func FuzzWhere(f *testing.F) {
	f.Add(`item.a > 5 && item.b contains "x"`, `{"a": 7, "b": "xy"}`)
	f.Add(`matches(item.tags, "x.?") || len(item.tags[-1]) > 2`, `{"tags": ["abc"]}`)
	f.Add(`item[item.a][0].c?.d != 5e1`, `{"a": "b"}`)
	f.Add(`!is_null(item) and "a" in [item, 'b', null]`, `[1]`)
	f.Fuzz(func(t *testing.T, text, body string) {
		e, err := where.Parse(text)
		if err != nil {
			if nixie.CodeOf(err) != nixie.CodeInvalid {
				t.Fatal(err)
			}
			return
		}
		e.Matches(letter(body))
		e.Missing()
	})
}
