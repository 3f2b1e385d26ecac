package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// Bounds of a page.
const (
	defaultPage = 50
	maxPage     = 10_000
)

func pageLimit(p store.Page) int {
	return min(cmp.Or(max(p.Limit, 0), defaultPage), maxPage)
}

func badCursor(cursor string) error {
	return nixie.Errorf(nixie.CodeInvalid, "cursor %.40q is not from an earlier page of this listing: start without one", cursor)
}

// place is where a row stands in a listing: newest first, and among equals the
// later born first. A cursor is the place of the last row of the page before.
type place struct{ at, born int64 }

func (p place) String() string { return fmt.Sprintf("%d.%d", p.at, p.born) }

func parsePlace(cursor string) (p place, err error) {
	if _, err := fmt.Sscanf(cursor, "%d.%d", &p.at, &p.born); err != nil || p.String() != cursor {
		return p, badCursor(cursor)
	}
	return p, nil
}

// newestFirst orders places as listings show them.
func newestFirst(a, b place) int {
	return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.born, a.born))
}

// window cuts a page out of rows that are in the order of a listing.
func window[R any](rows []R, p store.Page, at func(R) place) ([]R, string, error) {
	limit := pageLimit(p)
	if p.Cursor != "" {
		after, err := parsePlace(p.Cursor)
		if err != nil {
			return nil, "", err
		}
		rows = slices.DeleteFunc(rows, func(r R) bool { return newestFirst(at(r), after) <= 0 })
	}
	if len(rows) <= limit {
		return rows, "", nil
	}
	return rows[:limit], at(rows[limit-1]).String(), nil
}

func (l *letter) place() place  { return place{l.DiedAt.UnixNano(), int64(l.born)} }
func (m *message) place() place { return place{m.EnqueuedAt.UnixNano(), m.born} }

// find returns the letters that match, latest death first.
func (a *shared) find(f *nixie.Filter, now time.Time) []*letter {
	var found []*letter
	for _, l := range a.born {
		shown := l.Letter
		shown.Message, shown.History = l.message.Message, l.message.history
		if f.MatchLetter(&shown, now) {
			found = append(found, l)
		}
	}
	slices.SortFunc(found, func(a, b *letter) int { return newestFirst(a.place(), b.place()) })
	return found
}

// Letters lists letters, latest death first.
func (s *Store) Letters(ctx context.Context, filter nixie.Filter, page store.Page) ([]nixie.Letter, string, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	found, next, err := window(s.find(&filter, now), page, (*letter).place)
	letters := make([]nixie.Letter, 0, len(found))
	for _, l := range found {
		shown := l.show(page.Whole, page.Bodies)
		shown.KeyTaken = s.queue(l.message.Queue).free(l.message) != nil
		letters = append(letters, shown)
	}
	return letters, next, err
}

// Messages lists messages, newest first.
func (s *Store) Messages(ctx context.Context, filter nixie.Filter, page store.Page) ([]store.Record, string, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	var found []*message
	for _, m := range s.messages {
		if filter.MatchMessage(&m.Message, now) {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b *message) int { return newestFirst(a.place(), b.place()) })
	found, next, err := window(found, page, (*message).place)
	records := make([]store.Record, 0, len(found))
	for _, m := range found {
		r := store.Record{Message: m.show(page.Whole), HistoryDropped: m.dropped}
		if page.Whole {
			r.History = showHistory(m.history)
		}
		records = append(records, r)
	}
	return records, next, err
}

// examples is how many letters of a group are named.
const examples = 3

// Groups counts letters by one property, largest group first. It always looks at all.
func (s *Store) Groups(ctx context.Context, filter nixie.Filter, _ store.Look, by nixie.GroupBy) ([]nixie.Group, store.Looked, error) {
	if _, ok := groupKey(&letter{message: &message{}}, by); !ok {
		return nil, store.Looked{}, unknownGrouping(by)
	}
	now, err := s.enter(ctx)
	if err != nil {
		return nil, store.Looked{}, err
	}
	defer s.mu.Unlock()
	groups := map[string]*nixie.Group{}
	for _, l := range s.find(&filter, now) {
		key, _ := groupKey(l, by)
		g := groups[key]
		if g == nil {
			g = &nixie.Group{Key: key, LastAt: l.DiedAt}
			if by == nixie.ByFingerprint {
				g.Label, g.Reason = l.Signature, l.Reason
			}
			groups[key] = g
		}
		g.Count++
		g.FirstAt = l.DiedAt // letters come latest death first
		if len(g.Examples) < examples {
			g.Examples = append(g.Examples, l.ID)
		}
	}
	sorted := make([]nixie.Group, 0, len(groups))
	for _, g := range groups {
		sorted = append(sorted, *g)
	}
	slices.SortFunc(sorted, func(a, b nixie.Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Key, b.Key))
	})
	return sorted, store.Looked{}, nil
}

// Counts counts letters by several properties. It always looks at all.
func (s *Store) Counts(ctx context.Context, filter nixie.Filter, _ store.Look, by ...nixie.GroupBy) ([]map[string]int64, store.Looked, error) {
	for _, g := range by {
		if _, ok := groupKey(&letter{message: &message{}}, g); !ok {
			return nil, store.Looked{}, unknownGrouping(g)
		}
	}
	now, err := s.enter(ctx)
	if err != nil {
		return nil, store.Looked{}, err
	}
	defer s.mu.Unlock()
	found := s.find(&filter, now)
	counts := make([]map[string]int64, len(by))
	for i, g := range by {
		counts[i] = map[string]int64{}
		for _, l := range found {
			key, _ := groupKey(l, g)
			counts[i][key]++
		}
	}
	return counts, store.Looked{}, nil
}

func unknownGrouping(by nixie.GroupBy) error {
	return nixie.Errorf(nixie.CodeInvalid, "letters cannot be grouped by %q: use one of those in package nixie", by)
}

func groupKey(l *letter, by nixie.GroupBy) (key string, ok bool) {
	switch by {
	case nixie.ByFingerprint:
		return l.Fingerprint, true
	case nixie.ByReason:
		return string(l.Reason), true
	case nixie.ByClass:
		return string(l.Class), true
	case nixie.ByType:
		return l.message.Type, true
	case nixie.ByQueue:
		return l.message.Queue, true
	case nixie.ByStatus:
		return string(l.Status), true
	case nixie.ByHour:
		return l.DiedAt.UTC().Format("2006-01-02T15"), true
	case nixie.ByRedrivable:
		return yesNo(l.Redrivable), true
	case nixie.ByAttempts:
		return strconv.Itoa(l.message.Attempts), true
	case nixie.ByReview:
		return yesNo(l.NeedsReview), true
	}
	return "", false
}

// yesNo is how filters write a flag.
func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
