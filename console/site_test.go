package console_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/nixie-go/nixie/console"
	"github.com/nixie-go/nixie/console/browser"
)

// crawl returns the addresses of the pages of a console, at most some of each kind. Each kind of
// page has to be among them, so that one that is added is in every suite, and no page is without a
// link to it.
func crawl(t testing.TB, handler http.Handler, most int) (pages []string) {
	t.Helper()
	kinds, missing := http.NewServeMux(), console.Patterns()
	for _, pattern := range missing {
		kinds.HandleFunc("/"+pattern, func(http.ResponseWriter, *http.Request) {})
	}
	for _, found := range browser.Crawl(handler, most) {
		_, kind := kinds.Handler(httptest.NewRequestWithContext(t.Context(), http.MethodGet, found.Path, nil))
		missing = slices.DeleteFunc(missing, func(p string) bool { return "/"+p == kind })
		if found.Status != http.StatusOK {
			t.Errorf("%s has status %d", found.Path, found.Status)
		}
		if found.Page {
			pages = append(pages, found.Path)
		}
	}
	if len(missing) > 0 {
		t.Errorf("no link leads to these pages: %q", missing)
	}
	return pages
}
