package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/console/browser"
)

// A tab finds each thing that no page may do, and nothing on a page that does none.
func TestFindings(t *testing.T) {
	t.Parallel()
	const other = "http://localhost:1/pixel.png"
	scripts := map[string]string{
		"/dialog":    `addEventListener("load", () => setTimeout(() => alert("hello")))`,
		"/exception": `setTimeout(() => { throw new Error("broken") })`,
		"/console":   `console.error("wrong")`,
		"/request":   `new Image().src = "` + other + `"`,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/policy" {
			w.Header().Set("Content-Security-Policy", "script-src 'none'")
		}
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprintf(w, `<!doctype html><link rel="icon" href="data:,"><title>page</title><main>%s</main><a href="/next">next</a>
			<input autofocus><script>document.title = "ran"; %s</script>`, r.URL.Path, scripts[r.URL.Path])
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	b := browser.For(t)
	for path, want := range map[string]string{
		"/": "", "/missing": "", "/dialog": "dialog: hello", "/exception": "exception: Uncaught", "/console": "console: [",
		"/request": "request: " + other, "/policy": "policy of content: script-src-elem",
	} {
		tab := b.Open(server.URL, browser.Look{})
		tab.Go(path, 0)
		heard := func(f string) bool { return strings.HasPrefix(f, want) }
		tick, late := time.NewTicker(10*time.Millisecond), time.After(browser.Patience)
		for want != "" && !slices.ContainsFunc(tab.Seen().Findings, heard) {
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("%s: %q is not found, but %q", path, want, tab.Seen().Findings)
			}
		}
		tick.Stop()
		if found := tab.Seen().Findings; want == "" && len(found) > 0 {
			t.Errorf("%s: %q", path, found)
		}
		tab.Close()
	}
	tab := b.Open(server.URL, browser.Look{})
	defer tab.Close()
	tab.Go("/missing", http.StatusNotFound)
	tab.Follow("document.querySelector('a')")
	if at := browser.Ask[string](tab, "document.querySelector('main').innerText"); at != "/next" {
		t.Errorf("the link leads to %s", at)
	}
	tab.Wait("document.querySelector('input:focus')") // a page sets its focus after it has loaded
	tab.Press("aZ/é" + browser.KeyTab)
	if typed := browser.Ask[string](tab, "document.querySelector('input').value"); typed != "aZ/é" {
		t.Errorf("typed %q", typed)
	}
	if seen := tab.Seen(); seen.Pages != 2 || seen.Requests != 2 {
		t.Errorf("%+v", seen)
	}
}
