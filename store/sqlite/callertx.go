package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
)

var _ store.Tx = (*Tx)(nil)

// Tx runs store calls inside a transaction of the caller. They take effect when the caller commits,
// together with the caller's own rows. See [Store.Tx].
type Tx struct {
	calls
	store *Store
	tx    *sql.Tx
}

// calls are the methods of a Tx that the engine has.
type calls = engine.Within

// Tx binds the store to a transaction begun with its [Store.DB]. Checks,
// deduplication, IDs, delays and counters are those of the store's own methods.
//
// Each call is whole or changes nothing: one that is refused leaves the
// transaction as it was and usable. Calls do not overlap. A context that has
// ended refuses a call and never interrupts one. A transaction that is over,
// read-only, or not of this store is refused with CodeInvalid.
//
// Complete refuses a lease that is over, by time, by a settlement or by a cancel, with
// CodeLeaseLost: roll back, as another claim decides. Once the transaction has committed the
// delivery is [nixie.Delivery.Completed], and the handler returns nil.
//
// Of Once, scope says whose keys they are, a consumer's name for example. Both are 1 to 255 bytes,
// see [nixie.CheckName]. If the transaction is rolled back, the key was never there. So work in
// the transaction that depends on true happens once, however often its message is delivered.
// [Store.Prune] forgets the key at an age of [store.InboxRetention], PruneInbox of the store
// sooner.
func (s *Store) Tx(tx *sql.Tx) *Tx {
	x := &Tx{store: s, tx: tx}
	x.calls = x.do
	return x
}

// do runs f as one call inside the caller's transaction.
func (x *Tx) do(ctx context.Context, how engine.How, f func(engine.Tx) error) error {
	s := x.store
	if err := s.hasRoom(how); err != nil {
		return err
	}
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
	if err := errors.Join(t.between(func(t *tx) error { return f(t.verb()) }), on.close()); err != nil {
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
