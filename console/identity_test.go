package console_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/console/browser"
	"github.com/nixie-go/nixie/office"
)

// byHeader knows three persons: ann and bob may act, ray may look. All others are none.
func byHeader(r *http.Request) (string, console.Rights) {
	switch name := r.Header.Get("User"); name {
	case "ann", "bob", "a\x1bn", strings.Repeat("x", 1000), office.System, " ":
		return name, console.Act
	case "ray":
		return name, console.Read
	case "odd":
		return name, console.Rights(7)
	case "":
		return "", console.Act
	}
	return "eve", console.None
}

func as(name string) func(*http.Request) { return header("User", name) }

// as is a client of a console for which it says who it is.
func (s *shop) as(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("User", name)
		s.server.Config.Handler.ServeHTTP(w, r)
	})
}

// audited counts the entries of the audit.
func (s *shop) audited() (n int, actors map[string]bool) {
	s.t.Helper()
	actors = map[string]bool{}
	for e, err := range s.office.AllAudit(s.t.Context(), office.AuditFilter{}) {
		if err != nil {
			s.t.Fatal(err)
		}
		actors[e.Actor] = true
		n++
	}
	return n, actors
}

// What each of the rights may do, on each page, and with each POST of each page that there is.
func TestIdentityRightsByRoute(t *testing.T) {
	t.Parallel()
	s := furnishedWith(t, console.Options{Identity: byHeader})
	operations, _, err := s.office.Operations(t.Context(), office.Page{Limit: 1})
	if err != nil || len(operations) == 0 {
		t.Fatal(len(operations), err)
	}
	ids := map[string]string{"letter": id(3).String(), "message": id(2).String(), "operation": operations[0].ID.String()}
	before, _ := s.audited()
	posts := console.Posts()
	for _, pattern := range posts {
		kind, _, _ := strings.Cut(pattern, "/")
		path := "/" + strings.ReplaceAll(pattern, "{id}", ids[kind])
		for _, name := range []string{"", "eve", "ray", "odd", "a\x1bn", office.System, " ", strings.Repeat("x", 1000)} {
			who := func(r *http.Request) { r.Header["User"] = []string{name} }
			if strings.ContainsRune(name, 0x1b) {
				continue // no client sends it; see TestNamesOfPersons
			}
			answer, body := s.ask(http.MethodPost, path, who, url.Values{"reason": {"mine"}, "id": {ids[kind]}})
			if answer.StatusCode != http.StatusForbidden {
				t.Errorf("POST %s as %.20q: status %d, want 403\n%s", path, name, answer.StatusCode, body)
			}
		}
		answer, body := s.ask(http.MethodPost, path, as("ann"), url.Values{})
		if answer.StatusCode == http.StatusForbidden || answer.StatusCode >= http.StatusInternalServerError {
			t.Errorf("POST %s as one who may: status %d\n%s", path, answer.StatusCode, body)
		}
	}
	if after, actors := s.audited(); after != before && (actors["ray"] || actors["eve"]) {
		t.Errorf("%d entries of the audit became %d: %v", before, after, actors)
	}
	changing := map[string]int{}
	for name, rights := range map[string]console.Rights{"ann": console.Act, "ray": console.Read} {
		for _, found := range browser.Crawl(s.as(name), 1) {
			_, body := s.ask(http.MethodGet, found.Path, as(name), nil)
			forms := strings.Count(body, `method="post"`)
			if changing[name] += forms; rights == console.Read && (forms > 0 || strings.Contains(body, "formaction")) {
				t.Errorf("%s has a form for one who may only look:\n%s", found.Path, body)
			}
			for _, none := range []string{"", "eve", "odd"} {
				answer, body := s.ask(http.MethodGet, found.Path, as(none), nil)
				if answer.StatusCode != http.StatusForbidden || strings.Contains(body, "order-1") {
					t.Errorf("GET %s as %q: status %d\n%s", found.Path, none, answer.StatusCode, body)
				}
			}
		}
	}
	if changing["ann"] < 10 {
		t.Errorf("%d forms for one who may act", changing["ann"])
	}
	t.Logf("%d POSTs by 8 names, %d forms for one who may act, %d for one who may look", len(posts), changing["ann"], changing["ray"])
}

// The audit names the person, also for what runs after the answer, and who resumes what another
// began.
func TestIdentityIsInTheAudit(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var later []func(context.Context)
	run := func(do func(context.Context)) {
		mu.Lock()
		defer mu.Unlock()
		later = append(later, do)
	}
	s := open(t, console.Options{Identity: byHeader, Run: run}, healthy()...)
	act := func(name, path string) string {
		t.Helper()
		answer, body := s.ask(http.MethodPost, path, as(name), url.Values{"reason": {"by " + name}})
		if answer.StatusCode != http.StatusSeeOther {
			t.Fatalf("%s: status %d\n%s", path, answer.StatusCode, body)
		}
		return answer.Header.Get("Location")
	}
	act("bob", "/queue/pause?name=mail")
	operation := act("ann", "/change/run?verb=hold&filter=queue:orders")
	if _, actors := s.audited(); !actors["bob"] {
		t.Errorf("the audit has %v", actors)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	later[0](stopped) // the program ended before a letter was moved
	act("bob", operation+"/resume")
	later[1](t.Context())
	by := map[string]int{}
	for e, err := range s.office.AllAudit(t.Context(), office.AuditFilter{Events: []office.Event{office.OnHold}}) {
		if err != nil {
			t.Fatal(err)
		}
		by[e.Actor]++
	}
	if by["bob"] != 2 || by["ann"] != 0 {
		t.Errorf("the letters were held by %v, and it was bob who resumed", by)
	}
	act("ann", "/change/run?verb=note&filter=queue:mail")
	later[2](t.Context())
	l, err := s.office.Letter(t.Context(), "order-3")
	if err != nil || len(l.Notes) != 1 || l.Notes[0].By != "ann" {
		t.Errorf("the note is %+v (%v)", l.Notes, err)
	}
}

// Who watches a page gets what others with the same rights see: not the forms of those who may act,
// and the name of none.
func TestIdentityOfAPageThatIsShared(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{Identity: byHeader}, healthy()...)
	s.put(messageIn("orders"))
	for _, name := range []string{"ann", "ray", "bob", "ray"} {
		_, body := s.ask(http.MethodGet, "/queue?name=orders", func(r *http.Request) {
			r.Header.Set("User", name)
			r.Header.Set("Nixie-Live", "an older one")
		}, nil)
		if has := strings.Contains(body, `method="post"`); body != "" && has != (name != "ray") {
			t.Errorf("%s gets forms: %t\n%s", name, has, body)
		}
		for _, other := range []string{"ann", "bob", "ray"} {
			if strings.Contains(body, other+"<") || strings.Contains(body, " "+other) {
				t.Errorf("the page of %s names %s:\n%s", name, other, body)
			}
		}
		if body == "" {
			t.Errorf("%s got no page", name)
		}
	}
}
