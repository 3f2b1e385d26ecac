package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
)

var _ store.Tx = (*Tx)(nil)

// Tx runs store calls inside a transaction of the caller. They take effect when the caller commits,
// together with the caller's own rows. See [Store.Tx].
type Tx struct {
	store *Store
	tx    *sql.Tx
}

// Tx binds the store to a transaction begun with its [Store.DB]. Checks,
// deduplication, IDs, delays and counters are those of the store's own methods.
//
// Each call is whole or changes nothing: one that is refused leaves the
// transaction as it was and usable. Calls do not overlap. A context that has
// ended refuses a call and never interrupts one. A transaction that is over,
// read-only, or not of this store is refused with CodeInvalid.
func (s *Store) Tx(tx *sql.Tx) *Tx { return &Tx{s, tx} }

// Enqueue implements nixie.Enqueuer. The receipts hold once the transaction has
// committed.
func (x *Tx) Enqueue(ctx context.Context, messages ...nixie.Message) ([]nixie.Receipt, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	_, hashes, err := x.store.admit(messages)
	if err != nil {
		return nil, err
	}
	var receipts []nixie.Receipt
	err = x.do(ctx, func(t *tx) (err error) {
		receipts, err = t.enqueueAll(messages, hashes)
		return err
	})
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// Complete ends the message of a delivery as succeeded, with its steps. A lease
// that is over, by time, by a settlement or by a cancel, is refused with
// CodeLeaseLost: roll back, as another claim decides.
//
// Once the transaction has committed the delivery is [nixie.Delivery.Completed],
// and the handler returns nil.
func (x *Tx) Complete(ctx context.Context, d *nixie.Delivery) error {
	st := nixie.Settlement{Delivery: d, Verb: nixie.Complete}
	if d != nil {
		st.Then = d.Tracking.Then
	}
	if err := store.CheckSettlement(&st); err != nil {
		return err
	}
	return x.do(ctx, func(t *tx) error {
		t.after = append(t.after, func() { lease.MarkCompleted(d) })
		errs := make([]error, 1)
		return cmp.Or(engine.Settle(t.verb(), []nixie.Settlement{st}, errs), errs[0])
	})
}

// do runs f as one call inside the caller's transaction.
func (x *Tx) do(ctx context.Context, f func(*tx) error) error {
	s := x.store
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.gate.leave()
	open, err := x.open(ctx)
	if err != nil {
		return err
	}
	open.calls.Lock()
	defer open.calls.Unlock()
	on := &joined{ctx: context.WithoutCancel(ctx), tx: x.tx}
	t := newTx(s, &inserts{}, on)
	if err := errors.Join(t.between(f), on.close()); err != nil {
		return s.explain(context.Background(), err)
	}
	open.mu.Lock()
	defer open.mu.Unlock()
	open.after = append(open.after, t.committed)
	return nil
}

// open finds the session of the caller's transaction, or returns why the store cannot use it.
func (x *Tx) open(ctx context.Context) (*sessionTx, error) {
	if x.tx == nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "transaction is nil: begin one with the DB of the store")
	}
	var open *sessionTx
	_, err := x.tx.ExecContext(context.WithValue(context.WithoutCancel(ctx), greeting{}, &open), "select 1")
	switch {
	case errors.Is(err, sql.ErrTxDone):
		return nil, nixie.Errorf(nixie.CodeInvalid, "transaction is over: begin another with the DB of the store: %w", err)
	case err != nil:
		return nil, x.store.explain(ctx, err)
	case open == nil || open.store != x.store:
		return nil, nixie.Errorf(nixie.CodeInvalid,
			"transaction is not one of store %s: begin it with the DB of this very store", x.store.path)
	case !open.writes:
		return nil, nixie.Errorf(nixie.CodeInvalid, "transaction is read-only: begin it without ReadOnly")
	}
	return open, nil
}

// between runs f between a savepoint and its release, so that a failed call leaves the caller's
// transaction as it was.
func (t *tx) between(f func(*tx) error) error {
	if err := t.run("savepoint nixie"); err != nil {
		return err
	}
	if err := t.whole(f); err != nil {
		t.added.reset(t.added.statements)
		return errors.Join(err, t.run("rollback to nixie"), t.run("release nixie"))
	}
	return t.run("release nixie")
}

func (t *tx) whole(f func(*tx) error) error {
	if err := t.readTime(); err != nil {
		return err
	}
	if err := f(t); err != nil {
		return err
	}
	return t.flush()
}
