package console_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/console/browser"
	"github.com/nixie-go/nixie/internal/proof"
	"github.com/nixie-go/nixie/office"
)

// name makes a text that may be a name: short, valid and without control characters.
func name(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	for len(text) > 250 {
		text = text[:250]
		text = strings.ToValidUTF8(text, "")
	}
	return text
}

// fields are all texts of a letter that a page shows, by how they are set.
var fields = []func(l *nixie.Letter, f *nixie.Failure, text string){
	func(l *nixie.Letter, _ *nixie.Failure, text string) { l.Message.Queue = "q" + name(text) },
	func(l *nixie.Letter, _ *nixie.Failure, text string) { l.Message.Type = name(text) },
	func(l *nixie.Letter, _ *nixie.Failure, text string) { l.Message.Key = name(text) },
	func(l *nixie.Letter, _ *nixie.Failure, text string) { l.Message.Stream = name(text) },
	func(l *nixie.Letter, _ *nixie.Failure, text string) { l.Message.Body = []byte(text) },
	func(l *nixie.Letter, _ *nixie.Failure, text string) {
		l.Message.Headers = []nixie.Header{{Name: "x" + name(text), Value: strings.ToValidUTF8(text, "")}}
	},
	func(l *nixie.Letter, _ *nixie.Failure, text string) {
		l.Message.Origin = &nixie.Origin{System: "kafka", Channel: name(text), MessageID: name(text)}
	},
	func(l *nixie.Letter, _ *nixie.Failure, text string) { l.Signature = "timeout: " + short(text) },
	func(l *nixie.Letter, _ *nixie.Failure, text string) { l.Rule = name(text) },
	func(l *nixie.Letter, _ *nixie.Failure, text string) { l.Note = short(text) },
	func(l *nixie.Letter, _ *nixie.Failure, text string) {
		l.Notes = []nixie.Note{{At: noon, By: name(text), Text: short(text)}}
	},
	func(_ *nixie.Letter, f *nixie.Failure, text string) { f.Text = valid(text) },
	func(_ *nixie.Letter, f *nixie.Failure, text string) { f.Stack = valid(text) },
	func(_ *nixie.Letter, f *nixie.Failure, text string) { f.Type = name(text) },
	func(_ *nixie.Letter, f *nixie.Failure, text string) { f.Worker = name(text) },
	func(_ *nixie.Letter, f *nixie.Failure, text string) { f.Node = name(text) },
	func(_ *nixie.Letter, f *nixie.Failure, text string) { f.Step = name(text) },
	func(_ *nixie.Letter, f *nixie.Failure, text string) { f.LogLocation = name(text) },
	func(_ *nixie.Letter, f *nixie.Failure, text string) { f.Context = []string{short(text)} },
	func(_ *nixie.Letter, f *nixie.Failure, text string) {
		f.Attachments = []nixie.Attachment{{Name: "a" + name(text), Data: []byte(text)}}
	},
}

// valid is a text as a store keeps it.
func valid(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}

// short is a text of at most some hundred characters.
func short(text string) string {
	runes := []rune(valid(text))
	return string(runes[:min(len(runes), 200)])
}

// attacked are letters of which each has another hostile text in each of its fields. Together each
// field has each text.
func attacked(texts []string, by *rand.Rand) []nixie.Letter {
	orders := make([][]int, len(fields))
	for i := range orders {
		orders[i] = by.Perm(len(texts))
	}
	var list []nixie.Letter
	for i := range texts {
		l := letter(100+i, "q", "", "", time.Duration(i)*time.Minute)
		first := l.History[0]
		for j, set := range fields {
			set(&l, &first, texts[orders[j][i]])
		}
		second := first
		second.Attempt, second.Text = 2, first.Text+" again"
		l.History = []nixie.Failure{first, second}
		l.Message.Attempts, l.Message.Deliveries, l.Message.LastFailure = 2, 2, second.Text
		l.Fingerprint = fmt.Sprintf("v2-%d", i)
		list = append(list, l)
	}
	return list
}

// strange lists what a page has that none of ours has: what a text became that was taken as markup,
// or characters that change how others are read.
const strange = `(() => {
	const found = [];
	for (const e of document.querySelectorAll("*")) {
		for (const a of e.attributes)
			if (a.name.startsWith("on") || a.name === "style" ||
				(/^(href|src|action|formaction|data)$/.test(a.name) && !/^[/#?]/.test(a.value)))
				found.push(e.tagName + " " + a.name + "=" + a.value.slice(0, 80));
		if (/^(IFRAME|OBJECT|EMBED|BASE|STYLE|MATH|TEMPLATE|NIXIE-.*)$/i.test(e.tagName)) found.push(e.tagName);
		if (e.tagName === "SCRIPT" && e.textContent) found.push("script " + e.textContent.slice(0, 80));
	}
	const shown = document.documentElement.textContent + [...document.querySelectorAll("input")].map((e) => e.value).join("");
	const hidden = shown.match(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/);
	if (hidden) found.push("character " + hidden[0].codePointAt(0).toString(16));
	if (document.documentElement.scrollWidth > document.documentElement.clientWidth)
		found.push("it is " + document.documentElement.scrollWidth + " px wide");
	if (window.nixieShift > 0) found.push("its parts moved by " + window.nixieShift);
	return found;
})()`

// inspect notes what a page has that none of ours has.
func inspect(t *testing.T, tab *browser.Tab, path string) {
	t.Helper()
	for _, found := range browser.Ask[[]string](tab, strange) {
		t.Errorf("%s: %s", path, found)
	}
}

func TestHostileRun(t *testing.T) {
	t.Parallel()
	b := browser.For(t)
	proof.Run(t, "console-hostile", func(t *testing.T, seed uint64) int {
		by := rand.New(rand.NewPCG(seed, 0))
		texts := markups()
		s := besieged(t, attacked(texts, by))
		pages := crawl(t, s.server.Config.Handler, 9)
		for _, i := range by.Perm(len(texts))[:30] {
			pages = append(pages, asked(texts[i], i))
		}
		tab := b.Open(s.server.URL, browser.Look{})
		defer tab.Close()
		for _, path := range pages {
			tab.Go(path, 0)
			inspect(t, tab, path)
		}
		seen := tab.Seen()
		for _, found := range seen.Findings {
			t.Error(found)
		}
		t.Logf("%d pages of %d kinds, %d hostile values in %d fields and %d parameters, %d requests, %d findings",
			len(pages), len(console.Patterns()), len(texts), len(fields), parameters, seen.Requests, len(seen.Findings))
		return len(pages)
	})
}

// parameters is the number of addresses that take a text.
const parameters = 7

// asked is the address of a page that is asked for with a hostile text.
func asked(text string, n int) string {
	q, in := url.QueryEscape(text), url.PathEscape("x"+text)
	return []string{
		"/letters?filter=" + q, "/groups?filter=text:" + q, "/redrive?filter=" + q + "&max=" + q, "/audit?queue=" + q + "&actor=" + q,
		"/queue?name=" + q, "/letter/" + in, "/" + in,
	}[n%parameters]
}

// besieged is a console with hostile letters, a letter as large as it may be, 10,000 queues with
// long names, and operations with hostile reasons.
func besieged(t *testing.T, letters []nixie.Letter) *shop {
	t.Helper()
	large := letter(90, "large", "timeout: "+strings.Repeat("𝕏", 60), strings.Repeat("𝕏", nixie.MaxFailureText/4), 0)
	large.Message.Body = []byte(strings.Repeat("<b>", nixie.MaxBody/3))
	s := open(t, console.Options{Run: here, Banner: markups()[0]}, append(letters, large)...)
	long := strings.Repeat("W", 200)
	for i := range 10_000 {
		if _, err := s.store.Enqueue(t.Context(), nixie.Message{Queue: fmt.Sprintf("%s-%05d", long, i), Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	s.order("ordered")
	for _, l := range letters {
		m := nixie.Message{Queue: "ordered", Stream: "s" + l.Message.Stream[:min(len(l.Message.Stream), 200)], Type: l.Message.Type}
		m.Stream = name(m.Stream)
		if _, err := s.store.Enqueue(t.Context(), m, m); err != nil {
			t.Fatal(err)
		}
	}
	s.work("ordered", nixie.Permanent(errors.New(letters[0].Note)))
	s.work("ordered", errors.New(letters[1].Note))
	for i := 0; i < len(letters); i += 5 {
		if reason := name(letters[i].Note); strings.TrimSpace(reason) != "" {
			s.post("/redrive/run?filter="+url.QueryEscape(office.FilterText(nixie.Filter{Queues: []string{letters[i].Message.Queue}})),
				url.Values{"reason": {reason}})
		}
	}
	return s
}

func TestLetterThatIsPurgedWhileItIsOpen(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{Run: here}, healthy()...)
	tab := browser.For(t).Open(s.server.URL, browser.Look{})
	tab.Go("/letter/"+id(3).String(), http.StatusOK)
	s.purge(id(3))
	tab.Expect(http.StatusNotFound)
	tab.Follow(browser.Text("a", "Redrive…"))
	tab.Wait(browser.Text("main", "Nothing would go"))
	tab.Go("/letter/"+id(3).String(), http.StatusNotFound)
	tab.Wait(browser.Text("h1", "Not found"))
	clean(t, tab)
}

func TestFaultOfAFilterIsShownWhereItIs(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{}, healthy()...)
	tab := browser.For(t).Open(s.server.URL, browser.Look{})
	tab.Go("/letters", http.StatusOK)
	tab.Click("document.querySelector('main input[type=search]')")
	tab.Press("queue:orders raeson:timeout")
	tab.Submit(browser.KeyEnter)
	tab.Wait(browser.Text(".fault", "raeson"))
	under := browser.Ask[string](tab, `(() => {
		const text = document.querySelector(".fault pre").firstChild, lines = text.data.split("\n");
		const range = document.createRange();
		const at = (i) => { range.setStart(text, i); range.setEnd(text, i + 1); return range.getBoundingClientRect(); };
		const caret = at(text.data.indexOf("^"));
		for (let i = 0; i < lines[0].length; i++) if (Math.abs(at(i).x - caret.x) < 1) return lines[0].slice(i);
		return "nothing";
	})()`)
	if under != "raeson:timeout" {
		t.Errorf("the caret is under %q", under)
	}
	clean(t, tab)
}

func TestPageComesBackWithItsStore(t *testing.T) {
	t.Parallel()
	away, back := open(t, console.Options{}, healthy()...), open(t, console.Options{}, healthy()...)
	if err := away.store.Close(); err != nil {
		t.Fatal(err)
	}
	var is atomic.Pointer[http.Handler]
	is.Store(&away.server.Config.Handler)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*is.Load()).ServeHTTP(w, r) }))
	defer server.Close()
	tab := browser.For(t).Open(server.URL, browser.Look{})
	tab.Go("/queues", http.StatusServiceUnavailable)
	tab.Wait(browser.Text("main", "The store does not answer"))
	is.Store(&back.server.Config.Handler)
	tab.Wait(browser.Text("td a", "orders"))
	clean(t, tab)
}

// clean fails the test if a tab did what no page may do.
func clean(t *testing.T, tab *browser.Tab) {
	t.Helper()
	for _, found := range tab.Seen().Findings {
		t.Error(found)
	}
}
