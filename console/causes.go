package console

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/office"
)

// diedSince counts the letters that match and died since a moment, by their cause.
func (c *console) diedSince(ctx context.Context, f nixie.Filter, moment time.Time) (map[string]int64, error) {
	f.Died.After = moment
	causes, _, err := c.causes(ctx, f)
	by := map[string]int64{}
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

// addCauses adds the causes that are new or growing, those with the most letters first.
func (c *console) addCauses(ctx context.Context, causes []office.Count, lately *causesLately, d *officeData) error {
	var shown []office.Count
	for _, n := range causes {
		switch {
		case lately.hour[n.Value] == 0 || !lately.growing(n.Value):
		case len(shown) < maxAlerts:
			shown = append(shown, n)
		default:
			d.More++
		}
	}
	groups, err := c.described(ctx, waiting(nixie.Filter{}), shown)
	for _, g := range groups {
		to := c.link("group", "fingerprint", g.Fingerprint)
		a := alert{Rank: others, Tone: "wait", Title: titleGrowing, Since: g.FirstAt.Time, To: to}
		a.Text = number(lately.hour[g.Fingerprint]) + " of " + plural(g.Count, "letter") + " died in the last hour: " + g.Signature
		if lately.hour[g.Fingerprint] >= g.Count {
			a.Rank, a.Tone, a.Title, a.Text = fresh, "bad", titleNew, plural(g.Count, "letter")+": "+g.Signature
		}
		d.Attention = append(d.Attention, a)
	}
	return err
}
