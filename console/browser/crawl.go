package browser

import (
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
)

// Found is an address that a console has.
type Found struct {
	Path   string
	Status int
	Page   bool // no download
}

// reference is the address of another page of the console.
var reference = regexp.MustCompile(`<a [^>]*href="(/[^"]*)`)

// Crawl follows the links of a console from its first page, to at most some addresses of each kind.
// Those are of one kind that differ in their second element only, such as an ID.
func Crawl(handler http.Handler, most int) (list []Found) {
	known, seen := map[string]bool{"/": true}, map[string]int{}
	for queue := []string{"/"}; len(queue) > 0; queue = queue[1:] {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, queue[0], nil)) //nolint:noctx // the console bounds its time
		page := strings.HasPrefix(w.Header().Get("Content-Type"), "text/html")
		list = append(list, Found{queue[0], w.Code, page})
		if !page {
			continue
		}
		for _, found := range reference.FindAllStringSubmatch(w.Body.String(), -1) {
			to, _, _ := strings.Cut(html.UnescapeString(found[1]), "#")
			if kind := Kind(to); !known[to] && seen[kind] < most {
				known[to] = true
				seen[kind]++
				queue = append(queue, to)
			}
		}
	}
	return list
}

// Kind returns the kind of a page.
func Kind(address string) string {
	address, _, _ = strings.Cut(strings.TrimPrefix(address, "/"), "?")
	elements := strings.Split(address, "/")
	if elements[0] == "" {
		elements[0] = "office"
	}
	if len(elements) > 1 {
		elements[1] = "…"
	}
	return strings.Join(elements, "/")
}
