package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

type operation struct {
	store.Operation // without counts
	plan            []nixie.ID
	items           map[nixie.ID]*itemState
}

type itemState string

const (
	itemPending itemState = "pending"
	itemDone    itemState = "done"
	itemSkipped itemState = "skipped"
	itemFailed  itemState = "failed"
)

// Plan freezes the selection of an operation.
func (s *Store) Plan(ctx context.Context, op store.Operation, filter nixie.Filter, limit int) (store.Operation, error) {
	if err := store.CheckEvent(op.Event); err != nil {
		return op, err
	}
	switch {
	case op.Actor == "":
		return op, nixie.Errorf(nixie.CodeInvalid, "actor is empty: say who plans the operation")
	case limit < 0:
		return op, nixie.Errorf(nixie.CodeInvalid, "operation is limited to %d letters: give 0 for all or a positive number", limit)
	}
	now, err := s.enter(ctx)
	if err != nil {
		return op, err
	}
	defer s.mu.Unlock()
	op.ID, op.CreatedAt = s.ids.New(now), now
	planned := &operation{Operation: op, items: map[nixie.ID]*itemState{}}
	found := s.find(&filter, now)
	slices.Reverse(found)
	if limit > 0 && len(found) > limit {
		found = found[:limit]
	}
	for _, l := range inStreamOrder(found) {
		state := itemPending
		planned.plan = append(planned.plan, l.ID)
		planned.items[l.ID] = &state
	}
	s.operations[op.ID] = planned
	return planned.count(), nil
}

// inStreamOrder brings the letters of one ordered stream together, in its order,
// where the first of them stands. Found is the oldest death first.
func inStreamOrder(found []*letter) []*letter {
	type stream struct{ queue, name string }
	turns := map[*letter]int{}
	first := map[stream]int{}
	for i, l := range found {
		turns[l] = i
		if m := l.message; m.ordered && m.State == nixie.Dead && l.Status.Unresolved() {
			own := stream{m.Queue, m.Stream}
			if _, ok := first[own]; !ok {
				first[own] = i
			}
			turns[l] = first[own]
		}
	}
	slices.SortStableFunc(found, func(a, b *letter) int {
		return cmp.Or(cmp.Compare(turns[a], turns[b]), byRank(a.message, b.message))
	})
	return found
}

// Operation returns an operation and the letters of its next pending items.
func (s *Store) Operation(ctx context.Context, id nixie.ID, limit int) (store.Operation, []nixie.ID, error) {
	if _, err := s.enter(ctx); err != nil {
		return store.Operation{}, nil, err
	}
	defer s.mu.Unlock()
	op := s.operations[id]
	if op == nil {
		return store.Operation{}, nil, nixie.Errorf(nixie.CodeNotFound, "no operation %s", id)
	}
	var next []nixie.ID
	for _, letter := range op.plan {
		if len(next) < limit && *op.items[letter] == itemPending {
			next = append(next, letter)
		}
	}
	return op.count(), next, nil
}

func (o *operation) count() store.Operation {
	counted := o.Operation
	counted.Selected, counted.Done, counted.Skipped, counted.Failed, counted.Pending = int64(len(o.plan)), 0, 0, 0, 0
	for _, state := range o.items {
		switch *state {
		case itemPending:
			counted.Pending++
		case itemDone:
			counted.Done++
		case itemSkipped:
			counted.Skipped++
		case itemFailed:
			counted.Failed++
		}
	}
	return counted
}

// item is the item of an operation that a resolution is about to decide, nil
// when it belongs to none. What is decided once stays so, however often an
// operation is resumed.
func (s *Store) item(r *store.Resolution) (*itemState, error) {
	if r.Operation.IsZero() {
		return nil, nil
	}
	op := s.operations[r.Operation]
	if op == nil {
		return nil, nixie.Errorf(nixie.CodeNotFound, "no operation %s", r.Operation)
	}
	item := op.items[r.Letter]
	if item == nil {
		return nil, nixie.Errorf(nixie.CodeNotFound, "letter %s is not in operation %s", r.Letter, op.ID)
	}
	if *item != itemPending {
		return nil, nixie.Errorf(nixie.CodeConflict, "letter %s is %s already in operation %s", r.Letter, *item, op.ID)
	}
	return item, nil
}
