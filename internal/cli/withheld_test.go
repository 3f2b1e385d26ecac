package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/nixie-go/nixie/office"
)

// A redrive with a maximum says of letters that match and cannot go that they stay, and why. It
// never says that nothing matches.
func TestRedriveSaysWhatStays(t *testing.T) {
	t.Parallel()
	d := newWorkspace(t)
	for key, code := range map[string]string{"bad-1": "65", "bad-2": "65", "bad-3": "65", "late-1": "1", "late-2": "1"} {
		d.nixie(0, "enqueue", "q", "--key", key, "--body", code)
	}
	d.nixie(5, "work", "q", "--drain", "--max-attempts", "1", "--", "sh", "-c", "exit $(cat)")
	redrive := func(code int, args ...string) done {
		t.Helper()
		return d.nixie(code, append([]string{"dlq", "redrive", "--reason", "fixed"}, args...)...)
	}
	const why = "needs review: look at it, then use force"
	for _, choice := range [][]string{
		{"--filter", "queue:q reason:validation", "--max", "2"}, {"--filter", "queue:q", "--where", "reason == 'validation'", "--max", "2"},
	} {
		r := redrive(5, append(choice, "--yes")...)
		if !strings.Contains(r.out, "0 letters redriven, 3 match and stay") || strings.Count(r.out, why) != 3 ||
			!strings.Contains(r.err, "--max 2 --force") || strings.Contains(r.out, "nothing matches") {
			t.Errorf("%v: %s%s", choice, r.out, r.err)
		}
		r = redrive(0, append(choice, "--dry-run")...)
		if !strings.Contains(r.out, "0 letters would be redriven\n") || !strings.Contains(r.out, "       3  "+why) {
			t.Errorf("%v, dry: %s", choice, r.out)
		}
		var v office.OperationResult
		r = redrive(5, append(choice, "--yes", "-o", "json")...)
		if err := json.Unmarshal([]byte(r.out), &v); err != nil || v.Selected+v.Skipped != 0 || len(v.Refused) != 3 {
			t.Errorf("%v, JSON: %v %s", choice, err, r.out)
		}
	}
	if r := redrive(0, "--filter", "queue:none", "--max", "2", "--yes"); !strings.Contains(r.out, "0 letters redriven: nothing matches") {
		t.Error(r.out)
	}
	if r := redrive(0, "--filter", "queue:q", "--max", "1", "--dry-run"); strings.Contains(r.out, why) { // no more would go anyway
		t.Error(r.out)
	}
	r := redrive(5, "--filter", "queue:q", "--max", "4", "--yes")
	if !strings.Contains(r.out, "2 of 2 letters redriven, 3 match and stay") {
		t.Error(r.out)
	}
	d.nixie(0, "dlq", "hold", "--filter", "queue:q reason:validation", "--reason", "look", "--yes")
	if r := redrive(5, "--filter", "queue:q", "--yes"); !strings.Contains(r.out, "0 letters redriven, 3 match and stay") {
		t.Error(r.out)
	}
	if r := redrive(0, "--filter", "queue:q", "--max", "2", "--force", "--yes"); !strings.Contains(r.out, "2 of 2 letters redriven (") {
		t.Error(r.out)
	}
	d.verify()
}
