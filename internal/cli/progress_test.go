package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/nixie-go/nixie/internal/runner"
)

// Off a terminal progress is plain lines.
func TestProgressLines(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var out strings.Builder
	at := runner.Counts{Total: 100}
	p := newProgress(Streams{Err: &out, Env: func(string) string { return "" }, Now: func() time.Time { return now }},
		func() runner.Counts { return at }, false)
	p.end() // the lines below are ours, not those of its clock
	p.show()
	now = now.Add(10 * time.Second)
	at = runner.Counts{Total: 100, Ended: 20, Dead: 5, Retried: 3, Succeeded: 15}
	p.show()
	at = runner.Counts{Total: 100, Ended: 100, Dead: 5, Retried: 3, Succeeded: 95}
	p.show()
	want := "0/100 done, 0 dead, 0 retried, 0/s\n20/100 done, 5 dead, 3 retried, 2/s, about 40s left\n100/100 done, 5 dead, 3 retried, " +
		"10/s\n"
	if out.String() != want {
		t.Errorf("got %q\nwant %q", out.String(), want)
	}
}

// Work without an end has a line when something has changed.
func TestProgressWithoutEnd(t *testing.T) {
	var out strings.Builder
	at := runner.Counts{Total: 100}
	p := newProgress(Streams{Err: &out, ErrTTY: true, Env: func(string) string { return "" }, Now: time.Now},
		func() runner.Counts { return at }, true)
	p.end()
	p.show()
	p.show()
	at.Succeeded, at.Ended = 7, 7
	p.show()
	p.show()
	if want := "7 succeeded, 0 dead, 0 retried\n"; out.String() != want {
		t.Errorf("got %q\nwant %q", out.String(), want)
	}
}
