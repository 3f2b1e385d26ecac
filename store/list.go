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

	// Scanned, if it is set, is how many were looked at: a store that ends a page before
	// it is full adds what it had to look at, also what does not match.
	Scanned *int64
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
var groupings = map[GroupBy]func(*nixie.Letter) string{
	ByFingerprint: func(l *nixie.Letter) string { return l.Fingerprint },
	ByReason:      func(l *nixie.Letter) string { return string(l.Reason) },
	ByClass:       func(l *nixie.Letter) string { return string(l.Class) },
	ByType:        func(l *nixie.Letter) string { return l.Message.Type },
	ByQueue:       func(l *nixie.Letter) string { return l.Message.Queue },
	ByStatus:      func(l *nixie.Letter) string { return string(l.Status) },
	ByHour:        func(l *nixie.Letter) string { return l.DiedAt.UTC().Format("2006-01-02T15") },
	ByRedrivable:  func(l *nixie.Letter) string { return yesNo(l.Redrivable) },
	ByReview:      func(l *nixie.Letter) string { return yesNo(l.NeedsReview) },
	ByAttempts: func(l *nixie.Letter) string {
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

// retryings are the keys of messages that still retry, by [RetryingBy].
var retryings = map[GroupBy]func(*nixie.Message) string{
	ByAttempts: func(m *nixie.Message) string { return strconv.Itoa(m.Attempts) },
	ByReason:   func(m *nixie.Message) string { return string(m.LastReason) },
	ByType:     func(m *nixie.Message) string { return m.Type },
	ByQueue:    func(m *nixie.Message) string { return m.Queue },
}

// Check is an error of CodeInvalid if nothing is counted by one of the properties.
func (c *Counting) Check() error {
	for _, by := range c.By {
		switch {
		case c.Retrying && retryings[by] == nil:
			return nixie.Errorf(nixie.CodeInvalid, "messages that retry cannot be counted by %q: give one of %s", by, names(retryings))
		case !c.Retrying && groupings[by] == nil:
			return nixie.Errorf(nixie.CodeInvalid, "letters cannot be grouped by %q: give one of %s", by, names(groupings))
		}
	}
	return nil
}

func names[F any](of map[GroupBy]F) string {
	var known []string
	for name := range of {
		known = append(known, string(name))
	}
	slices.Sort(known)
	return strings.Join(known, ", ")
}

// Grouping counts for stores that look at each letter or message. It is not safe for
// concurrent use.
type Grouping struct {
	of     Counting
	groups []map[string]*Group // by each property
}

// NewGrouping makes one that has counted none. What is counted has passed its Check.
func NewGrouping(of Counting) *Grouping {
	g := &Grouping{of, make([]map[string]*Group, len(of.By))}
	for i := range g.groups {
		g.groups[i] = map[string]*Group{}
	}
	return g
}

// group is the one of a key, with one more in it.
func (g *Grouping) group(i int, key string) *Group {
	if g.groups[i][key] == nil {
		g.groups[i][key] = &Group{Key: key}
	}
	g.groups[i][key].Count++
	return g.groups[i][key]
}

// Add counts a letter. Letters come latest death first.
func (g *Grouping) Add(l *nixie.Letter) {
	for i, by := range g.of.By {
		group := g.group(i, groupings[by](l))
		if !g.of.Described {
			continue
		}
		if group.FirstAt = l.DiedAt; group.Count == 1 {
			group.LastAt = l.DiedAt
			if by == ByFingerprint {
				group.Label, group.Reason = l.Signature, l.Reason
			}
		}
		if len(group.Examples) < Examples {
			group.Examples = append(group.Examples, l.ID)
		}
	}
}

// AddRetrying counts a message that still retries.
func (g *Grouping) AddRetrying(m *nixie.Message) {
	for i, by := range g.of.By {
		group := g.group(i, retryings[by](m))
		if m.State == nixie.Leased {
			group.Leased++
		}
	}
}

// Groups lists the groups by each property, largest first.
func (g *Grouping) Groups() [][]Group {
	lists := make([][]Group, len(g.groups))
	for i, groups := range g.groups {
		lists[i] = make([]Group, 0, len(groups))
		for _, group := range groups {
			lists[i] = append(lists[i], *group)
		}
		SortGroups(lists[i])
	}
	return lists
}

// GroupsOf are groups of which the sizes are known, largest first.
func GroupsOf(sizes map[string]int64) []Group {
	list := make([]Group, 0, len(sizes))
	for key, n := range sizes {
		list = append(list, Group{Key: key, Count: n})
	}
	SortGroups(list)
	return list
}

// SortGroups puts the largest first, and equals in the order of their keys.
func SortGroups(groups []Group) {
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key))
	})
}
