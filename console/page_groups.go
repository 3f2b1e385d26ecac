package console

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// groupsShown is the number of causes on one page.
const groupsShown = 25

// workersRead is the number of letters whose workers a page counts.
const workersRead = 30

func groupsPage() page {
	return page{path: "groups", title: "Groups", menu: "groups", file: "groups", live: true, show: (*console).showGroups}
}

// groupsData is one page of the causes of the letters that match.
type groupsData struct {
	search
	Groups   []groupRow
	Family   *office.FamilyView // that is open; nil is none
	Causes   int
	Letters  int64
	Coverage *office.Coverage
	span
}

// groupRow is a cause, or a family of causes.
type groupRow struct {
	office.Line
	LastHour int64
	Hours    []int64
}

func (c *console) showGroups(r *http.Request) (answer, error) {
	ctx := r.Context()
	d := groupsData{search: c.search(r)}
	if d.Fault != nil {
		return answer{Data: d}, nil
	}
	f := waiting(d.filter)
	var causes []office.Count
	var recent map[string]int64
	err := atOnce(ctx,
		func() (err error) {
			causes, d.Coverage, err = c.causes(ctx, f)
			return err
		},
		func() (err error) { recent, err = c.diedSince(ctx, f, c.Clock().Add(-time.Hour)); return err },
	)
	if err != nil {
		return answer{}, err
	}
	groups := make([]office.GroupView, len(causes))
	for i, n := range causes {
		groups[i] = office.GroupView{Fingerprint: n.Value, Count: n.Count}
	}
	lines, err := c.lines(ctx, f, groups)
	if err != nil {
		return answer{}, err
	}
	if lines, err = d.open(r.FormValue("family"), lines, groups); err != nil {
		return answer{}, err
	}
	d.span = spanOf(r, len(lines), groupsShown)
	hours := map[string]int64{} // deaths of families in the last hour
	for i := range groups {
		hours[groups[i].Family] += recent[groups[i].Fingerprint]
	}
	lines = lines[d.From:d.To]
	if err := c.describe(ctx, f, lines); err != nil {
		return answer{}, err
	}
	var sparks []func() error
	for i, l := range lines {
		d.Groups = append(d.Groups, groupRow{Line: l, LastHour: recent[l.Largest.Fingerprint]})
		if l.Family != nil {
			d.Groups[i].LastHour = hours[l.Family.ID]
		} else if i < maxSparks {
			sparks = append(sparks, func() (err error) {
				d.Groups[i].Hours, err = c.deaths(ctx, nixie.Filter{Fingerprints: []string{l.Largest.Fingerprint}})
				return err
			})
		}
	}
	return answer{Data: d}, atOnce(ctx, sparks...)
}

// open chooses the causes of a page: all lines, or each group of a family that was opened.
func (d *groupsData) open(id string, lines []office.Line, groups []office.GroupView) ([]office.Line, error) {
	if d.Causes = len(groups); id == "" {
		for _, l := range lines {
			d.Letters += l.Count()
		}
		return lines, nil
	}
	i := slices.IndexFunc(lines, func(l office.Line) bool { return l.Family != nil && l.Family.ID == id })
	if i < 0 {
		return nil, nixie.Errorf(nixie.CodeNotFound, "no family of the causes that match has the ID %q now", id)
	}
	d.Family = lines[i].Family
	d.Causes, d.Letters = d.Family.Groups, d.Family.Count
	return office.Lines(slices.DeleteFunc(groups, func(g office.GroupView) bool { return g.Family != id }), nil), nil
}

func groupPage() page {
	return page{path: "group", title: "Group", file: "group", live: true, show: (*console).showGroup}
}

// groupData is one cause: what it says, how it spreads, and its newest letters.
type groupData struct {
	office.GroupView
	Hours   []int64
	Workers []office.Count // of the newest letters
	Read    int            // those letters
	Sample  []piece        // of the text of an example
	Spreads []spread
	Letters lettersTable
	Changes []change
}

// piece is a part of a text; in other letters of the group the variable ones differ.
type piece struct {
	Text     string
	Variable bool
}

// spread counts the letters of a group by a property.
type spread struct {
	Name, Key string
	Counts    []office.Count
}

func (c *console) showGroup(r *http.Request) (answer, error) {
	ctx := r.Context()
	all := nixie.Filter{Fingerprints: []string{r.FormValue("fingerprint")}}
	f := waiting(all)
	groups, _, err := c.office.Groups(ctx, f)
	if err == nil && len(groups) == 0 { // they are redriven, resolved or discarded
		f = all
		groups, _, err = c.office.Groups(ctx, f)
		for i := range groups {
			groups[i].Count = 0
		}
	}
	switch {
	case err != nil:
		return answer{}, err
	case f.Fingerprints[0] == "" || len(groups) == 0:
		return answer{}, nixie.Errorf(nixie.CodeNotFound, "there is no letter of this group")
	}
	if err := c.office.AddExamples(ctx, groups[:1]); err != nil {
		return answer{}, err
	}
	d := groupData{GroupView: groups[0]}
	d.Sample = pieces(c.Mask.Text(d.Text), d.Signature)
	if d.Hours, err = c.deaths(ctx, f); err != nil {
		return answer{}, err
	}
	counts, _, err := c.office.CountBy(ctx, f, office.ByQueue, office.ByType, office.ByStatus)
	if err != nil {
		return answer{}, err
	}
	d.Spreads = []spread{{"Queue", "queue", counts[0]}, {"Type", "type", counts[1]}, {"Status", "status", counts[2]}}
	if d.Workers, d.Read, err = c.office.LastWorkers(ctx, f, workersRead); err != nil {
		return answer{}, err
	}
	d.Changes, d.Letters.Columns = changes[:2], []string{"status", "died", "queue", "type", "last error"}
	d.Letters.Rows, _, err = c.office.Letters(ctx, f, office.Page{Limit: maxAlerts})
	return answer{Title: line(d.Signature), Data: d}, err
}

// variable is a part of a signature that stands for others.
var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<[a-z]+>`)
})

// maxSample limits the bytes of a text whose variable parts are marked.
const maxSample = 4 << 10

// pieces marks the parts of a text that its signature leaves out. A text of another form than its
// signature is one piece.
func pieces(text, signature string) []piece {
	whole := []piece{{visible(text), false}}
	_, form, found := strings.Cut(signature, ": ")
	if !found || len(text) > maxSample {
		return whole
	}
	var pattern strings.Builder
	at := 0
	for _, v := range variable().FindAllStringIndex(form, -1) {
		pattern.WriteString("(" + regexp.QuoteMeta(form[at:v[0]]) + ")(.+?)")
		at = v[1]
	}
	pattern.WriteString("(" + regexp.QuoteMeta(form[at:]) + ")")
	re, err := regexp.Compile("(?s)^" + pattern.String() + "$")
	if err != nil {
		return whole
	}
	parts := re.FindStringSubmatch(text)
	if parts == nil {
		return whole
	}
	var list []piece
	for i, part := range parts[1:] {
		list = append(list, piece{visible(part), i%2 == 1})
	}
	return list
}
