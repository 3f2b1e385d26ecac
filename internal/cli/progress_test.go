package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/runner"
)

// The bar fits 80 columns, with its rate and the time that is left, however much there is to tell.
func TestProgressFits(t *testing.T) {
	var out strings.Builder
	s := Streams{Err: &out, ErrTTY: true, Columns: 80, Env: func(string) string { return "" }, Now: time.Now}
	p := newProgress(s, func() runner.Counts {
		return runner.Counts{Total: 1_000, Ended: 250, Succeeded: 200, Dead: 50_000, Retried: 123_456,
			Held: "paused: breaker of transport-unavailable is open, tries one in 2 minutes"}
	}, false)
	p.show()
	p.end()
	found := false
	for line := range strings.SplitSeq(out.String(), "\r") {
		line = strings.NewReplacer("\x1b[0K", "", "\x1b[2K", "").Replace(line)
		found = found || strings.Contains(line, "/s") && strings.Contains(line, "50000 dead")
		if displayWidth(line) > 80 {
			t.Errorf("%q takes %d columns", line, displayWidth(line))
		}
	}
	if !found {
		t.Errorf("no rate in %q", out.String())
	}
}
