package office

import (
	"cmp"
	"context"
	"iter"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/redrive"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// OperationView shows an operation. Operation list and operation show print it.
type OperationView struct {
	Operation   nixie.ID    `json:"operation"`
	Event       store.Event `json:"event"`
	CreatedAt   Timestamp   `json:"created_at"`
	EndedAt     Timestamp   `json:"ended_at"` // when its last letter was decided, and of a redrive had its outcome; null before
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

	Outcome *store.Outcome `json:"outcome"` // of a redrive, adds up to Done; null of others
}

// ViewOperation makes the view of an operation.
func ViewOperation(op *store.Operation) OperationView {
	v := OperationView{
		Operation: op.ID, Event: op.Event, CreatedAt: Timestamp{op.CreatedAt}, Actor: op.Actor, Reason: op.Reason, Filter: op.Filter,
		Destination: op.Destination, Force: op.Force, Guarded: op.Guarded,
		Selected: op.Selected, Done: op.Done, Skipped: op.Skipped, Failed: op.Failed, Pending: op.Pending,
	}
	if op.Pending == 0 && op.Outcome.UnderWay == 0 {
		v.EndedAt = Timestamp{cmp.Or(op.ChangedAt, op.CreatedAt)} // without letters it ended as it began
	}
	if op.Event == store.OnRedrive {
		v.Outcome = &op.Outcome
	}
	return v
}

// pendingRead limits the letters of an operation that are read to tell whether it waits.
const pendingRead = 100

// Waits reports whether letters of an operation are to go that can be moved. Others were moved by
// another operation since, or removed. Of more than 100 it takes that for granted.
func (o *Office) Waits(ctx context.Context, op *store.Operation) (bool, error) {
	if op.Pending == 0 || op.Pending > pendingRead {
		return op.Pending > 0, nil
	}
	found, err := store.FindOperation(ctx, o.store, store.OperationQuery{ID: op.ID, Next: pendingRead})
	if err != nil || len(found.Next) == 0 {
		return false, err
	}
	f := nixie.Filter{IDs: found.Next}
	for _, s := range nixie.Statuses() {
		if lifecycle.May(s, op.Event) {
			f.Statuses = append(f.Statuses, s)
		}
	}
	list, _, err := o.store.Letters(ctx, f, store.Page{Limit: 1})
	return len(list) > 0, err
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

// CountNeedingForce counts the refused letters that a redrive with force would move.
func (o *Office) CountNeedingForce(ctx context.Context, refused []redrive.Refusal) (n int, err error) {
	var ids []nixie.ID
	for _, refusal := range refused {
		ids = append(ids, refusal.Letter)
	}
	letters, _, err := o.store.Letters(ctx, nixie.Filter{IDs: ids, Statuses: []nixie.Status{nixie.StatusOpen, nixie.StatusReview}},
		store.Page{Limit: len(ids)})
	for i := range letters {
		m := &letters[i].Message
		expired := !m.ExpiresAt.IsZero() && !o.clock().Before(m.ExpiresAt) // force is no help then
		if !expired && (!letters[i].Redrivable || letters[i].NeedsReview) {
			n++
		}
	}
	return n, err
}
