package memory

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

type operation struct {
	store.Operation     // without counts
	number          int // 0, 1, 2 …
	plan            []nixie.ID
	items           map[nixie.ID]*item
}

// item is a letter in an operation.
type item struct {
	state       lifecycle.Item
	early       lifecycle.Item // the outcome that came before the confirmation
	revision    int64          // of the letter when it was selected
	fingerprint string         // of the letter when it was selected
	at          time.Time      // when the state was written; zero: it is that of the plan
}

// Plan freezes the selection of an operation.
func (s *Store) Plan(ctx context.Context, op store.Operation, filter nixie.Filter, limit int) (store.Operation, error) {
	if !op.ID.IsZero() {
		return s.planAgain(ctx, op.ID)
	}
	if err := store.CheckPlan(&op, limit); err != nil {
		return op, err
	}
	now, err := s.enter(ctx)
	if err != nil {
		return op, err
	}
	defer s.mu.Unlock()
	op.ID, op.CreatedAt = s.ids.New(now), now
	op.Statuses = slices.Clone(op.Statuses)
	planned := &operation{Operation: op, number: len(s.planned), items: map[nixie.ID]*item{}}
	found := s.find(&filter, now)
	slices.Reverse(found)
	if limit > 0 && len(found) > limit {
		found = found[:limit]
	}
	for _, l := range inStreamOrder(found) {
		planned.plan = append(planned.plan, l.ID)
		planned.items[l.ID] = &item{state: lifecycle.ItemPending, revision: l.Revision, fingerprint: l.Fingerprint}
	}
	s.operations[op.ID], s.planned = planned, append(s.planned, planned)
	return planned.count(), nil
}

// inStreamOrder moves the letters of one ordered stream together, in its order, to the position of
// the first one found. Found is sorted by death, oldest first.
func inStreamOrder(found []*letter) []*letter {
	type stream struct{ queue, name string }
	ranks := map[*letter]int{}
	first := map[stream]int{}
	for i, l := range found {
		ranks[l] = i
		if m := l.message; m.ordered && m.State == nixie.Dead && l.Status.Unresolved() {
			own := stream{m.Queue, m.Stream}
			if _, ok := first[own]; !ok {
				first[own] = i
			}
			ranks[l] = first[own]
		}
	}
	slices.SortStableFunc(found, func(a, b *letter) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), byRank(a.message, b.message))
	})
	return found
}

func (o *operation) count() store.Operation {
	counted := o.Operation
	for _, it := range o.items {
		it.state.Count(&counted, 1)
		if it.at.After(counted.ChangedAt) {
			counted.ChangedAt = it.at
		}
	}
	return counted
}

// item returns the item that a resolution decides, nil if the resolution belongs to no operation.
func (s *Store) item(r *store.Resolution) (*operation, *item, error) {
	if r.Operation.IsZero() {
		return nil, nil, nil
	}
	op, err := s.operation(r.Operation)
	if err != nil {
		return nil, nil, err
	}
	it, state := op.items[r.Letter], lifecycle.Item("")
	if it != nil {
		state = it.state
	}
	return op, it, state.Open(r, op.Event)
}

// ends writes the outcomes of the items by which operations moved a letter, if they are still to
// come.
func (s *Store) ends(now time.Time, letter nixie.ID, endings ...lifecycle.Ending) {
	for _, e := range endings {
		op := s.operations[e.Operation]
		if op == nil || op.Event != store.OnRedrive || op.items[letter] == nil {
			continue
		}
		it := op.items[letter]
		if it.state != e.From() && !(e.Sent && it.state == lifecycle.ItemPending) {
			continue
		}
		same, outcome := e.Outcome()
		if it.fingerprint == e.Fingerprint {
			outcome = same
		}
		if e.Early && it.state == lifecycle.ItemPending {
			it.early = outcome
		} else {
			it.state, it.at = outcome, now
		}
	}
}

func (s *Store) operation(id nixie.ID) (*operation, error) {
	if op := s.operations[id]; op != nil {
		return op, nil
	}
	return nil, store.NoOperation(id)
}

// Operations lists operations, newest first.
func (s *Store) Operations(ctx context.Context, query store.OperationQuery, page store.Page) ([]store.Operation, string, error) {
	if _, err := s.enter(ctx); err != nil {
		return nil, "", err
	}
	defer s.mu.Unlock()
	if !query.ID.IsZero() {
		one, err := s.showOperation(query)
		return []store.Operation{one}, "", err
	}
	before := len(s.planned)
	if page.Cursor != "" {
		n, err := strconv.Atoi(page.Cursor)
		if err != nil || n < 0 || n > before {
			return nil, "", store.BadCursor(page.Cursor)
		}
		before = n
	}
	var list []store.Operation
	for i := before - 1; i >= 0 && len(list) < page.Rows(); i-- {
		list, before = append(list, s.planned[i].count()), i
	}
	if before > 0 {
		return list, strconv.Itoa(before), nil
	}
	return list, "", nil
}

// showOperation returns one operation with the details of the query.
func (s *Store) showOperation(query store.OperationQuery) (store.Operation, error) {
	op, err := s.operation(query.ID)
	if err != nil {
		return store.Operation{}, err
	}
	shown := op.count()
	for _, letter := range op.plan {
		if len(shown.Next) < query.Next && op.items[letter].state == lifecycle.ItemPending {
			shown.Next = append(shown.Next, letter)
		}
	}
	return shown, nil
}

// planAgain makes the items of letters that died again pending again.
func (s *Store) planAgain(ctx context.Context, id nixie.ID) (store.Operation, error) {
	if _, err := s.enter(ctx); err != nil {
		return store.Operation{}, err
	}
	defer s.mu.Unlock()
	op, err := s.operation(id)
	if err != nil {
		return store.Operation{}, err
	}
	for letter, it := range op.items {
		l := s.letters[letter]
		again := it.state == lifecycle.ItemSame || it.state == lifecycle.ItemNew
		if l != nil && again && l.Operation == id && l.Status.Unresolved() && l.Status != nixie.StatusRedriving {
			*it = item{state: lifecycle.ItemPending, revision: l.Revision, fingerprint: l.Fingerprint}
		}
	}
	return op.count(), nil
}
