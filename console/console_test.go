package console_test

import (
	"compress/gzip"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/office"
)

// update writes the golden pages again: go test ./console -run TestGolden -update
var update = flag.Bool("update", false, "write the golden files again")

// hashed is the part of the name of an asset that follows from its bytes.
var hashed = regexp.MustCompile(`-[0-9a-f]{12}\.`)

func TestGoldenPages(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{Prefix: "/ops", Title: "Shop", Banner: "A test."}, healthy()...)
	waits := messageIn("orders")
	waits.ID, waits.Key, waits.Delay, waits.Body = id(40), "order-20", time.Hour, []byte(`{"order":20}`)
	s.put(waits)
	for name, path := range map[string]string{
		"office": "/ops/", "groups": "/ops/groups", "group": "/ops" + pages()[2], "letter": "/ops" + pages()[6],
		"messages": "/ops/messages?stage=scheduled", "message": "/ops/message/" + id(40).String(),
		"edit":  "/ops/letter/" + id(3).String() + "/edit",
		"error": "/ops/letters?filter=queue:orders+raeson:timeout",
	} {
		got := hashed.ReplaceAllString(s.page(http.StatusOK, path), "-HASH.")
		file := filepath.Join("testdata", name+".html")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != got {
			t.Errorf("%s differs from %s (%v); it is now:\n%s", path, file, err, got)
		}
	}
}

// inline finds code and styles that the policy of content refuses.
var inline = regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script(?: [^>]*)?>[^<]|javascript:|(?:href|src)="(?:https?:)?//`)

func TestHeadersOfEveryPage(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{}, healthy()...)
	for _, path := range append(pages(), "/nothing", "/letter/unknown", "/assets/nothing") {
		answer, body := s.ask(http.MethodGet, path, nil, nil)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Referrer-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
		} {
			if got := answer.Header.Get(name); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		if csp := answer.Header.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") {
			t.Errorf("%s: the policy of content is %q", path, csp)
		}
		if found := inline.FindString(body); found != "" {
			t.Errorf("%s has %q", path, found)
		}
	}
}

func TestAssetsAreKeptForGood(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{})
	found := regexp.MustCompile(`/assets/[a-z]+-[0-9a-f]{12}\.(css|svg|js)`).FindAllString(s.page(http.StatusOK, "/"), -1)
	if len(found) < 2 {
		t.Fatalf("the page names %q", found)
	}
	for _, path := range found {
		answer, body := s.ask(http.MethodGet, path, nil, nil)
		if answer.StatusCode != http.StatusOK || body == "" || !strings.Contains(answer.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %s, %d bytes, %v", path, answer.Status, len(body), answer.Header)
		}
	}
	s.page(http.StatusNotFound, "/assets/console.css")
}

// A client that takes compressed answers gets the same page in fewer bytes.
func TestAnswersAreCompressed(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{}, healthy()...)
	plain := s.page(http.StatusOK, "/groups")
	answer, small := s.ask(http.MethodGet, "/groups", header("Accept-Encoding", "gzip"), nil)
	if got := answer.Header.Get("Content-Encoding"); got != "gzip" || len(small) >= len(plain)/2 {
		t.Fatalf("encoding is %q, and %d bytes are %d", got, len(plain), len(small))
	}
	r, err := gzip.NewReader(strings.NewReader(small))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(r)
	if err != nil || string(whole) != plain {
		t.Errorf("the page is not the same (%v):\n%s", err, whole)
	}
}

// A compressed page has up to 32 bytes of noise, another number of them for each text that a URL
// puts into it: its length does not tell how well a guess fits a letter.
func TestLengthsHaveNoise(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{}, healthy()...)
	noise := map[int]bool{}
	for guess := range 100 {
		_, body := s.ask(http.MethodGet, fmt.Sprintf("/letters?filter=text:guess%02d", guess), header("Accept-Encoding", "gzip"), nil)
		page, err := gzip.NewReader(strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		noise[len(page.Comment)] = true
	}
	if len(noise) < 16 || noise[0] {
		t.Errorf("100 pages have these bytes of noise: %v", noise)
	}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

func TestForeignRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{Hosts: []string{"ops.example"}}, healthy()...)
	for name, c := range map[string]struct {
		method string
		edit   func(*http.Request)
		status int
	}{
		"a post from another site":    {http.MethodPost, header("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		"a post from a sibling":       {http.MethodPost, header("Sec-Fetch-Site", "same-site"), http.StatusForbidden},
		"a post of another origin":    {http.MethodPost, header("Origin", "https://evil.example"), http.StatusForbidden},
		"a name from elsewhere":       {http.MethodGet, host("evil.example"), http.StatusMisdirectedRequest},
		"a name with our port":        {http.MethodGet, host("evil.example:8321"), http.StatusMisdirectedRequest},
		"a name that looks like ours": {http.MethodGet, host("localhost.evil.example"), http.StatusMisdirectedRequest},
		"a name like an address":      {http.MethodGet, host("127.0.0.1.evil.example"), http.StatusMisdirectedRequest},
		"another address":             {http.MethodGet, host("10.0.0.1"), http.StatusOK},
		"no name":                     {http.MethodGet, host(":80"), http.StatusMisdirectedRequest},
		"localhost":                   {http.MethodGet, host("LOCALHOST:8321"), http.StatusOK},
		"an address of this machine":  {http.MethodGet, host("[::1]:8321"), http.StatusOK},
		"a name that was given":       {http.MethodGet, host("ops.example"), http.StatusOK},
	} {
		answer, _ := s.ask(c.method, "/queues", c.edit, nil)
		if answer.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d", name, answer.StatusCode, c.status)
		}
	}
}

// markup leaves attributes, elements and addresses.
const markup = `"'><nixie-canary onload=x>&{{.}}javascript:\u202e` + "\u202e\x1b[2J"

func TestHostileTextsStayTexts(t *testing.T) {
	t.Parallel()
	evil := strings.ReplaceAll(markup, "\x1b", "") // names have no control characters
	l := letter(1, evil, "timeout: "+markup, markup, 0)
	f := &l.History[0]
	f.Type, f.Worker, f.Node, f.Step, f.LogLocation, f.Stack = markup, markup, markup, markup, markup, markup
	f.Context, f.Attachments = []string{markup}, []nixie.Attachment{{Name: markup, Data: []byte(markup)}}
	l.History = append(l.History, *f)
	l.Message.Type, l.Message.Key, l.Message.Stream, l.Message.Body = evil, evil, evil, []byte(markup)
	l.Message.Headers = []nixie.Header{{Name: evil, Value: markup}}
	l.Message.Origin = &nixie.Origin{System: "kafka", Channel: evil, MessageID: evil}
	l.Rule, l.Note, l.Notes = markup, markup, []nixie.Note{{At: noon, By: markup, Text: markup}}
	other := l
	other.ID, other.Message.ID, other.Message.Origin = id(21), id(20), nil
	other.DiedAt = noon.Add(-time.Minute)
	s := open(t, console.Options{Run: here}, l, other)
	if _, err := s.office.Pause(t.Context(), []string{evil}, markup); err != nil {
		t.Fatal(err)
	}
	chosen := url.QueryEscape(office.FilterText(nixie.Filter{Queues: []string{evil}}))
	operation := s.post("/redrive/run?filter="+chosen, url.Values{"reason": {markup}, "max": {"1"}})
	query := url.Values{
		"filter": {"text:" + markup}, "name": {evil}, "fingerprint": {l.Fingerprint}, "queue": {evil}, "actor": {evil},
	}
	pages := []string{
		"/", operation, "/operations", "/redrive?id=" + l.ID.String(), "/letter/" + l.ID.String() + "?a=1&b=2",
		"/letter/" + url.PathEscape(markup), "/" + url.PathEscape(markup),
	}
	for _, path := range []string{"/groups", "/group", "/letters", "/queues", "/queue", "/audit", "/redrive", "/policies", "/streams",
		"/retries"} {
		pages = append(pages, path+"?"+query.Encode())
	}
	for _, path := range pages {
		_, body := s.ask(http.MethodGet, path, nil, nil)
		if strings.Contains(body, "<nixie-canary") || strings.Contains(body, `"'>`) || strings.ContainsAny(body, "\u202e\x1b") {
			t.Errorf("%s has a text as it is:\n%s", path, body)
		}
		if !strings.Contains(body, "&lt;nixie-canary") {
			t.Errorf("%s does not show the texts", path)
		}
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	long := letter(4, "orders", "timeout: "+strings.Repeat("x", 10_000), strings.Repeat("y", 10_000), 0)
	s := open(t, console.Options{}, append(healthy(), long)...)
	for path, want := range map[string]string{
		"/letter/unknown": "no letter has the ID, message ID or key", "/group?fingerprint=none": "no letter of this group",
		"/queue?name=none": "no queue is called", "/nothing": "there is no page",
	} {
		if body := s.page(http.StatusNotFound, path); !strings.Contains(body, want) {
			t.Errorf("%s does not say %q:\n%s", path, want, body)
		}
	}
	body := s.page(http.StatusOK, "/letters?filter=queue:orders+raeson:timeout")
	if !strings.Contains(body, "queue:orders raeson:timeout\n             ^</pre>") {
		t.Errorf("the caret is not under the fault:\n%s", body)
	}
	if body = s.page(http.StatusOK, "/letters"); len(body) > 25_000 || !strings.Contains(body, "x…") {
		t.Errorf("a long text is not cut in a list: %d bytes", len(body))
	}
	s.page(http.StatusBadRequest, "/letters?cursor=none")
}

func TestIDsAndKeysAreFound(t *testing.T) {
	t.Parallel()
	again := letter(7, "mail", "timeout: smtp is slow", "smtp is slow", 0)
	again.Message.Key = "order-3"
	s := open(t, console.Options{}, append(healthy(), again)...)
	for _, text := range []string{id(3).String(), id(2).String(), "order-1"} { // of letter and message, and a key
		answer, body := s.ask(http.MethodGet, "/letters?filter="+text, nil, nil)
		if to := answer.Header.Get("Location"); to != "/letter/"+id(3).String() {
			t.Errorf("%s leads to %q:\n%s", text, to, body)
		}
	}
	body := s.page(http.StatusConflict, "/letters?filter=order-3")
	if !strings.Contains(body, id(7).String()) || !strings.Contains(body, id(15).String()) {
		t.Errorf("it does not name both letters:\n%s", body)
	}
	s.has("/letters?filter=order-99", "No letter")
	s.has("/letters?filter=reasn:order-99", "^</pre>")
}

func TestPurgedLetterIsGone(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{}, healthy()...)
	path := "/letter/" + id(3).String()
	s.page(http.StatusOK, path)
	s.purge(id(3))
	s.page(http.StatusNotFound, path)
}

func TestStoreThatIsAwayComesBack(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{}, healthy()...)
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/letters", "/letter/" + id(3).String()} {
		if body := s.page(http.StatusServiceUnavailable, path); !strings.Contains(body, `http-equiv="refresh"`) {
			t.Errorf("%s does not ask again:\n%s", path, body)
		}
	}
}
