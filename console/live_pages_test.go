package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/console"
)

// Who watches a page gets the one of its whole address: that of another query is of something else.
func TestWatchedPagesAreOfTheirAddress(t *testing.T) {
	t.Parallel()
	s := open(t, console.Options{}, healthy()...)
	for _, queue := range []string{"orders", "mail"} {
		watch := func() (*http.Response, string) {
			return s.ask(http.MethodGet, "/queue?name="+queue, header("Nixie-Live", "none"), nil)
		}
		answer, body := watch()
		for range 50 { // a page that takes long is there the next time
			if answer.StatusCode != http.StatusNoContent {
				break
			}
			answer, body = watch()
		}
		if answer.StatusCode != http.StatusOK || !strings.Contains(body, "<title>"+queue+" ·") {
			t.Errorf("status %d, and it is not the page of %s:\n%s", answer.StatusCode, queue, body)
		}
	}
}
