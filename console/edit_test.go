package console_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/console/browser"
)

// withBody is a letter whose message has a body.
func withBody(n int, body string) nixie.Letter {
	l := letter(n, "orders", "validation: currency", "unknown currency", 0)
	l.Message.Body = []byte(body)
	return l
}

// edit sends the form of a letter as a browser does, and returns its status, page and address.
func (s *shop) edit(verb string, l nixie.ID, body string, more ...string) (status int, page, to string) {
	s.t.Helper()
	sum := sha256.Sum256([]byte(body))
	form := url.Values{"body": {strings.ReplaceAll(body, "\n", "\r\n")}, "reason": {"the currency is EUR"}, "revision": {"1"},
		"shown": {hex.EncodeToString(sum[:])}}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	answer, page := s.ask(http.MethodPost, "/letter/"+l.String()+"/edit/"+verb, as("ann"), form)
	return answer.StatusCode, page, answer.Header.Get("Location")
}

// inForm finds the text of a form.
var inForm = regexp.MustCompile(`(?s)<textarea [^>]*>\n(.*?)</textarea>`)

func textIn(page string) string {
	found := inForm.FindStringSubmatch(page)
	if found == nil {
		return "no form"
	}
	return html.UnescapeString(found[1])
}

func TestEditIsShownCheckedAndSent(t *testing.T) {
	t.Parallel()
	const before = "{\"order\": 12345678901234567890.10,\n \"currency\": \"EUX\", \"a\": [1, 2]}\n"
	const after = "{\"order\": 12345678901234567890.10,\n \"currency\": \"EUR\", \"a\": [1, 2]}\n"
	s := open(t, console.Options{Run: here}, withBody(1, before))
	l := id(3)
	s.has("/letter/"+l.String(), "/letter/"+l.String()+"/edit")
	if got := textIn(s.page(http.StatusOK, "/letter/"+l.String()+"/edit")); got != before {
		t.Errorf("the form has %q", got)
	}
	status, page, _ := s.edit("check", l, after)
	for _, want := range []string{`class="bad">− `, "EUX", `class="good">&#43; `, "12345678901234567890.10", "Redrive with this body"} {
		if status != http.StatusOK || !strings.Contains(page, want) {
			t.Errorf("status %d, does not say %q\n%s", status, want, page)
		}
	}
	if textIn(page) != after {
		t.Errorf("the form has %q", textIn(page))
	}
	status, page, to := s.edit("run", l, after)
	if status != http.StatusSeeOther {
		t.Fatalf("status %d\n%s", status, page)
	}
	s.has(to, "redrive of 1 letter", "the currency is EUR")
	m, err := s.office.Message(t.Context(), l.String())
	if err != nil || string(m.Body) != after || m.State != nixie.Queued {
		t.Errorf("the message is %s with %q (%v)", m.State, m.Body, err)
	}
	s.has("/audit", "edited: body sha256")
	s.has("/letter/"+l.String()+"/edit", "only letters that can be redriven are edited")
}

// What a form does not keep exactly, or must not show, has no form; and a post around it is
// refused.
func TestEditHasNoFormForWhatItWouldDestroy(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 256<<10)
	for what, body := range map[string]string{
		"mask of this console hides":     `{"card": "secret"}`,
		"its body is binary":             "\xff\xfe",
		"its body is binary: ":           "nul\x00",
		"has 256.0 KiB, and a form":      large + "x",
		"characters that no form shows":  "a\u202eb",
		"characters that no form shows:": "a\x1bb",
		"lines end in several ways":      "a\r\nb\nc",
		"characters that no form":        "a\rb",
	} {
		s := open(t, console.Options{Run: here, Mask: hides{}}, withBody(1, body))
		l := id(3)
		page := s.page(http.StatusOK, "/letter/"+l.String()+"/edit")
		if !strings.Contains(page, "There is no form for this letter") || !strings.Contains(page, what) || textIn(page) != "no form" {
			t.Errorf("%.20q: it does not say %q\n%.3000s", body, what, page)
		}
		for _, verb := range []string{"check", "run"} {
			if status, page, _ := s.edit(verb, l, `{"card": "***"}`); status != http.StatusConflict {
				t.Errorf("%.20q: %s has status %d\n%.3000s", body, verb, status, page)
			}
		}
		if m, err := s.office.Message(t.Context(), l.String()); err != nil || string(m.Body) != body || m.State != nixie.Dead {
			t.Errorf("%.20q: the message is %s with %.20q (%v)", body, m.State, m.Body, err)
		}
	}
	s := open(t, console.Options{Run: here}, withBody(1, large))
	if got := textIn(s.page(http.StatusOK, "/letter/"+id(3).String()+"/edit")); got != large {
		t.Errorf("a body of 256 KiB has the form %.40q", got)
	}
	if status, page, _ := s.edit("run", id(3), strings.Repeat("ü", 128<<10)); status != http.StatusSeeOther {
		t.Errorf("a body of 256 KiB, each byte escaped: status %d\n%.2000s", status, page)
	}
}

// A form that is refused is kept: nothing that a person wrote is lost, and nothing is changed.
func TestEditKeepsItsForm(t *testing.T) {
	t.Parallel()
	const before, after = `{"n": 1, "m": 2}`, `{"n": 7, "m": 2}`
	held := withBody(2, before)
	held.Redrivable = false
	s := open(t, console.Options{Run: here}, withBody(1, before), held)
	l := id(3)
	for _, tc := range []struct {
		want, body string
		more       []string
	}{
		{"is not any more, at line 2, character 6", "{\"n\": 7,\n\"m\": }", nil},
		{"is not any more", "", nil},
		{"is not any more", `{"n": 01}`, nil},
		{"othing differs", before, nil},
		{"Reason is empty", after, []string{"reason", " "}},
		{"was changed after its difference was shown", after, []string{"shown", "0"}},
		{"has changed since it was read", after, []string{"revision", "7"}},
		{"has 256.0 KiB, and a form holds", strings.Repeat("1", 256<<10+1), nil},
		{"reason", after, []string{"reason", strings.Repeat("x", nixie.MaxReason+1)}},
	} {
		status, page, _ := s.edit("run", l, tc.body, tc.more...)
		if status != http.StatusBadRequest || !strings.Contains(page, tc.want) || textIn(page) != tc.body {
			t.Errorf("%.40q: status %d, want %q\n%.4000s", tc.body, status, tc.want, page)
		}
	}
	status, page, _ := s.edit("run", id(5), after)
	if status != http.StatusBadRequest || !strings.Contains(page, "choose force") {
		t.Errorf("without force: status %d\n%s", status, page)
	}
	if status, page, _ = s.edit("run", id(5), after, "force", "yes"); status != http.StatusSeeOther {
		t.Errorf("with force: status %d\n%s", status, page)
	}
	if status, page, _ = s.edit("check", l, after, "revision", "x"); status != http.StatusBadRequest {
		t.Errorf("a revision that is none: status %d\n%s", status, page)
	}
	if status, page, _ = s.edit("check", l, strings.Repeat("ü", 1<<20)); status != http.StatusBadRequest ||
		!strings.Contains(page, "too large") {
		t.Errorf("a form of 6 MB: status %d\n%.2000s", status, page)
	}
	m, err := s.office.Message(t.Context(), l.String())
	if err != nil || string(m.Body) != before || m.State != nixie.Dead {
		t.Errorf("the message is %s with %q (%v)", m.State, m.Body, err)
	}
}

// While a form is open another person notes something on the letter: the text is kept, and can be
// sent once its person has seen what the letter says now.
func TestEditOfALetterThatChangedMeanwhile(t *testing.T) {
	t.Parallel()
	const before, after = `{"n": 1}`, `{"n": 2}`
	s := open(t, console.Options{Run: here}, withBody(1, before))
	l := id(3)
	tab := browser.For(t).Open(s.server.URL, browser.Look{NoScripts: true})
	defer tab.Close()
	tab.Go("/letter/"+l.String()+"/edit", http.StatusOK)
	tab.Click(`document.querySelector("textarea")`)
	for range len(before) {
		tab.Press(browser.KeyBack)
	}
	tab.Press(after)
	tab.Follow(browser.Text("button", "Show what differs"))
	tab.Wait(browser.Text(".difference", `"n": 2`))
	s.post("/change/run?verb=hold&id="+l.String(), url.Values{"reason": {"ask first"}})
	tab.Expect(http.StatusBadRequest)
	tab.Click(`document.querySelector("input[name=reason]")`)
	tab.Press("the currency is EUR")
	tab.Follow(browser.Text("button", "Redrive with this body"))
	tab.Wait(browser.Text(".fault", "has changed since it was read"))
	if got := browser.Ask[string](tab, `document.querySelector("textarea").value`); got != after {
		t.Errorf("the form has %q", got)
	}
	if why := browser.Ask[string](tab, `document.querySelector("input[name=reason]").value`); why != "the currency is EUR" {
		t.Errorf("the reason is %q", why)
	}
	tab.Click(`document.querySelector("input[name=force]")`)
	tab.Expect(http.StatusOK)
	tab.Follow(browser.Text("button", "Redrive with this body"))
	tab.Wait(browser.Text("h1", "redrive of 1 letter"))
	if m, err := s.office.Message(t.Context(), l.String()); err != nil || string(m.Body) != after {
		t.Errorf("the body is %q (%v)", m.Body, err)
	}
	clean(t, tab)
}

// Hostile texts in a body, a reason and all that the form has stay texts, and come back as they
// were.
func TestEditOfHostileTexts(t *testing.T) {
	t.Parallel()
	forms := 0
	for i, text := range markups() {
		s := open(t, console.Options{Run: here, Clock: func() time.Time { return noon }}, withBody(1, text))
		path := "/letter/" + id(3).String() + "/edit"
		page := s.page(http.StatusOK, path)
		if textIn(page) != "no form" {
			if forms++; textIn(page) != text {
				t.Errorf("%d: %.60q is in the form as %.60q", i, text, textIn(page))
			}
			_, page, _ = s.edit("check", id(3), strings.ReplaceAll(text, "\r", "")+"x", "reason", text)
		}
		if bytes.Contains([]byte(page), []byte("<"+canary)) {
			t.Errorf("%d: the page has it as markup:\n%s", i, page)
		}
	}
	t.Logf("%d of %d hostile texts have a form", forms, len(markups()))
}
