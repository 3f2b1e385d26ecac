package office

import (
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Census makes an [Analysis] of letters that lie elsewhere. It counts them one by one, in any
// order, and keeps none. It is not safe for concurrent use.
type Census struct {
	causes map[string]*causeSeen // by fingerprint
	by     [4]map[string]int64   // by reason, type, queue and hour of death
	words  int                   // groups and counts
}

// causeSeen is a cause with what its letters tell.
type causeSeen struct {
	counted
	group store.Group
	keys  []string // of the examples
	text  string   // of the first one
}

// MaxCensus limits the causes, types, queues and hours of a [Census], all together: it keeps them,
// and nothing of a letter that they do not name.
const MaxCensus = 100_000

// Add counts a letter. [nixie.CodeLimit] means that it would be one cause, type, queue or hour more
// than [MaxCensus].
func (c *Census) Add(l *nixie.Letter) error {
	if c.causes == nil {
		c.causes = map[string]*causeSeen{}
		for i := range c.by {
			c.by[i] = map[string]int64{}
		}
	}
	for i, name := range [...]string{string(l.Reason), l.Message.Type, l.Message.Queue, l.DiedAt.UTC().Format(store.HourForm)} {
		if _, known := c.by[i][name]; !known {
			c.words++
		}
		c.by[i][name]++
	}
	one := counted{labelled{l.Fingerprint, l.Reason, l.Message.Type, l.Signature}, 1}
	if seen := c.causes[l.Fingerprint]; seen != nil {
		seen.join(&one)
		seen.meet(l)
	} else {
		c.words++
		seen = &causeSeen{counted: one, group: store.Group{FirstAt: l.DiedAt, LastAt: l.DiedAt}}
		seen.meet(l)
		c.causes[l.Fingerprint] = seen
	}
	if c.words > MaxCensus {
		return nixie.Errorf(nixie.CodeLimit, "there are more than %d causes, types, queues and hours of death: choose fewer letters",
			MaxCensus)
	}
	return nil
}

// meet notes when a letter died, and names it if few died later.
func (s *causeSeen) meet(l *nixie.Letter) {
	g := &s.group
	if l.DiedAt.Before(g.FirstAt) {
		g.FirstAt = l.DiedAt
	}
	newest := len(g.Examples) == 0 || l.DiedAt.After(g.LastAt)
	switch {
	case newest:
		g.LastAt, s.text = l.DiedAt, l.Message.LastFailure
		g.Examples, s.keys = slices.Insert(g.Examples, 0, l.ID), slices.Insert(s.keys, 0, l.Message.Key)
	case len(g.Examples) < store.Examples:
		g.Examples, s.keys = append(g.Examples, l.ID), append(s.keys, l.Message.Key)
	default:
		return
	}
	n := min(len(g.Examples), store.Examples)
	g.Examples, s.keys = g.Examples[:n], s.keys[:n]
}

// Analysis returns the counts, worded for commands. Families are those of the letters that were
// counted. No cause tells of an operation: only an office knows them.
func (c *Census) Analysis() Analysis {
	a := Analysis{Groups: make([]GroupView, 0, len(c.causes)), Families: []FamilyView{}}
	for i, into := range [...]*[]Count{&a.ByReason, &a.ByType, &a.ByQueue, &a.ByHour} {
		*into = sortedCounts(c.by[i])
	}
	sortCounts(a.ByHour)
	all := make([]labelled, 0, len(c.causes))
	for fingerprint, seen := range c.causes {
		g := seen.group
		g.Key, g.Label, g.Reason, g.Count = fingerprint, seen.label, seen.reason, seen.count
		v := ForCommands.group(&g)
		v.Keys, v.Text = seen.keys, seen.text
		a.Letters += g.Count
		a.Groups, all = append(a.Groups, v), append(all, seen.labelled)
	}
	slices.SortFunc(a.Groups, func(a, b GroupView) int { return byCount(a.Count, a.Fingerprint, b.Count, b.Fingerprint) })
	if len(all) >= familyLeast {
		a.Families = newFound(families(all)).fold(a.Groups, ForCommands)
	}
	return a
}
