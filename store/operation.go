package store

import (
	"context"
	"time"

	"github.com/nixie-go/nixie"
)

// Operations keeps long work on letters, so that it can be resumed.
type Operations interface {
	// Plan freezes the selection of an operation and returns it with its ID and counts. It selects
	// the letters that match the filter now, at most max (0: all), and makes each a pending item.
	// The items are in the order of deaths, oldest first, and letters of one ordered stream in its
	// order.
	//
	// With the ID of a redrive, Plan makes items pending again whose letters have died again and
	// wait, unless another redrive has moved them since. The items keep their positions and lose
	// their outcome. The other fields of op and the filter are ignored.
	Plan(ctx context.Context, op Operation, filter nixie.Filter, max int) (Operation, error)

	// Operations lists operations, newest first, with their counts.
	Operations(ctx context.Context, query OperationQuery, page Page) ([]Operation, string, error)
}

// OperationQuery selects operations and their details. The zero value selects all.
type OperationQuery struct {
	ID   nixie.ID // this operation only; CodeNotFound if there is none
	Next int      // with ID: return the letters of up to this many pending items, in the order of the plan
}

// FindOperation returns the operation that a query names.
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

// NoOperation returns the error for an ID that no operation has.
func NoOperation(id nixie.ID) error { return nixie.Errorf(nixie.CodeNotFound, "no operation %s", id) }

// Operation applies one event to many letters. At all times Selected = Done + Skipped + Failed +
// Pending, and the outcomes of a redrive add up to Done.
type Operation struct {
	ID        nixie.ID  `json:"operation"`
	Event     Event     `json:"event"`
	Actor     string    `json:"actor"`
	Reason    string    `json:"reason"`
	Filter    string    `json:"filter"` // as the operator wrote it
	Force     bool      `json:"force"`
	CreatedAt time.Time `json:"created_at"`
	Selected  int64     `json:"selected"`
	Done      int64     `json:"done"`
	Skipped   int64     `json:"skipped"` // refused with CodeConflict: by status, force, cap or key
	Failed    int64     `json:"failed"`  // damaged: refused with CodeInternal
	Pending   int64     `json:"pending"`
	ChangedAt time.Time `json:"changed_at,omitzero"` // when a letter of it was moved, skipped or ended last; zero: never

	Destination string         `json:"destination"` // of a redrive, as the operator wrote it; "": the queues of the letters
	Statuses    []nixie.Status `json:"statuses"`    // of a purge, see [Resolution]
	Reviewed    bool           `json:"reviewed"`    // of an unhold, see [Resolution]
	Guarded     bool           `json:"guarded"`     // refuse letters that changed since Plan, because the dry run showed them otherwise

	Next    []nixie.ID `json:"-"` // set if [OperationQuery] asks for it
	Outcome Outcome    `json:"-"` // of a redrive
}

// Outcome counts what became of the letters that a redrive moved. The transaction that ends a
// message writes the outcome of its item. What is done to the letter afterwards does not change
// it; only a repeat of the same redrive begins anew, see [Operations].
type Outcome struct {
	Succeeded   int64 `json:"succeeded"`
	SameFailure int64 `json:"same_failure"` // died again in the group of failures of the plan
	NewFailure  int64 `json:"new_failure"`  // died again in another group
	Gone        int64 `json:"gone"`         // canceled or discarded before they ended
	Unobserved  int64 `json:"unobserved"`   // a broker took them, and no letter of them has come back
	UnderWay    int64 `json:"under_way"`    // still queued or leased
}

// DiedAgain counts the letters that died again.
func (o Outcome) DiedAgain() int64 { return o.SameFailure + o.NewFailure }
