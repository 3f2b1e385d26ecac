package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nixie-go/nixie"
	"pgregory.net/rapid"
)

// Single words that are values of the body make no groups. Words that say what to repair stay, and
// so do common words.
func TestWordsOfTheBody(t *testing.T) {
	long := `{"name":"` + strings.Repeat("x", maxBody) + `"}`
	many := `["` + strings.Repeat(`a","`, 1) + strings.Join(numbered("v", 1200), `","`) + `"]`
	for _, c := range []struct{ body, text, want string }{
		{`{"user":"alice"}`, "user alice not found", "user <field> not found"},
		{`{"user":"alice"}`, "user alice: not found", "user <field>: not found"},
		{`{"user":"alice"}`, "no such user: alice.", "no such user: <field>."},
		{`{"user":"alice"}`, "user 'alice' (alice), user=alice", "user <str> (<field>), user=<field>"},
		{`{"file":"a.c"}`, "a.c:12:5: error", "<field>:<n>: error"},
		{`{"file":"a.c"}`, "a.c:(.text+0x9): undefined", "<field>:(.text+<hex>): undefined"},
		{`{"file":"a_test.py"}`, "a_test.py::pay", "<field>:pay"},
		{`{"module":"Shop"}`, "Shop::Cart", "Shop::Cart"},
		{`{"user":"alice"}`, "malice of alices", "malice of alices"},
		{`{"deep":[{"er":{"user":"alice"}}]}`, "of alice", "of <field>"},
		{`{"id":4711}`, "item 4711 of 17", "item <n> of <n>"},
		{`{"user":"\u0061lice"}`, "of alice", "of <field>"},
		{`{"alice":1}`, "of alice", "of alice"},
		{`{"kind":"refund","status":"failed","user":"bob"}`, "refund failed for bob", "refund failed for <field>"},
		{`{"a":true,"b":null}`, "true is null", "true is null"},
		{`{"a":"al"}`, "of al", "of al"},
		{`{"a":"not found"}`, "it was not found", "it was not found"},
		{`{"field":"email"}`, "KeyError: 'email'", "KeyError: 'email'"},
		{`{"code":"503","port":5432}`, "status 503: 10.0.0.1:5432 refused", "status 503: <host>:5432 refused"},
		{`{"url":"https://pay.example.com/x"}`, "GET https://pay.example.com/x: refused", "GET https://pay.example.com: refused"},
		{`{"host":"10.0.0.1"}`, "dial 10.0.0.1:5432: refused", "dial <field>:5432: refused"},
		{`{"currency":"EUX"}`, `unknown currency "EUX"`, "unknown currency <str>"},
		{`alice`, "of alice", "of alice"},
		{`{"user":"alice"`, "of alice", "of <field>"},
		{`{"user":"alice",}`, "of alice", "of alice"},
		{long, "of x", "of x"},
		{many, "of v17 and vv", "of <field> and vv"},
		{"", "of alice", "of alice"},
	} {
		if got := string(appendNormal(nil, c.text, newFields([]byte(c.body)))); got != c.want {
			t.Errorf("%.60s of %q:\n got %q\nwant %q", c.text, c.body[:min(len(c.body), 60)], got, c.want)
		}
	}
	if words := commonWords(); len(words) > 300 || !words["timeout"] || !words["false"] {
		t.Errorf("%d common words", len(words))
	}
}

func numbered(name string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(name, i))
	}
	return list
}

// The memory of groups never gives a message the answer of another with the same text.
func TestMemoryKnowsBodies(t *testing.T) {
	p := mustNew(t, Config{MaxAttempts: 1})
	word := rapid.SampledFrom([]string{"alice", "bob", "order", "4711", "a.c", "503", "x y", "v1"})
	rapid.Check(t, func(t *rapid.T) {
		body := ""
		if rapid.Bool().Draw(t, "has a body") {
			body = fmt.Sprintf(`{"a":%q,"b":[%q]}`, word.Draw(t, "a"), word.Draw(t, "b"))
		}
		text := fmt.Sprintf("%s of '%s': %s failed", word.Draw(t, "first"), word.Draw(t, "second"), word.Draw(t, "third"))
		m := &nixie.Message{Body: []byte(body), Type: rapid.SampledFrom([]string{"", "pay"}).Draw(t, "type")}
		f := &nixie.Failure{Reason: nixie.ReasonHandler, Text: rapid.SampledFrom([]string{text, text, text, ""}).Draw(t, "text")}
		label, fingerprint := p.groups.of(f, m)
		wantLabel, want := SignatureOf(f, m)
		if label != wantLabel || fingerprint != want {
			t.Fatalf("%s of %s is in %s %q, not in %s %q", f.Text, body, fingerprint, label, want, wantLabel)
		}
	})
}

// A failure that says nothing is grouped by what failed.
func TestFailuresWithoutAnError(t *testing.T) {
	f := &nixie.Failure{Class: nixie.ClassUnknown, Reason: nixie.ReasonUnknown}
	label, pay := SignatureOf(f, &nixie.Message{Type: "pay"})
	_, mail := SignatureOf(f, &nixie.Message{Type: "mail"})
	if pay == mail || label != "unknown[of pay]" {
		t.Errorf("%s %s, mail %s", label, pay, mail)
	}
	f.Text = "alice"
	if label, _ := SignatureOf(f, &nixie.Message{Body: []byte(`{"user":"alice"}`)}); label != "unknown: alice" {
		t.Errorf("a text of one word became %s", label)
	}
	f.Text = "boom"
	if _, one := SignatureOf(f, &nixie.Message{Type: "pay"}); one != func() string { _, s := Signature(f); return s }() {
		t.Error("a failure with a text is grouped by the type of its message")
	}
}

// Looking for words takes linear time, also if all words of the text are in the body.
func TestWordsOfHugeBodies(t *testing.T) {
	words := strings.Join(numbered("v", 900), " ")
	body := `["` + strings.ReplaceAll(words, " ", `","`) + `"]`
	for _, text := range []string{strings.Repeat(words+" ", 200), strings.Repeat(`"v1" `, 1<<18), strings.Repeat("1 ", 1<<19)} {
		for _, body := range []string{body, strings.Repeat("[", 1<<15), strings.Repeat(`{"a":`, 1<<13), "[" + strings.Repeat(" ", 16<<20)} {
			label, _ := SignatureOf(&nixie.Failure{Text: text}, &nixie.Message{Body: []byte(body)})
			checkLabel(t, label)
		}
	}
}

// A body of any form makes a text no longer, and gives one answer.
func FuzzWordsOfTheBody(f *testing.F) {
	f.Add("user alice: 'not found'", `{"user":"alice"}`)
	f.Add(`a "b" c:1`, `["a","b",{"c":1.5e3}`)
	f.Add("x", "\xff\xfe{\x00")
	f.Fuzz(func(t *testing.T, text, body string) {
		failure, message := &nixie.Failure{Text: text}, &nixie.Message{Body: []byte(body)}
		label, first := SignatureOf(failure, message)
		checkLabel(t, label)
		if _, again := SignatureOf(failure, message); again != first {
			t.Fatal("the same failure gave another group")
		}
	})
}
