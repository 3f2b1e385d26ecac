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

// rowPos is the position of a row in a listing: newest first, and of rows of one moment the one
// made later first. A cursor is the position of the last row of the page before.
type rowPos struct{ at, born int64 }

func (p rowPos) String() string { return fmt.Sprintf("%d.%d", p.at, p.born) }

func parsePos(cursor string) (p rowPos, err error) {
	if _, err := fmt.Sscanf(cursor, "%d.%d", &p.at, &p.born); err != nil || p.String() != cursor {
		return p, store.BadCursor(cursor)
	}
	return p, nil
}

// newestFirst compares positions.
func newestFirst(a, b rowPos) int {
	return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(b.born, a.born))
}

// window cuts a page out of rows that are sorted by newestFirst.
func window[R any](rows []R, p store.Page, at func(R) rowPos) ([]R, string, error) {
	limit := p.Rows()
	if p.Cursor != "" {
		after, err := parsePos(p.Cursor)
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

func (l *letter) pos() rowPos  { return rowPos{l.DiedAt.UnixNano(), int64(l.born)} }
func (m *message) pos() rowPos { return rowPos{m.EnqueuedAt.UnixNano(), m.born} }

// joined returns the letter with its message and history. They still belong to the store: show
// copies them.
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
	slices.SortFunc(found, func(a, b *letter) int { return newestFirst(a.pos(), b.pos()) })
	return found
}

// Letters lists letters, latest death first.
func (s *Store) Letters(ctx context.Context, f nixie.Filter, page store.Page) ([]nixie.Letter, string, error) {
	now, err := s.enter(ctx)
	if err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	found, next, err := window(s.find(&f, now), page, (*letter).pos)
	letters := make([]nixie.Letter, 0, len(found))
	for _, l := range found {
		shown := l.show(page.Whole, page.Bodies)
		shown.KeyTaken = s.queue(l.message.Queue).free(l.message) != nil
		letters = append(letters, shown)
	}
	return letters, next, err
}

// errorType returns the type of the newest failure.
func (m *message) errorType() string {
	if n := len(m.history); n > 0 {
		return m.history[n-1].Type
	}
	return ""
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
		if filter.MatchMessage(&f, &m.Message, m.errorType(), now) {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b *message) int { return newestFirst(a.pos(), b.pos()) })
	found, next, err := window(found, page, (*message).pos)
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
