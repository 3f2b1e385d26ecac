package console

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// Bounds of a list of letters.
const (
	lettersShown = 50
	searchLimit  = time.Second // of a search that does not fill its page
)

func lettersPage() page {
	return page{path: "letters", title: "Letters", menu: "letters", file: "letters", live: true, show: (*console).showLetters}
}

// search is the filter that an operator wrote.
type search struct {
	Filter string
	Fault  *fault
	filter nixie.Filter
}

// fault tells what is wrong with a filter, and where.
type fault struct{ Message, Before, Caret string }

// search reads the filter of a request.
func (c *console) search(r *http.Request) search {
	s := search{Filter: strings.TrimSpace(r.FormValue("filter"))}
	var err error
	s.filter, err = office.ParseFilter(s.Filter, c.Clock())
	if wrong := (*office.FilterError)(nil); errors.As(err, &wrong) {
		runes := []rune(visible(wrong.Text))
		at := min(max(wrong.Column-1, 0), len(runes))
		near := runes[max(0, at-maxLine/4):min(len(runes), at+maxLine/4)]
		s.Fault = &fault{wrong.Message, strings.Join(strings.Fields(string(near)), " "), strings.Repeat(" ", min(at, maxLine/4)) + "^"}
	} else if err != nil {
		s.Fault = &fault{Message: err.Error()}
	}
	return s
}

// lettersData is one page of the letters that match.
type lettersData struct {
	search
	Letters  []nixie.Letter
	Spreads  []spread
	All      int64
	Coverage *office.Coverage
	Looked   int64  // letters that were scanned for this page
	Cut      bool   // the search was ended early
	Next     string // cursor of the next page
	First    bool
}

func (c *console) showLetters(r *http.Request) (answer, error) {
	ctx := r.Context()
	d := lettersData{search: c.search(r), First: r.FormValue("cursor") == ""}
	if d.Fault != nil {
		return c.find(r, &d)
	}
	f := office.Unresolved(d.filter)
	counts, coverage, err := c.office.CountBy(ctx, f, office.ByStatus, office.ByReason, office.ByQueue, office.ByType)
	if err != nil {
		return answer{}, err
	}
	d.Coverage = coverage
	d.Spreads = []spread{
		{"Status", "status", counts[0]}, {"Reason", "reason", counts[1]}, {"Queue", "queue", counts[2]}, {"Type", "type", counts[3]},
	}
	for _, n := range counts[0] {
		d.All += n.Count
	}
	d.Next = r.FormValue("cursor")
	for began := c.Clock(); len(d.Letters) < lettersShown; {
		list, next, err := c.office.Letters(ctx, f,
			office.Page{Limit: lettersShown - len(d.Letters), Cursor: d.Next, Scanned: &d.Looked})
		if err != nil {
			return answer{}, err
		}
		d.Letters, d.Next = append(d.Letters, list...), next
		if d.Cut = next != "" && c.Clock().Sub(began) > searchLimit; next == "" || d.Cut {
			break
		}
	}
	return answer{Data: d}, nil
}

// find leads to the letter whose ID or key was written instead of a filter. If there is none, the
// page shows the fault of the filter.
func (c *console) find(r *http.Request, d *lettersData) (answer, error) {
	l, err := c.office.Letter(r.Context(), d.Filter)
	switch nixie.CodeOf(err) {
	case "":
		return answer{To: c.link("letter/" + l.ID.String())}, nil
	case nixie.CodeNotFound:
		return answer{Data: *d}, nil
	}
	return answer{}, err
}

// With returns the filter with one more term.
func (s search) With(key, value string) string {
	return strings.TrimSpace(s.Filter + " " + term(key, value))
}
