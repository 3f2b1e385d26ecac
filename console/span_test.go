package console_test

import (
	"fmt"
	"html"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
)

// Who goes through the pages of a list that is known whole, on and back, sees each row once.
func TestEachRowIsOnOnePage(t *testing.T) {
	t.Parallel()
	var letters []nixie.Letter
	for n := range 205 {
		label := fmt.Sprintf("timeout: of q%03d. a%d b%d", n, n, n) // three words differ: they are no family
		letters = append(letters, letter(n, fmt.Sprintf("q%03d", n), label, "slow", time.Minute))
	}
	s := open(t, console.Options{}, letters...)
	for list, row := range map[string]string{"queues": `/queue\?name=(q\d{3})"`, "groups": `timeout: of (q\d{3})\.`} {
		last := ""
		for _, way := range []string{"Next", "Before"} {
			link, rows := regexp.MustCompile(`<a href="(/`+list+`\?from=\d+)">`+way+`</a>`), regexp.MustCompile(row)
			var seen []string
			for path := "/" + list; path != ""; {
				if way == "Before" && len(seen) == 0 {
					path = last
				}
				body := s.page(http.StatusOK, path)
				var here []string
				for _, m := range rows.FindAllStringSubmatch(body, -1) {
					here = append(here, m[1])
				}
				seen, last, path = append(seen, slices.Compact(here)...), path, ""
				if m := link.FindStringSubmatch(body); m != nil {
					path = html.UnescapeString(m[1])
				}
			}
			slices.Sort(seen)
			if len(seen) != len(letters) || len(slices.Compact(slices.Clone(seen))) != len(letters) {
				t.Errorf("%s by %s: %d rows, %d of them different, want %d", list, way, len(seen), len(slices.Compact(seen)), len(letters))
			}
		}
	}
}
