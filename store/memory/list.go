package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/filter"
	"github.com/nixie-go/nixie/store"
)

// place is where a row stands in a listing: newest first, and among equals the
// later born first. A cursor is the place of the last row of the page before.
type place struct{ at, born int64 }

func (p place) String() string { return fmt.Sprintf("%d.%d", p.at, p.born) }

func parsePlace(cursor string) (p place, err error) {
	if _, err := fmt.Sscanf(cursor, "%d.%d", &p.at, &p.born); err != nil || p.String() != cursor {
		return p, store.BadCursor(cursor)
	}
	return p, nil
}

// newestFirst orders places as listings show them.
func newestFirst(a, b place) int {
	return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.born, a.born))
}

// window cuts a page out of rows that are in the order of a listing.
func window[R any](rows []R, p store.Page, at func(R) place) ([]R, string, error) {
	limit := p.Rows()
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

// joined is the letter with its message and its history, which are the store's own.
func (l *letter) joined() nixie.Letter {
	whole := l.Letter
	whole.Message, whole.History = l.message.Message, l.message.history
	return whole
}

// find returns the letters that match, latest death first.
func (a *shared) find(f *nixie.Filter, now time.Time) []*letter {
	var found []*letter
	for _, l := range a.born {
		if whole := l.joined(); filter.MatchLetter(f, &whole, now) {
			found = append(found, l)
		}
	}
	slices.SortFunc(found, func(a, b *letter) int { return newestFirst(a.place(), b.place()) })
	return found
}

// Letters lists letters, latest death first.
func (s *Store) Letters(ctx context.Context, f nixie.Filter, page store.Page) ([]nixie.Letter, string, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	found, next, err := window(s.find(&f, now), page, (*letter).place)
	letters := make([]nixie.Letter, 0, len(found))
	for _, l := range found {
		shown := l.show(page.Whole, page.Bodies)
		shown.KeyTaken = s.queue(l.message.Queue).free(l.message) != nil
		letters = append(letters, shown)
	}
	return letters, next, err
}

// Messages lists messages, newest first.
func (s *Store) Messages(ctx context.Context, f nixie.Filter, page store.Page) ([]store.Record, string, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	var found []*message
	for _, m := range s.messages {
		if filter.MatchMessage(&f, &m.Message, now) {
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
