package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/console"
)

// A cause needs attention when all its letters died in the last hour, or more than twice as many as
// in an hour of the day before, however long ago it began. Those with the most letters come first.
func TestCausesThatNeedAttention(t *testing.T) {
	t.Parallel()
	var list []nixie.Letter
	died := func(cause string, times ...time.Duration) {
		for _, ago := range times {
			list = append(list, letter(len(list)+1, "orders", "timeout: "+cause, cause, ago))
		}
	}
	const h, m = time.Hour, time.Minute
	died("new", 10*m, 20*m)
	died("steady", 30*m, 2*h, 3*h, 4*h, 5*h, 6*h, 7*h, 8*h, 9*h, 10*h, 11*h, 12*h)
	died("growing", 10*m, 20*m, 30*m, 40*m, 5*h, 10*h, 15*h)
	died("back", 10*m, 100*h, 101*h, 102*h, 103*h, 104*h)
	died("quiet", 2*h, 3*h)
	body := open(t, console.Options{}, list...).page(http.StatusOK, "/")
	at := 0
	for _, text := range []string{
		"new</strong> <span><bdi>2 letters: timeout: new",
		"growing</strong> <span><bdi>4 of 7 letters died in the last hour: timeout: growing",
		"growing</strong> <span><bdi>1 of 6 letters died in the last hour: timeout: back",
	} {
		found := strings.Index(body[at:], text)
		if found < 0 {
			t.Fatalf("it does not say %q there:\n%s", text, body)
		}
		at += found
	}
	for _, cause := range []string{"timeout: steady", "timeout: quiet"} {
		if strings.Contains(body, cause) {
			t.Errorf("%s needs attention:\n%s", cause, body)
		}
	}
}
