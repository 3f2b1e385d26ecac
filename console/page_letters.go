package console

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// Bounds of a list of letters.
const (
	lettersShown = 50
	searchLimit  = time.Second // of a search that does not fill its page
	termsOffered = 12          // values of one key that complete a filter
)

func lettersPage() page {
	return page{path: "letters", title: "Letters", menu: "letters", file: "letters", live: true, show: (*console).showLetters}
}

// search is the filter that an operator wrote.
type search struct {
	Filter string
	Fault  *fault
	Terms  []string            // that complete it
	Of     []office.FamilyView // whose groups it chooses
	filter nixie.Filter
}

// fault tells what is wrong with a filter, and where.
type fault struct{ Message, Before, Caret string }

// search reads the filter of a request.
func (c *console) search(r *http.Request) search {
	s := search{Filter: strings.TrimSpace(r.FormValue("filter"))}
	var err error
	if s.filter, err = office.ParseFilter(s.Filter, c.Clock()); err == nil {
		s.filter, s.Of, err = c.office.Resolve(r.Context(), s.filter)
	}
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
	console  *console
	Letters  lettersTable
	Known    []string // columns that there are
	Changes  []change
	Spreads  []spread
	All      int64
	Coverage *office.Coverage
	Looked   int64  // letters that were scanned for this page
	Cut      bool   // the search was ended early
	Cursor   string // of this page
	Next     string // cursor of the next page
	First    bool
}

func (c *console) showLetters(r *http.Request) (answer, error) {
	ctx := r.Context()
	d := lettersData{search: c.search(r), console: c, Cursor: r.FormValue("cursor"), Known: columns, Changes: changes[:2]}
	d.First = d.Cursor == ""
	d.Letters = lettersTable{Columns: columnsOf(r), Selected: r.FormValue("select") != ""}
	if d.Fault != nil || !strings.Contains(d.Filter, ":") { // bare words may be an ID or key
		if to, err := c.find(r, &d); d.Fault != nil || to.To != "" || err != nil {
			return to, err
		}
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
	d.addTerms(d.Spreads)
	d.Next = d.Cursor
	for began := c.Clock(); len(d.Letters.Rows) < lettersShown; {
		list, next, err := c.office.Letters(ctx, f,
			office.Page{Limit: lettersShown - len(d.Letters.Rows), Cursor: d.Next, Scanned: &d.Looked})
		if err != nil {
			return answer{}, err
		}
		d.Letters.Rows, d.Next = append(d.Letters.Rows, list...), next
		if d.Cut = next != "" && c.Clock().Sub(began) > searchLimit; next == "" || d.Cut {
			break
		}
	}
	return answer{Data: d}, nil
}

// find leads to the letter whose ID or key was written instead of a filter. If there is none, the
// page shows the fault of the filter, or the letters that have its words.
func (c *console) find(r *http.Request, d *lettersData) (answer, error) {
	if d.Filter == "" {
		return answer{}, nil
	}
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

// addTerms adds what a browser offers to complete the filter with: each key, and the values that
// the letters have. An offer is the whole filter with one more term, as lists of browsers want it.
func (s *search) addTerms(spreads []spread) {
	for _, of := range spreads {
		for i := 0; i < len(of.Counts) && i < termsOffered; i++ {
			if of.Counts[i].Value != "" {
				s.Terms = append(s.Terms, s.With(of.Key, of.Counts[i].Value))
			}
		}
	}
	for _, term := range [...]string{
		"age:<1h", "age:>1d", "attempts:>3", "redrives:>0", "needs_review:yes", "redrivable:no", "text:", "error-type:",
		"signature:", "key:", "stream:",
	} {
		s.Terms = append(s.Terms, strings.TrimSpace(s.Filter+" "+term))
	}
}

// Has reports whether a column is shown.
func (t lettersTable) Has(name string) bool { return slices.Contains(t.Columns, name) }

// At returns the address of this list from a cursor on, with its columns.
func (d lettersData) At(cursor, selected string) string {
	pairs := []any{"filter", d.Filter, "cursor", cursor, "select", selected}
	if !slices.Equal(d.Letters.Columns, usualColumns()) {
		for _, name := range d.Letters.Columns {
			pairs = append(pairs, "col", name)
		}
	}
	return d.console.link("letters", pairs...)
}
