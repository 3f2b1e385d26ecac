package simulate

import (
	"context"
	"slices"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/storetest"
)

// everything reads all messages, without bodies.
func everything(ctx context.Context, st store.Store) ([]store.Record, error) {
	var all []store.Record
	for page := (store.Page{Limit: nixie.MaxBatch}); ; {
		part, next, err := st.Messages(ctx, nixie.Filter{}, page)
		all = append(all, part...)
		if err != nil || next == "" {
			return all, err
		}
		page.Cursor = next
	}
}

// pruned takes down which messages are gone after a prune, and judges whether
// their time had come.
func (l *ledger) pruned(records []store.Record) (gone int) {
	kept := map[nixie.ID]bool{}
	for i := range records {
		kept[records[i].ID] = true
	}
	for _, e := range l.entries {
		if !e.prunedAt.IsZero() || kept[e.id] {
			continue
		}
		gone++
		messages, letters, _ := l.queues[e.queue].Kept()
		ended, keep := e.endedAt, messages
		if e.status != "" {
			ended, keep = e.resolvedAt, letters
		}
		l.want(!ended.IsZero() && keep != nixie.Forever && !ended.After(l.now().Add(-keep)), Conserved, "%s is pruned: %s, ended at %s, letter %q", e, e.state, ended, e.status)
		l.seen["pruned"]++
		l.remove(e, nixie.ID{})
	}
	return gone
}

// census compares the store with the ledger.
func (l *ledger) census(ctx context.Context, st store.Store) {
	records, err := everything(ctx, st)
	l.want(err == nil, Answers, "messages: %v", err)
	kept := map[nixie.ID]*store.Record{}
	for i := range records {
		kept[records[i].ID] = &records[i]
	}
	l.want(len(kept) == len(records), Conserved, "%d messages have %d IDs", len(records), len(kept))
	there := 0
	for _, e := range l.entries {
		if !e.prunedAt.IsZero() {
			continue
		}
		there++
		if r := kept[e.id]; r == nil {
			l.want(false, Conserved, "%s is lost; it was %s", e, e.state)
		} else {
			l.compare(e, r)
		}
	}
	l.want(there == len(records), Conserved, "%d messages are there, %d were taken in and kept", len(records), there)
	l.countOperations(ctx, st)
}

// compare compares one message. What a lease that is over became nobody can tell
// before the next claim.
func (l *ledger) compare(e *entry, r *store.Record) {
	attempts, crashes, over := r.Attempts, r.Crashes, l.over(e)
	if over && r.State == nixie.Queued && !e.vanished || e.perhaps && crashes > e.crashes {
		attempts, crashes = attempts+1, crashes-1
	}
	l.want(r.State == e.state || over && r.State == nixie.Queued, Conserved, "%s is %s, expected %s", e, r.State, e.state)
	l.want(attempts == e.attempts && r.Deliveries == e.deliveries && crashes == e.crashes && r.Generation == e.life, Numbers,
		"%s has %d attempts, %d deliveries, %d crashes in life %d; expected %d, %d, %d in %d",
		e, attempts, r.Deliveries, crashes, r.Generation, e.attempts, e.deliveries, e.crashes, e.life)
	l.want(r.Hash == e.hash, Whole, "%s has another hash", e)
	l.want(slices.Equal(r.Steps, e.steps), Whole, "%s has the steps %q, expected %q", e, r.Steps, e.steps)
	l.want(over || r.MayPass == e.mayPass, Ordered, "%s may pass: %v, expected %v", e, r.MayPass, e.mayPass)
}

// countOperations looks whether each operation adds up.
func (l *ledger) countOperations(ctx context.Context, st store.Store) {
	for id, items := range l.operations {
		op, err := store.FindOperation(ctx, st, store.OperationQuery{ID: id})
		l.want(err == nil, Answers, "operation: %v", err)
		decided := int64(0)
		for _, d := range items {
			if d {
				decided++
			}
		}
		l.want(op.Selected == op.Done+op.Skipped+op.Failed+op.Pending && op.Selected == int64(len(items)) && op.Selected-op.Pending == decided, Once,
			"operation selected %d of %d, done %d, skipped %d, failed %d, pending %d; %d are decided", op.Selected, len(items), op.Done, op.Skipped, op.Failed, op.Pending, decided)
	}
}

// audit checks the invariants that hold of any store.
func (l *ledger) audit(ctx context.Context, st store.Store) {
	broken, err := storetest.Broken(ctx, st)
	l.want(err == nil, Answers, "reading the store: %v", err)
	for _, b := range broken {
		l.want(false, Sound, "%s", b)
	}
}
