package store

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nixie-go/nixie"
)

// Counting says by which properties letters or messages are counted.
type Counting struct {
	By   []GroupBy
	Scan Scan

	// Described asks for all fields of the groups. Without it they have Key and Count only, which
	// costs less.
	Described bool

	// Retrying counts messages instead of letters, by properties of [RetryingBy]: the messages of
	// which [nixie.Message.Retrying] holds. Their groups have Key, Count and Leased only.
	Retrying bool
}

// Sizes returns the sizes of groups by their keys.
func Sizes(groups []Group) map[string]int64 {
	sizes := make(map[string]int64, len(groups))
	for i := range groups {
		sizes[groups[i].Key] = groups[i].Count
	}
	return sizes
}

// Scan says how far a store goes to count letters.
type Scan int

const (
	ScanRecent Scan = iota // the newest letters: answers soon, also for very many letters
	ScanAll                // all letters, however long it takes
)

// Coverage says how many letters an answer covers: the Newest ones, Of those that may match. The
// zero value covers all.
type Coverage struct {
	Newest int64 `json:"newest"`
	Of     int64 `json:"of"`
}

// All reports whether nothing was left out.
func (l Coverage) All() bool { return l == Coverage{} }

// Group counts letters that have a property in common.
type Group struct {
	Key      string       `json:"key"` // value of the property
	Label    string       `json:"label,omitempty"`
	Reason   nixie.Reason `json:"reason,omitempty"`
	Count    int64        `json:"count"`
	Leased   int64        `json:"leased,omitempty"`  // of messages that still retry: number whose next attempt runs
	FirstAt  time.Time    `json:"first_at,omitzero"` // earliest death
	LastAt   time.Time    `json:"last_at,omitzero"`  // latest death
	Examples []nixie.ID   `json:"examples,omitempty"`
}

// GroupBy names a property by which letters are grouped.
type GroupBy string

// The properties.
const (
	ByFingerprint GroupBy = "fingerprint" // label: signature
	ByReason      GroupBy = "reason"
	ByClass       GroupBy = "class"
	ByType        GroupBy = "type"
	ByQueue       GroupBy = "queue"
	ByStatus      GroupBy = "status"
	ByHour        GroupBy = "hour" // of death, UTC, as [HourForm]
	ByRedrivable  GroupBy = "redrivable"
	ByReview      GroupBy = "needs_review"
	ByQueueHour   GroupBy = "queue-hour" // hour of death, a blank, and the queue; not described
	ByAttempts    GroupBy = "attempts"   // in its last generation
	ByLabel       GroupBy = "label"      // fingerprint, reason, type and signature, a line each; not described
)

// HourForm is the form of the hours that letters are grouped by.
const HourForm = "2006-01-02T15"

// RetryingBy lists the properties by which messages that still retry can be counted.
func RetryingBy() []GroupBy { return []GroupBy{ByAttempts, ByReason, ByType, ByQueue} }

// Examples limits the letters that a group names.
const Examples = 3

// groupings has a function for each property that reads it from a letter.
var groupings = map[GroupBy]func(*nixie.Letter) string{
	ByFingerprint: func(l *nixie.Letter) string { return l.Fingerprint },
	ByReason:      func(l *nixie.Letter) string { return string(l.Reason) },
	ByClass:       func(l *nixie.Letter) string { return string(l.Class) },
	ByType:        func(l *nixie.Letter) string { return l.Message.Type },
	ByQueue:       func(l *nixie.Letter) string { return l.Message.Queue },
	ByStatus:      func(l *nixie.Letter) string { return string(l.Status) },
	ByHour:        func(l *nixie.Letter) string { return l.DiedAt.UTC().Format(HourForm) },
	ByQueueHour:   func(l *nixie.Letter) string { return l.DiedAt.UTC().Format(HourForm) + " " + l.Message.Queue },
	ByLabel: func(l *nixie.Letter) string {
		return l.Fingerprint + "\n" + string(l.Reason) + "\n" + l.Message.Type + "\n" + l.Signature
	},
	ByRedrivable: func(l *nixie.Letter) string { return yesNo(l.Redrivable) },
	ByReview:     func(l *nixie.Letter) string { return yesNo(l.NeedsReview) },
	ByAttempts: func(l *nixie.Letter) string {
		attempts, _ := l.Spent()
		return strconv.Itoa(attempts)
	},
}

// yesNo writes a flag as filters do.
func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// retryings has a function for each property of [RetryingBy] that reads it from a message.
var retryings = map[GroupBy]func(*nixie.Message) string{
	ByAttempts: func(m *nixie.Message) string { return strconv.Itoa(m.Attempts) },
	ByReason:   func(m *nixie.Message) string { return string(m.LastReason) },
	ByType:     func(m *nixie.Message) string { return m.Type },
	ByQueue:    func(m *nixie.Message) string { return m.Queue },
}

// Check returns an error of CodeInvalid for a property that cannot be counted by.
func (c *Counting) Check() error {
	for _, by := range c.By {
		switch {
		case c.Retrying && retryings[by] == nil:
			return nixie.Errorf(nixie.CodeInvalid, "messages that retry cannot be counted by %q: give one of %s", by, names(retryings))
		case !c.Retrying && groupings[by] == nil:
			return nixie.Errorf(nixie.CodeInvalid, "letters cannot be grouped by %q: give one of %s", by, names(groupings))
		case c.Described && (by == ByQueueHour || by == ByLabel):
			return nixie.Errorf(nixie.CodeInvalid, "groups by %q have sizes only: count them without a description", by)
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

// Grouping counts letters or messages for stores that scan them. It is not safe for concurrent use.
type Grouping struct {
	of     Counting
	groups []map[string]*Group // for each property the groups by their keys
}

// NewGrouping makes an empty Grouping. The counting has passed its Check.
func NewGrouping(of Counting) *Grouping {
	g := &Grouping{of, make([]map[string]*Group, len(of.By))}
	for i := range g.groups {
		g.groups[i] = map[string]*Group{}
	}
	return g
}

// group counts one more in the group of a key, and returns it.
func (g *Grouping) group(i int, key string) *Group {
	if g.groups[i][key] == nil {
		g.groups[i][key] = &Group{Key: key}
	}
	g.groups[i][key].Count++
	return g.groups[i][key]
}

// Add counts a letter. The caller adds letters in the order of their deaths, latest first.
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

// SortGroups sorts by size, largest first, then by key.
func SortGroups(groups []Group) {
	type item struct { // of a group: small ones move at less cost, and most differ in what they have
		count  int64
		prefix uint64 // of the key
		at     int
	}
	items := make([]item, len(groups))
	for i := range groups {
		items[i] = item{groups[i].Count, prefixOf(groups[i].Key), i}
	}
	slices.SortFunc(items, func(a, b item) int {
		switch {
		case a.count != b.count:
			return cmp.Compare(b.count, a.count)
		case a.prefix != b.prefix:
			return cmp.Compare(a.prefix, b.prefix)
		}
		return cmp.Compare(groups[a.at].Key, groups[b.at].Key)
	})
	for i := range items { // what moves in a circle needs room for one group
		first, to := groups[i], i
		for from := items[to].at; from >= 0 && from != i; from = items[to].at {
			groups[to], items[to].at = groups[from], -1
			to = from
		}
		if items[to].at == i {
			groups[to], items[to].at = first, -1
		}
	}
}

// prefixOf returns the first 8 bytes of a text, which compare as the texts do unless equal.
func prefixOf(text string) uint64 {
	var first [8]byte
	copy(first[:], text)
	return binary.BigEndian.Uint64(first[:])
}
