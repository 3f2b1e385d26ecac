package console

import (
	"context"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// diedSince counts the letters that match and died since a moment, by their cause.
func (c *console) diedSince(ctx context.Context, f nixie.Filter, moment time.Time) (map[string]int64, error) {
	f.Died.After = moment
	causes, _, err := c.causes(ctx, f)
	by := make(map[string]int64, len(causes))
	for _, n := range causes {
		by[n.Value] = n.Count
	}
	return by, err
}

// causes counts the letters that match by their cause, largest count first. Coverage is that of
// [office.Office.Groups].
func (c *console) causes(ctx context.Context, f nixie.Filter) ([]office.Count, *office.Coverage, error) {
	counts, coverage, err := c.office.CountBy(ctx, f, office.ByFingerprint)
	if err != nil {
		return nil, nil, err
	}
	return counts[0], coverage, nil
}

// described describes causes of the letters that match, with their counts, largest first. Each
// costs two looks into an index, so who shows some of many describes these alone.
func (c *console) described(ctx context.Context, f nixie.Filter, causes []office.Count) ([]office.GroupView, error) {
	if len(causes) == 0 {
		return nil, nil // no fingerprints would ask for all
	}
	counts := map[string]int64{}
	f.Fingerprints = nil
	for _, n := range causes {
		f.Fingerprints = append(f.Fingerprints, n.Value)
		counts[n.Value] = n.Count
	}
	groups, _, err := c.office.Groups(ctx, f)
	for i := range groups {
		groups[i].Count = counts[groups[i].Fingerprint]
	}
	return groups, err
}

// lines gathers causes of the letters that match into families.
func (c *console) lines(ctx context.Context, f nixie.Filter, groups []office.GroupView) ([]office.Line, error) {
	families, err := c.office.Fold(ctx, f, groups)
	return office.Lines(groups, families), err
}

// describe describes the largest cause of each line.
func (c *console) describe(ctx context.Context, f nixie.Filter, lines []office.Line) error {
	var causes []office.Count
	for _, l := range lines {
		causes = append(causes, office.Count{Value: l.Largest.Fingerprint, Count: l.Largest.Count})
	}
	groups, err := c.described(ctx, f, causes)
	for i := range groups {
		for _, l := range lines {
			if l.Largest.Fingerprint == groups[i].Fingerprint {
				groups[i].Family = l.Largest.Family
				*l.Largest = groups[i]
			}
		}
	}
	return err
}

// differing names the words that differ in a family.
func differing(f *office.FamilyView) string {
	var parts []string
	for _, d := range f.Differs {
		parts = append(parts, d.Name+": "+plural(d.Values, "value"))
	}
	return strings.Join(parts, ", ")
}

// causesLately has how many letters of each cause died in the last hour, and in the day before now.
type causesLately struct {
	hour, day map[string]int64
	before    time.Duration // the part of the day before the last hour
}

// growing reports whether a cause killed more than twice as many in the last hour as in an hour of
// the day before it.
func (l *causesLately) growing(cause string) bool {
	n := l.hour[cause]
	return float64(n)*l.before.Hours() > 2*float64(l.day[cause]-n)
}

// mostAsked limits the causes that the store is asked about by their names.
const mostAsked = 1000

// addDay counts the day of the causes that are neither new nor quiet: others are decided without.
func (c *console) addDay(ctx context.Context, causes []office.Count, lately *causesLately) (err error) {
	f := waiting(nixie.Filter{})
	for _, n := range causes {
		if hour := lately.hour[n.Value]; hour > 0 && hour < n.Count {
			f.Fingerprints = append(f.Fingerprints, n.Value)
		}
	}
	if len(f.Fingerprints) == 0 {
		return nil
	}
	if len(f.Fingerprints) > mostAsked {
		f.Fingerprints = nil // all cost less
	}
	lately.day, err = c.diedSince(ctx, f, sparksFrom(c.Clock()))
	return err
}

// addCauses adds the causes that are new or growing, those with the most letters first. A family of
// them is one.
func (c *console) addCauses(ctx context.Context, causes []office.Count, lately *causesLately, d *officeData) error {
	groups := make([]office.GroupView, 0, len(lately.hour))
	for _, n := range causes {
		if lately.hour[n.Value] > 0 && lately.growing(n.Value) {
			groups = append(groups, office.GroupView{Fingerprint: n.Value, Count: n.Count})
		}
	}
	lines, err := c.lines(ctx, waiting(nixie.Filter{}), groups)
	if err != nil {
		return err
	}
	hours := map[string]int64{} // deaths of families in the last hour
	for i := range groups {
		hours[groups[i].Family] += lately.hour[groups[i].Fingerprint]
	}
	d.More = max(0, len(lines)-maxAlerts)
	lines = lines[:len(lines)-d.More]
	if err := c.describe(ctx, waiting(nixie.Filter{}), lines); err != nil {
		return err
	}
	for _, l := range lines {
		g, hour, of := l.Largest, lately.hour[l.Largest.Fingerprint], ""
		said, to := g.Signature, c.link("group", "fingerprint", g.Fingerprint)
		if l.Family != nil {
			hour, of = hours[l.Family.ID], " of "+plural(l.Family.Groups, "cause")
			said, to = l.Family.Label+" ("+differing(l.Family)+")", c.link("groups", "family", l.Family.ID)
			g.FirstAt = office.Timestamp{} // of one of them
		}
		a := alert{Rank: others, Tone: "wait", Title: titleGrowing, Since: g.FirstAt.Time, To: to}
		a.Text = number(hour) + " of " + plural(l.Count(), "letter") + of + " died in the last hour: " + said
		if hour >= l.Count() {
			a.Rank, a.Tone, a.Title, a.Text = fresh, "bad", titleNew, plural(l.Count(), "letter")+of+": "+said
		}
		d.Attention = append(d.Attention, a)
	}
	return nil
}
