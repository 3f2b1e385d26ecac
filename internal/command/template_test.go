package command

import (
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
)

func TestTemplate(t *testing.T) {
	item := map[string]string{"": "ITEM", "id": "{name}", "name": "N", "a.b[0]": "deep", "0": "first", "größe-2": "G"}
	for _, c := range []struct{ arg, want, fail string }{
		{arg: "plain", want: "plain"},
		{arg: "", want: ""},
		{arg: "{}", want: "ITEM"},
		{arg: "{id}", want: "{name}"}, // not read again
		{arg: "{a.b[0]}", want: "deep"},
		{arg: "{0}", want: "first"},
		{arg: "{größe-2}", want: "G"},
		{arg: "{{}}", want: "{}"},
		{arg: "{{id}}", want: "{id}"},
		{arg: "{{{id}}}", want: "{{id}}"},
		{arg: "{{0}}", want: "{0}"},
		{arg: "a{{id}}b{{}}", want: "a{id}b{}"},
		{arg: "{{.Name}}", want: "{{.Name}}"},
		{arg: "{print $1}", want: "{print $1}"},
		{arg: "echo ${HOME} ${id}", want: "echo ${HOME} ${id}"},
		{arg: "${id}", want: "${id}"},
		{arg: "[0-9]{4}", want: "[0-9]{4}"},
		{arg: "{a,b}", want: "{a,b}"},
		{arg: `{"id":1}`, want: `{"id":1}`},
		{arg: "f() { :; }", want: "f() { :; }"},
		{arg: "{-x}", want: "{-x}"},
		{arg: "{a.}", want: "{a.}"},
		{arg: "{a[]}", want: "{a[]}"},
		{arg: "{a[x]}", want: "{a[x]}"},
		{arg: "{", want: "{"},
		{arg: "}{", want: "}{"},
		{arg: "{id", want: "{id"},
		{arg: "--id={id}", fail: "inside a longer argument"},
		{arg: "{id} ", fail: "inside a longer argument"},
		{arg: "{id}{id}", fail: "inside a longer argument"},
		{arg: "a/{}", fail: "inside a longer argument"},
		{arg: "{{id}", fail: "inside a longer argument"},
		{arg: "{gone}", fail: `item has no field "gone" for argument 1: add it to the item, or write {{gone}} for the text {gone}`},
	} {
		args, err := expand([]string{"prog", c.arg}, item)
		switch {
		case c.fail == "" && (err != nil || !slices.Equal(args, []string{"prog", c.want})):
			t.Errorf("%q: got %q, %v; want %q", c.arg, args, err, c.want)
		case c.fail != "" && (err == nil || !strings.Contains(err.Error(), c.fail)):
			t.Errorf("%q: got %q, %v; want an error with %q", c.arg, args, err, c.fail)
		}
	}
	for _, args := range [][]string{nil, {""}, {"{id}"}, {"{}"}, {"./{id}"}} {
		if _, err := parseTemplate(args, false); nixie.CodeOf(err) != nixie.CodeInvalid {
			t.Errorf("%q: got %v", args, err)
		}
	}
	_, err := expand([]string{"prog", "{gone}"}, item)
	if o := nixie.OutcomeOf(err); o.Class != nixie.ClassPermanent || o.Reason != nixie.ReasonValidation {
		t.Errorf("missing field: %+v", o)
	}
	template, err := parseTemplate([]string{"prog", "{b}", "{}", "x", "{a}", "{b}"}, false)
	if got := template.Paths(); err != nil || !slices.Equal(got, []string{"b", "", "a"}) {
		t.Errorf("paths %q, %v", got, err)
	}
}

func expand(args []string, item map[string]string) ([]string, error) {
	template, err := parseTemplate(args, false)
	if err != nil {
		return nil, err
	}
	return template.Expand(func(path string) (string, bool) { v, ok := item[path]; return v, ok })
}

// A value never changes another argument. An argument without braces stays as it is, and every
// placeholder can be escaped.
func FuzzTemplate(f *testing.F) {
	for _, arg := range []string{"{id}", "{{id}}", "a{b}c", "${x}", "{}", "{a.b[0]}", "}}{{", "\xff{", strings.Repeat("\x90", 70) + "{}"} {
		f.Add(arg, "{id}")
	}
	f.Fuzz(func(t *testing.T, arg, value string) {
		template, err := parseTemplate([]string{"prog", arg, "{id}"}, false)
		if err != nil {
			return
		}
		args, err := template.Expand(func(string) (string, bool) { return value, true })
		if err != nil || len(args) != 3 || args[0] != "prog" || args[2] != value {
			t.Fatalf("%q: got %q, %v", arg, args, err)
		}
		if !strings.Contains(arg, "{") && args[1] != arg {
			t.Errorf("%q became %q", arg, args[1])
		}
		// An escaped placeholder expands to the text of the placeholder.
		if path, hole := placeholder(arg); hole {
			escaped, err := parseTemplate([]string{"prog", "{" + arg + "}"}, false)
			if err != nil || !slices.Equal(escaped.args[1].pieces, []piece{{text: arg}}) {
				t.Errorf("escaped {%s}: %+v, %v", path, escaped, err)
			}
		}
	})
}
