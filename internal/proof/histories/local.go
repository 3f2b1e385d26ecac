package histories

import (
	"context"
	"errors"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
)

// Client is a process that uses a store, or a part of this one. It is safe for
// concurrent use.
type Client interface {
	// Do does a call. A client that cannot tell what became of it answers
	// CodeOutcomeUnknown; CodeUnavailable says that nothing happened.
	Do(call Call) Answer
	// Close ends the client in order.
	Close() error
	// Kill ends it without a goodbye. Where that cannot be, it is Close.
	Kill() error
}

// Tx is a transaction of the caller in which an effect can be written.
type Tx struct {
	store.Tx
	Write            func(ctx context.Context, e Effect) error
	Commit, Rollback func() error
}

// Local is a client in this process.
type Local struct {
	Store store.Store
	Begin func(ctx context.Context) (Tx, error) // nil: the store has no transactions
	Crash func()                                // nil: it can only be closed
}

var _ Client = Local{}

// Close implements Client.
func (l Local) Close() error { return l.Store.Close() }

// Kill implements Client.
func (l Local) Kill() error {
	if l.Crash == nil {
		return l.Close()
	}
	l.Crash()
	return nil
}

// Do implements Client.
func (l Local) Do(c Call) Answer {
	ctx := context.Background()
	if c.Patience > 0 {
		limited, stop := context.WithTimeout(ctx, c.Patience)
		defer stop()
		ctx = limited
	}
	switch c.Kind {
	case Enqueue:
		return l.enqueue(ctx, &c)
	case Claim:
		ds, err := l.Store.Claim(ctx, c.Queue, nixie.Want{Max: c.Max, Lease: c.Lease})
		a := answer(err)
		for _, d := range ds {
			a.Loans = append(a.Loans, loanOf(d))
		}
		return a
	case Extend:
		return parts(l.Store.Extend(ctx, deliveries(c.Loans), c.Lease))
	case Settle:
		return parts(l.Store.Settle(ctx, settlements(&c)))
	case Finish:
		return l.finish(ctx, &c)
	case Cancel, Hold, RetryNow:
		return answer(l.Store.Amend(ctx, []nixie.ID{c.Message}, change(c.Kind))[0])
	case Redrive, Drop:
		return answer(l.resolve(ctx, &c))
	case Resume:
		_, err := l.Store.Adjust(ctx, c.Queue, operator, "", func(s *nixie.QueueSettings) error {
			s.Paused, s.PausedNote = false, ""
			return nil
		})
		return answer(err)
	case Configure:
		return answer(store.Configure(ctx, l.Store, c.Queue, nixie.QueueSettings{Order: c.Order, DeadHead: c.Head}, operator, ""))
	case Look:
		return l.look(ctx, nixie.Filter{IDs: []nixie.ID{c.Message}})
	case LookAll:
		return l.look(ctx, nixie.Filter{})
	}
	return answer(nixie.Errorf(nixie.CodeInvalid, "call of kind %q: use one of the constants", c.Kind))
}

const operator = "ann"

func answer(err error) Answer {
	a := Answer{Code: nixie.CodeOf(err)}
	if err != nil {
		a.Text = err.Error()
	}
	return a
}

func parts(errs []error) Answer {
	a := Answer{Parts: make([]nixie.Code, len(errs))}
	for i, err := range errs {
		if a.Parts[i] = nixie.CodeOf(err); err != nil {
			a.Text = err.Error()
		}
	}
	return a
}

func (l Local) enqueue(ctx context.Context, c *Call) Answer {
	ms := make([]nixie.Message, len(c.Messages))
	for i, m := range c.Messages {
		ms[i] = nixie.Message{ID: m.ID, Queue: c.Queue, Stream: m.Stream, DedupeKey: m.Key, Delay: m.Delay, Body: []byte(m.ID.String())}
		if m.Refuse {
			ms[i].OnConflict = nixie.FailOnConflict
		}
	}
	receipts, err := l.Store.Enqueue(ctx, ms...)
	a := answer(err)
	a.Receipts = receipts
	var taken *nixie.DuplicateError
	if errors.As(err, &taken) {
		a.Holder = taken.Existing
	}
	return a
}

// finish completes a message together with an effect. What fails before the
// commit has not happened; what fails at it may have.
func (l Local) finish(ctx context.Context, c *Call) Answer {
	tx, err := l.Begin(ctx)
	if err != nil { // nothing has begun: a pool that was just closed has no code
		return answer(nixie.Errorf(nixie.CodeUnavailable, "no transaction: %w", err))
	}
	d := deliveries(c.Loans)[0]
	err = errors.Join(d.Then(follows(c, 0)...), tx.Write(ctx, Effect{Number: c.Effect, Message: d.ID, Generation: d.Generation}))
	if err == nil {
		err = tx.Complete(ctx, d)
	}
	switch {
	case err != nil:
		_ = tx.Rollback() // a context that ended did it already
		return answer(nothing(ctx, err))
	case c.Undo:
		return answer(errors.Join(tx.Rollback(), nixie.Errorf(nixie.CodeUnavailable, "rolled back on purpose")))
	}
	if err := tx.Commit(); err != nil {
		return answer(nixie.Errorf(nixie.CodeOutcomeUnknown, "commit: %w", err))
	}
	return Answer{}
}

// nothing labels an error that is the end of the caller's patience: the driver's
// own has no code.
func nothing(ctx context.Context, err error) error {
	if ctx.Err() != nil && nixie.CodeOf(err) != nixie.CodeLeaseLost {
		return nixie.Errorf(nixie.CodeUnavailable, "the caller left: %w", err)
	}
	return err
}

func (l Local) resolve(ctx context.Context, c *Call) error {
	letters, _, err := l.Store.Letters(ctx, nixie.Filter{IDs: []nixie.ID{c.Message}}, store.Page{})
	switch {
	case err != nil:
		return err
	case len(letters) == 0:
		return nixie.Errorf(nixie.CodeNotFound, "message %s has no letter", c.Message)
	}
	r := store.Resolution{Letter: letters[0].ID, Event: store.OnRedrive, Actor: operator, Reason: "because", Force: true}
	if c.Kind == Drop {
		r.Event = store.OnDiscard
	}
	return l.Store.Resolve(ctx, []store.Resolution{r})[0]
}

// look lists messages; a history has fewer than a page of them.
func (l Local) look(ctx context.Context, f nixie.Filter) Answer {
	rs, _, err := l.Store.Messages(ctx, f, store.Page{Limit: 2 * (maxMessages + maxCalls*maxLoans*followers)})
	a := answer(err)
	for i := range rs {
		if rs[i].Queue == after {
			a.Followed = append(a.Followed, rs[i].Key)
		} else {
			a.Found = append(a.Found, foundOf(&rs[i]))
		}
	}
	return a
}

func foundOf(r *store.Record) Found {
	return Found{
		ID: r.ID, State: r.State, Attempts: r.Attempts, Deliveries: r.Deliveries, Crashes: r.Crashes,
		Generation: r.Generation, Redrives: r.Redrives, Owner: r.LeaseOwner,
	}
}

func loanOf(d *nixie.Delivery) Loan {
	return Loan{
		ID: d.ID, Queue: d.Queue, Stream: d.Stream, Key: d.DedupeKey,
		Attempts: d.Attempts, Deliveries: d.Deliveries, Crashes: d.Crashes, Generation: d.Generation, Redrives: d.Redrives,
		Number: d.Lease.Number, Owner: d.Lease.Owner, Until: d.Lease.ExpiresAt, Abandoned: d.Abandoned, AbandonedBy: d.AbandonedBy,
		Pos: d.Lease.Handle.Pos, Batch: d.Lease.Handle.Batch, Member: d.Lease.Handle.Member,
	}
}

func deliveries(loans []Loan) []*nixie.Delivery {
	ds := make([]*nixie.Delivery, len(loans))
	for i, l := range loans {
		ds[i] = &nixie.Delivery{
			Message: nixie.Message{
				ID: l.ID, Queue: l.Queue, Stream: l.Stream, DedupeKey: l.Key,
				Attempts: l.Attempts, Deliveries: l.Deliveries, Crashes: l.Crashes, Generation: l.Generation, Redrives: l.Redrives,
			},
			Lease: nixie.Lease{Number: l.Number, Owner: l.Owner, ExpiresAt: l.Until, Handle: nixie.LeaseHandle{Pos: l.Pos,
				Batch: l.Batch, Member: l.Member}},
			Abandoned: l.Abandoned, AbandonedBy: l.AbandonedBy,
		}
		lease.Ready(ds[i])
	}
	return ds
}

func settlements(c *Call) []nixie.Settlement {
	sts := make([]nixie.Settlement, len(c.Loans))
	for i, d := range deliveries(c.Loans) {
		sts[i] = nixie.Settlement{Delivery: d, Verb: c.Verb, Delay: c.Delay, Then: follows(c, i)}
		if c.Verb != nixie.Complete && c.Verb != nixie.Release {
			sts[i].Failure = failure(c.Verb, d.Attempts)
		}
		switch c.Verb {
		case nixie.Bury, nixie.Halt:
			sts[i].Burial = burial(nixie.StatusOpen)
		case nixie.Hold:
			sts[i].Burial = burial(nixie.StatusReview)
		}
	}
	return sts
}

// follows makes the messages that follow the settlement of the i-th loan.
func follows(c *Call, i int) []nixie.Message {
	if c.Follows == 0 {
		return nil
	}
	list := make([]nixie.Message, followers)
	for n := range list {
		list[n] = nixie.Message{Queue: after, Key: c.follower(i, n)}
	}
	return list
}

func failure(verb nixie.Verb, attempt int) *nixie.Failure {
	return &nixie.Failure{Attempt: attempt, Class: nixie.ClassUnknown, Reason: nixie.ReasonHandler, Text: "it fails", Decision: verb}
}

func burial(status nixie.Status) *nixie.Burial {
	return &nixie.Burial{Cause: nixie.CauseExhausted, Status: status, Signature: "it fails", Fingerprint: "v1:aa", Redrivable: true,
		Rule: "attempts"}
}

func change(k Kind) store.Change {
	c := store.Change{Verb: store.Cancel, Actor: operator, Reason: "because"}
	switch k {
	case RetryNow:
		c.Verb = store.RetryNow
	case Hold:
		c.Verb, c.Burial, c.Hold = store.Hold, burial(nixie.StatusReview), failure(nixie.Hold, 0)
	}
	return c
}

// forever is later than any moment of a history.
const forever = 100 * 365 * 24 * time.Hour
