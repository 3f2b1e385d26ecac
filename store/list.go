package store

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nixie-go/nixie"
)

// Page is a window on a listing. A cursor is opaque and belongs to its filter.
type Page struct {
	Limit  int // 0 is 50; at most 10,000
	Cursor string
	Whole  bool // with bodies, history and artifacts
	Bodies bool // of letters: with bodies, and no more than without Whole else

	// Looked, if it is set, is how many were looked at: a store that ends a page before
	// it is full adds what it had to look at, also what does not match.
	Looked *int64
}

// Rows is how many rows the page may have.
func (p Page) Rows() int { return min(cmp.Or(max(p.Limit, 0), 50), 10_000) }

// BadCursor is the error of a cursor that no page has given.
func BadCursor(cursor string) error {
	return nixie.Errorf(nixie.CodeInvalid, "cursor %.40q is not from an earlier page of this listing: start without one", cursor)
}

// Examples is how many letters of a group are named.
const Examples = 3

// groupings are the keys of letters by what they are grouped by.
var groupings = map[nixie.GroupBy]func(*nixie.Letter) string{
	nixie.ByFingerprint: func(l *nixie.Letter) string { return l.Fingerprint },
	nixie.ByReason:      func(l *nixie.Letter) string { return string(l.Reason) },
	nixie.ByClass:       func(l *nixie.Letter) string { return string(l.Class) },
	nixie.ByType:        func(l *nixie.Letter) string { return l.Message.Type },
	nixie.ByQueue:       func(l *nixie.Letter) string { return l.Message.Queue },
	nixie.ByStatus:      func(l *nixie.Letter) string { return string(l.Status) },
	nixie.ByHour:        func(l *nixie.Letter) string { return l.DiedAt.UTC().Format("2006-01-02T15") },
	nixie.ByRedrivable:  func(l *nixie.Letter) string { return yesNo(l.Redrivable) },
	nixie.ByReview:      func(l *nixie.Letter) string { return yesNo(l.NeedsReview) },
	nixie.ByAttempts: func(l *nixie.Letter) string {
		attempts, _ := l.Spent()
		return strconv.Itoa(attempts)
	},
}

// yesNo is how filters write a flag.
func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// CheckGroupings is an error of CodeInvalid if there is no such grouping.
func CheckGroupings(by ...nixie.GroupBy) error {
	for _, g := range by {
		if groupings[g] != nil {
			continue
		}
		var known []string
		for name := range groupings {
			known = append(known, string(name))
		}
		slices.Sort(known)
		return nixie.Errorf(nixie.CodeInvalid, "cannot group by %q: give one of %s", g, strings.Join(known, ", "))
	}
	return nil
}

// Grouping counts letters by one property, for stores that look at each of them. It is
// not safe for concurrent use.
type Grouping struct {
	by     nixie.GroupBy
	groups map[string]*nixie.Group
}

// NewGrouping makes one that has counted none. The property has passed [CheckGroupings].
func NewGrouping(by nixie.GroupBy) *Grouping {
	return &Grouping{by, map[string]*nixie.Group{}}
}

// Add counts a letter. Letters come latest death first.
func (g *Grouping) Add(l *nixie.Letter) {
	key := groupings[g.by](l)
	group := g.groups[key]
	if group == nil {
		group = &nixie.Group{Key: key, LastAt: l.DiedAt}
		if g.by == nixie.ByFingerprint {
			group.Label, group.Reason = l.Signature, l.Reason
		}
		g.groups[key] = group
	}
	group.Count++
	group.FirstAt = l.DiedAt
	if len(group.Examples) < Examples {
		group.Examples = append(group.Examples, l.ID)
	}
}

// Groups lists the groups, largest first.
func (g *Grouping) Groups() []nixie.Group {
	sorted := make([]nixie.Group, 0, len(g.groups))
	for _, group := range g.groups {
		sorted = append(sorted, *group)
	}
	SortGroups(sorted)
	return sorted
}

// Counts are the sizes of the groups by their keys.
func (g *Grouping) Counts() map[string]int64 {
	counts := map[string]int64{}
	for key, group := range g.groups {
		counts[key] = group.Count
	}
	return counts
}

// SortGroups puts the largest first, and equals in the order of their keys.
func SortGroups(groups []nixie.Group) {
	slices.SortFunc(groups, func(a, b nixie.Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key))
	})
}
