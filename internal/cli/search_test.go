package cli

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/nixie-go/nixie/store"
)

// rare is a store of samples of which every hundredth matches, that looks at 100 for each
// page, in a second each.
type rare struct{ now time.Time }

func (r *rare) page(matches, last int) func(store.Page) ([]sample, string, error) {
	return func(p store.Page) (list []sample, next string, err error) {
		at := 0
		if p.Cursor != "" {
			_, err = fmt.Sscan(p.Cursor, &at)
		}
		r.now = r.now.Add(time.Second)
		*p.Scanned += 100
		if at < matches {
			list = append(list, sample{Name: fmt.Sprint("m", at)})
		}
		if at++; at < last {
			next = fmt.Sprint(at)
		}
		return list, next, err
	}
}

// A search goes on until its page is full, or for 2 s, and says how far it came. That
// nothing was found is said of a search alone that has looked at everything.
func TestSearchesGoOn(t *testing.T) {
	for name, tc := range map[string]struct {
		limit, matches, pages int
		output                string
		out, err              string
		code                  int
	}{
		"a page that is full": {limit: 2, matches: 9, pages: 9, out: "m0\nm1\n", err: "there may be more: --cursor 2, or --all\n"},
		"time is over": {limit: 3, matches: 1, pages: 9,
			out: "m0\nlooked at the newest 200 rows, 1 match; there may be more: --cursor 2, or --all\n"},
		"nothing found": {limit: 3, pages: 9, out: "looked at the newest 200 rows, 0 match; there may be more: --cursor 2, or " +
			"--all\n", code: ExitPartly},
		"nothing is there": {limit: 3, pages: 2, err: "no rows\n"},
		"all is there":     {limit: 3, matches: 2, pages: 2, out: "m0\nm1\n"},
		"for a program": {limit: 3, pages: 9, output: asCSV, out: "name,n,age_s,at,done,list\n",
			err: "looked at the newest 200 rows, 0 match; there may be more: --cursor 2, or --all\n", code: ExitPartly},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rare{now: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
			var out, err bytes.Buffer
			g := &globals{output: tc.output, Streams: Streams{Out: &out, Err: &err, Now: func() time.Time { return r.now },
				Env: func(string) string { return "" }}}
			if tc.output == "" {
				g.output = asTable
			}
			columns := []column[sample]{{name: "name"}}
			got := list(g, &pageFlags{limit: tc.limit}, "rows", columns, func(s *sample) sample { return *s }, nil,
				r.page(tc.matches, tc.pages))
			if code := exitCode(g.Streams, got); code != tc.code {
				t.Errorf("exit code %d, want %d: %v", code, tc.code, got)
			}
			if said := string(bytes.TrimPrefix(out.Bytes(), []byte("NAME\n"))); said != tc.out || err.String() != tc.err {
				t.Errorf("standard output %q, want %q; standard error %q, want %q", said, tc.out, err.String(), tc.err)
			}
		})
	}
}
