package console

import (
	"net/http"
	"regexp"
	"strings"
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
	Letters  int64
	Coverage *office.Coverage
	span
}

type groupRow struct {
	office.GroupView
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
	d.span = spanOf(r, len(causes), groupsShown)
	for _, n := range causes {
		d.Letters += n.Count
	}
	groups, err := c.described(ctx, f, causes[d.From:d.To])
	if err != nil {
		return answer{}, err
	}
	var sparks []func() error
	for i, g := range groups {
		d.Groups = append(d.Groups, groupRow{GroupView: g, LastHour: recent[g.Fingerprint]})
		if i < maxSparks {
			sparks = append(sparks, func() (err error) {
				d.Groups[i].Hours, err = c.deaths(ctx, nixie.Filter{Fingerprints: []string{g.Fingerprint}})
				return err
			})
		}
	}
	return answer{Data: d}, atOnce(ctx, sparks...)
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
var variable = regexp.MustCompile(`<[a-z]+>`)

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
	for _, v := range variable.FindAllStringIndex(form, -1) {
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
