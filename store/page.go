package store

import (
	"cmp"

	"github.com/nixie-go/nixie"
)

// Page asks for one page of a listing. A cursor is opaque and belongs to its filter.
type Page struct {
	Limit  int // 0 is 50; at most 10,000
	Cursor string
	Whole  bool // with bodies, history and artifacts
	Bodies bool // with bodies; for letters

	// Scanned, if it is set, counts the rows that the store scanned, also those that do not match.
	// A store that can end a page early adds to it.
	Scanned *int64

	// Newest bounds the cost of a list of messages, for a person who looks: it has those that match
	// among the newest [NewestLooked] of each table where the store keeps such messages, in each
	// queue that the filter names. It may leave out older ones, and cursors lead to no more.
	Newest bool
}

// NewestLooked is the number of messages of one table that a list of the newest looks at.
const NewestLooked = 2_000

// Rows returns the largest number of rows of the page.
func (p Page) Rows() int { return min(cmp.Or(max(p.Limit, 0), 50), 10_000) }

// BadCursor returns the error for a cursor that no page has given.
func BadCursor(cursor string) error {
	return nixie.Errorf(nixie.CodeInvalid, "cursor %.40q is not from an earlier page of this listing: start without one", cursor)
}
