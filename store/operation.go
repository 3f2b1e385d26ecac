package store

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

// Operations keeps long work on letters, so that it can be resumed.
type Operations interface {
	// Plan freezes the selection of an operation: the letters that match the
	// filter now, oldest death first and letters of one ordered stream in its
	// order, at most max (0: all), each an item in state pending. It returns
	// the operation with its ID and counts.
	//
	// With the ID of a redrive it makes those items of it pending again whose letters
	// it moved and that died again since, and returns how it stands then. They keep
	// their places; nothing else of op matters, nor does the filter.
	Plan(ctx context.Context, op Operation, filter nixie.Filter, max int) (Operation, error)

	// Operations lists operations, newest first, with their counts.
	Operations(ctx context.Context, query OperationQuery, page Page) ([]Operation, string, error)
}

// OperationQuery says what is asked about operations. The zero value asks for all.
type OperationQuery struct {
	ID      nixie.ID // of this one alone; CodeNotFound if there is none
	Next    int      // of one: name the letters of up to so many pending items, in the order of the plan
	Outcome bool     // of one: count what became of the letters that it moved
}

// FindOperation returns the one operation that a look names.
func FindOperation(ctx context.Context, st Operations, query OperationQuery) (Operation, error) {
	if query.ID.IsZero() { // which would ask for all
		return Operation{}, NoOperation(query.ID)
	}
	list, _, err := st.Operations(ctx, query, Page{})
	if err != nil {
		return Operation{}, err
	}
	return list[0], nil
}

// NoOperation is the error of an ID that no operation has.
func NoOperation(id nixie.ID) error { return nixie.Errorf(nixie.CodeNotFound, "no operation %s", id) }

// Operation is long work on letters: an event of an operator to many. At all times
// Selected = Done + Skipped + Failed + Pending.
type Operation struct {
	ID        nixie.ID  `json:"operation"`
	Event     Event     `json:"event"`
	Actor     string    `json:"actor"`
	Reason    string    `json:"reason"`
	Filter    string    `json:"filter"` // as the person wrote it
	Force     bool      `json:"force"`
	CreatedAt time.Time `json:"created_at"`
	Selected  int64     `json:"selected"`
	Done      int64     `json:"done"`
	Skipped   int64     `json:"skipped"` // refused with CodeConflict: by status, force, cap or key
	Failed    int64     `json:"failed"`  // damaged: refused with CodeInternal
	Pending   int64     `json:"pending"`

	Destination string         `json:"destination"` // where a redrive sends letters, as the person wrote it; "" is their queues in the store
	Statuses    []nixie.Status `json:"statuses"`    // that a purge is for, see [Resolution]
	Reviewed    bool           `json:"reviewed"`    // of an unhold, see [Resolution]
	Guarded     bool           `json:"guarded"`     // a letter that changed since Plan is refused, as a dry run showed it otherwise

	Next    []nixie.ID `json:"-"` // if [OperationQuery] asks for them
	Outcome Outcome    `json:"-"` // likewise
}

// Outcome is what became of letters that a redrive moved, as far as it is known now.
// Letters that were discarded or purged since, or that another operation has moved, are
// in no count.
type Outcome struct {
	Succeeded   int64 `json:"succeeded"`    // or a broker took them
	SameFailure int64 `json:"same_failure"` // died again, of the group of failures as when they were chosen
	NewFailure  int64 `json:"new_failure"`  // died again, of another group
	UnderWay    int64 `json:"under_way"`    // neither yet
}

// Add counts n letters of a status. Same is that they are of the group of failures as
// when they were chosen.
func (o *Outcome) Add(status nixie.Status, same bool, n int64) {
	switch {
	case status == nixie.StatusResolved:
		o.Succeeded += n
	case status == nixie.StatusRedriving:
		o.UnderWay += n
	case status == nixie.StatusDiscarded:
	case same:
		o.SameFailure += n
	default:
		o.NewFailure += n
	}
}

// DiedAgain is how many died again and wait for somebody.
func (o Outcome) DiedAgain() int64 { return o.SameFailure + o.NewFailure }
