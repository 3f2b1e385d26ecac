package runner

import (
	"cmp"
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/internal/items"
	"github.com/nixie-go/nixie/store"
)

// Leftovers are unfinished items of a job that its present list does not have: the job ran with
// another list before. They run with the command of this run too.
type Leftovers struct {
	Items int
	Names []string // of some, oldest first
}

// shownLeftovers limits the names of leftovers.
const shownLeftovers = 3

// leftovers finds the leftovers. A list that has all unfinished items needs no second look: so a
// large job that goes on costs no memory.
func (in *intake) leftovers(ctx context.Context, unfinished int64) (Leftovers, error) {
	var left Leftovers
	if in.unfinished >= unfinished {
		return left, nil
	}
	var names []string
	byID := map[string]string{}
	filter := nixie.Filter{Queues: []string{in.r.c.Job}, States: []nixie.State{nixie.Queued, nixie.Leased}}
	for page := (store.Page{Limit: 2 * intakeBatch}); ; {
		list, next, err := in.r.store.Messages(ctx, filter, page)
		if err != nil {
			return left, err
		}
		for i := range list {
			id := idOf(&list[i])
			byID[id] = cmp.Or(list[i].Key, id)
			names = append(names, id)
		}
		if page.Cursor = next; next == "" {
			break
		}
	}
	if err := in.reader.Rewind(); err != nil {
		return left, err
	}
	err := in.each(ctx, func(_ context.Context, batch []items.Item) error {
		for i := range batch {
			delete(byID, batch[i].ID)
		}
		return nil
	})
	left.Items = len(byID)
	for _, id := range slices.Backward(names) { // a listing has the newest first
		if name, is := byID[id]; is && len(left.Names) < shownLeftovers {
			left.Names = append(left.Names, name)
		}
	}
	return left, err
}

// idOf returns the ID of the item in a message: the key of a line is not its ID.
func idOf(r *store.Record) string { return cmp.Or(r.DedupeKey, r.Key) }
