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
		answer, body := s.ask(http.MethodGet, "/queue?name="+queue, header("Nixie-Live", "none"), nil)
		if answer.StatusCode != http.StatusOK || !strings.Contains(body, "<title>"+queue+" ·") {
			t.Errorf("status %d, and it is not the page of %s:\n%s", answer.StatusCode, queue, body)
		}
	}
}
