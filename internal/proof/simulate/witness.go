package simulate

import (
	"context"
	"fmt"
	"hash"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
)

// witness is a process's handle on the store: it tells the ledger what was asked
// and answered, and writes it to the trace, in which IDs do not occur.
type witness struct {
	store.Store
	owner string
	book  *ledger
	trace hash.Hash
	moved func(int) // told how many letters were redriven
}

func (w *witness) note(format string, args ...any) {
	fmt.Fprintf(w.trace, "%d %s ", w.book.now().UnixMilli(), w.owner)
	fmt.Fprintf(w.trace, format+"\n", args...)
}

// Enqueue implements store.Store, as the others do.
func (w *witness) Enqueue(ctx context.Context, messages ...nixie.Message) ([]nixie.Receipt, error) {
	receipts, err := w.Store.Enqueue(ctx, messages...)
	w.book.accepted(messages, receipts, err)
	w.note("enqueue %s %d %s", messages[0].Key, len(messages), nixie.CodeOf(err))
	for _, r := range receipts {
		w.note("receipt %v %v", r.Duplicate, r.Different)
	}
	return receipts, err
}

func (w *witness) Claim(ctx context.Context, queue string, want nixie.Want) ([]*nixie.Delivery, error) {
	ds, err := w.Store.Claim(ctx, queue, want)
	w.book.want(err == nil, Answers, "claim: %v", err)
	w.book.claimed(queue, want, w.owner, ds)
	w.note("claim %s %d %s", queue, want.Max, nixie.CodeOf(err))
	for _, d := range ds {
		w.note("%s lease %d until %d attempts %d/%d/%d life %d abandoned %v", d.Key, d.Lease.Number, d.Lease.ExpiresAt.UnixNano(),
			d.Attempts, d.Deliveries, d.Crashes, d.Generation, d.Abandoned)
	}
	return ds, err
}

func (w *witness) Extend(ctx context.Context, ds []*nixie.Delivery, lease time.Duration) []error {
	errs := w.Store.Extend(ctx, ds, lease)
	for i, err := range errs {
		w.book.extended(ds[i], lease, err)
		w.note("extend %s %d %s", ds[i].Key, ds[i].Lease.Number, nixie.CodeOf(err))
	}
	return errs
}

func (w *witness) Settle(ctx context.Context, settlements []nixie.Settlement) []error {
	errs := w.Store.Settle(ctx, settlements)
	for i, err := range errs {
		st := &settlements[i]
		if w.book.settled(st, err) {
			w.learn(ctx, st.Delivery.ID)
		}
		w.note("%s %s %d after %d %s", st.Verb, st.Delivery.Key, st.Delivery.Lease.Number, st.Delay, nixie.CodeOf(err))
	}
	return errs
}

// learn asks for the letter of a message that died.
func (w *witness) learn(ctx context.Context, id nixie.ID) {
	e := w.book.byID[id]
	letters, _, err := w.Store.Letters(ctx, nixie.Filter{IDs: []nixie.ID{id}}, store.Page{Limit: 2})
	w.book.want(err == nil && len(letters) == 1, Office, "%s is dead and has %d letters: %v", e, len(letters), err)
	if len(letters) != 1 {
		return
	}
	l := &letters[0]
	w.book.want(e.letter.IsZero() || e.letter == l.ID, Office, "%s has got another letter", e)
	w.book.want(l.Status == e.status, Office, "%s died, and its letter is %s, not %s", e, l.Status, e.status)
	e.letter, w.book.letters[l.ID] = l.ID, e
}

func (w *witness) Amend(ctx context.Context, ids []nixie.ID, change store.Change) []error {
	errs := w.Store.Amend(ctx, ids, change)
	for i, err := range errs {
		w.book.amended(ids[i], &change, err)
		if err == nil && change.Verb == store.Hold {
			w.learn(ctx, ids[i])
		}
		w.note("%s %v %s", change.Verb, w.book.byID[ids[i]], nixie.CodeOf(err))
	}
	return errs
}

func (w *witness) Resolve(ctx context.Context, resolutions []store.Resolution) []error {
	errs := w.Store.Resolve(ctx, resolutions)
	redriven := 0
	for i, err := range errs {
		w.book.resolved(&resolutions[i], err)
		if err == nil && resolutions[i].Event == nixie.OnRedrive {
			redriven++
		}
		w.note("%s %v %s", resolutions[i].Event, w.book.letters[resolutions[i].Letter], nixie.CodeOf(err))
	}
	w.moved(redriven)
	return errs
}

func (w *witness) Plan(ctx context.Context, op store.Operation, filter nixie.Filter, most int) (store.Operation, error) {
	op, err := w.Store.Plan(ctx, op, filter, most)
	w.book.want(err == nil, Answers, "plan: %v", err)
	if err != nil {
		return op, err
	}
	planned, err := store.FindOperation(ctx, w.Store, store.OperationQuery{ID: op.ID, Next: nixie.MaxBatch})
	w.book.want(err == nil, Answers, "plan: %v", err)
	w.book.planned(op, planned.Next)
	for _, id := range planned.Next {
		w.note("plans %s of %v", op.Event, w.book.letters[id])
	}
	return op, err
}

// Features are those of the store, with its own streams.
func (w *witness) Features() store.Features {
	f := w.Store.Features()
	f.Streams = w
	return f
}

// Streams passes the question on.
func (w *witness) Streams(ctx context.Context, look store.StreamQuery, page store.Page) ([]store.Stream, string, error) {
	return w.Store.Features().Streams.Streams(ctx, look, page)
}

func (w *witness) Unblock(ctx context.Context, u store.Unblocking) (int64, error) {
	n, err := w.Store.Features().Streams.Unblock(ctx, u)
	marked := map[nixie.ID]bool{}
	if err == nil && u.Mark {
		filter := nixie.Filter{Queues: []string{u.Queue}, Streams: []string{u.Stream}, States: []nixie.State{nixie.Queued}}
		list, _, err := w.Store.Messages(ctx, filter, store.Page{Limit: nixie.MaxBatch})
		w.book.want(err == nil, Answers, "messages: %v", err)
		for i := range list {
			marked[list[i].ID] = list[i].MayPass
		}
	}
	w.book.unblocked(&u, n, marked, err)
	w.note("unblock %s %v %d %s", u.Stream, u.Mark, n, nixie.CodeOf(err))
	return n, err
}

func (w *witness) Adjust(ctx context.Context, queue, actor, reason string, edit func(*nixie.QueueSettings) error) (nixie.QueueSettings, error) {
	set, err := w.Store.Adjust(ctx, queue, actor, reason, edit)
	w.book.want(err == nil, Answers, "adjust %s: %v", queue, err)
	if err == nil {
		w.book.set(queue, set)
	}
	w.note("adjust %s paused %v", queue, set.Paused)
	return set, err
}

func (w *witness) Purge(ctx context.Context, queue string, filter nixie.Filter, most int, actor, reason string) (int, error) {
	n, err := w.Store.Purge(ctx, queue, filter, most, actor, reason)
	w.book.want(err == nil, Answers, "purge %s: %v", queue, err)
	list, _, listed := w.Store.Messages(ctx, nixie.Filter{Queues: []string{queue}, States: []nixie.State{nixie.Canceled}}, store.Page{Limit: nixie.MaxBatch})
	w.book.want(listed == nil, Answers, "messages: %v", listed)
	canceled := 0
	for i := range list {
		e := w.book.byID[list[i].ID]
		if e == nil || !e.going() {
			continue
		}
		canceled++
		w.book.lapse(e)
		w.book.want(e.state == nixie.Queued, Office, "%s is purged and was leased", e)
		w.book.end(e, nixie.Canceled, nixie.OnGone)
	}
	w.book.want(canceled == n, Office, "purge says %d, and %d are canceled", n, canceled)
	w.note("purge %s %d", queue, n)
	return n, err
}

func (w *witness) Prune(ctx context.Context, p store.Pruning) (store.Pruned, error) {
	done, err := w.Store.Prune(ctx, p)
	w.book.want(err == nil, Answers, "prune: %v", err)
	records, err := everything(ctx, w.Store)
	w.book.want(err == nil, Answers, "messages: %v", err)
	gone := w.book.pruned(records)
	w.book.want(done.Messages+done.Letters == int64(gone), Conserved, "prune says %+v, and %d messages are gone", done, gone)
	w.note("prune %d %d %d", done.Messages, done.Letters, done.Entries)
	return done, err
}
