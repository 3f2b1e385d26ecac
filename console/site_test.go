package console_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/console"
)

// reference is the address of another page of the console.
var reference = regexp.MustCompile(`<a [^>]*href="(/[^"]*)`)

// crawl follows the links of a console from its first page, and returns the addresses of its pages,
// at most some of each kind. Each kind of page has to be among them, so that one that is added is
// in every suite, and no page is without a link to it. Downloads are left out.
func crawl(t testing.TB, handler http.Handler, most int) []string {
	t.Helper()
	kinds := http.NewServeMux()
	missing := console.Patterns()
	for _, pattern := range missing {
		kinds.HandleFunc("/"+pattern, func(http.ResponseWriter, *http.Request) {})
	}
	var pages, queue []string
	known, seen := map[string]bool{"/": true}, map[string]int{}
	for queue = append(queue, "/"); len(queue) > 0; queue = queue[1:] {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, queue[0], nil)
		_, kind := kinds.Handler(r)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		missing = slices.DeleteFunc(missing, func(p string) bool { return "/"+p == kind })
		if w.Code != http.StatusOK {
			t.Errorf("%s has status %d", queue[0], w.Code)
		}
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			continue
		}
		pages = append(pages, queue[0])
		for _, found := range reference.FindAllStringSubmatch(w.Body.String(), -1) {
			to, _, _ := strings.Cut(html.UnescapeString(found[1]), "#")
			_, kind := kinds.Handler(httptest.NewRequestWithContext(t.Context(), http.MethodGet, to, nil))
			if !known[to] && seen[kind] < most {
				known[to] = true
				seen[kind]++
				queue = append(queue, to)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("no link leads to these pages: %q", missing)
	}
	return pages
}
