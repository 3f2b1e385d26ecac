package office

import (
	"context"
	"iter"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
)

// OperationView shows an operation in a list. Operation list prints it.
type OperationView struct {
	Operation   nixie.ID    `json:"operation"`
	Event       store.Event `json:"event"`
	CreatedAt   Timestamp   `json:"created_at"`
	Actor       string      `json:"actor"`
	Reason      string      `json:"reason"`
	Filter      string      `json:"filter"`      // as the operator wrote it
	Destination string      `json:"destination"` // the channel of a redrive, "" for the letters' queues
	Force       bool        `json:"force"`
	Guarded     bool        `json:"guarded"` // kept by a dry run: letters that changed since are skipped
	Selected    int64       `json:"selected"`
	Done        int64       `json:"done"`
	Skipped     int64       `json:"skipped"`
	Failed      int64       `json:"failed"`
	Pending     int64       `json:"pending"`
}

// OperationDetail shows an operation and the outcomes of its letters. Operation show prints it.
type OperationDetail struct {
	OperationView
	Outcome *store.Outcome `json:"outcome"` // of a redrive, null of others
}

// ViewOperation makes the view of an operation in a list.
func ViewOperation(op *store.Operation) OperationView {
	return OperationView{
		Operation: op.ID, Event: op.Event, CreatedAt: Timestamp{op.CreatedAt}, Actor: op.Actor, Reason: op.Reason, Filter: op.Filter,
		Destination: op.Destination, Force: op.Force, Guarded: op.Guarded,
		Selected: op.Selected, Done: op.Done, Skipped: op.Skipped, Failed: op.Failed, Pending: op.Pending,
	}
}

// Operations lists operations, newest first, and returns the cursor of the next page.
func (o *Office) Operations(ctx context.Context, p store.Page) ([]store.Operation, string, error) {
	return o.store.Operations(ctx, store.OperationQuery{}, p)
}

// AllOperations yields all operations, newest first.
func (o *Office) AllOperations(ctx context.Context) iter.Seq2[store.Operation, error] {
	return all(false, func(p store.Page) ([]store.Operation, string, error) {
		return o.store.Operations(ctx, store.OperationQuery{}, p)
	})
}

// OperationDetail returns an operation with the outcomes of a redrive.
func (o *Office) OperationDetail(ctx context.Context, id nixie.ID) (OperationDetail, error) {
	op, err := store.FindOperation(ctx, o.store, store.OperationQuery{ID: id, Outcome: true})
	detail := OperationDetail{OperationView: ViewOperation(&op)}
	if op.Event == store.OnRedrive {
		detail.Outcome = &op.Outcome
	}
	return detail, err
}

// CountNeedingForce counts the refused letters that a redrive with force would move.
func (o *Office) CountNeedingForce(ctx context.Context, refused []redrive.Refusal) (n int, err error) {
	var ids []nixie.ID
	for _, refusal := range refused {
		ids = append(ids, refusal.Letter)
	}
	letters, _, err := o.store.Letters(ctx, nixie.Filter{IDs: ids, Statuses: []nixie.Status{nixie.StatusOpen, nixie.StatusReview}},
		store.Page{Limit: len(ids)})
	for i := range letters {
		if !letters[i].Redrivable || letters[i].NeedsReview {
			n++
		}
	}
	return n, err
}
