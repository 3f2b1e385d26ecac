package postgres

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
)

var _ store.Tx = (*Tx)(nil)

// Tx works inside a transaction of the caller: what it does happens if and when that commits,
// together with the caller's own rows. See [Store.Tx].
//
// Deliveries that it completed are [nixie.Delivery.Completed] at once, because a store does not
// learn what becomes of a foreign transaction. A handler whose commit fails returns that error, and
// its lease ends by time.
type Tx struct {
	calls
	store *Store
	on    asker
	mu    sync.Mutex // held by a call
}

// calls are the methods of a Tx that the engine has.
type calls = engine.Within

// Tx binds the store to a transaction of the caller, in the database of the store. Checks,
// deduplication, IDs, delays and counters are those of the store's own methods. A transaction that
// is not read committed may add plain messages to strict streams; everything else about streams is
// refused with CodeInvalid.
//
// A call succeeds whole or changes nothing: after one that is refused the transaction is as it was,
// and usable. Calls do not overlap.
//
// Of Once, scope names the consumer whose keys they are. Both are 1 to 255 bytes, see
// [nixie.CheckName]. [Store.Prune] forgets a key at an age of [store.InboxRetention]. If the
// transaction is rolled back, the key was never there.
func (s *Store) Tx(tx pgx.Tx) *Tx { return s.callerTx(piped{tx}) }

// SQLTx is [Store.Tx] for a transaction of package database/sql with the driver of
// pgx.
func (s *Store) SQLTx(tx *sql.Tx) *Tx { return s.callerTx(stepped{tx}) }

func (s *Store) callerTx(on asker) *Tx {
	x := &Tx{store: s, on: on}
	x.calls = x.do
	return x
}

// Complete implements store.Tx. A lease that is over, by time, by a settlement or by a cancel, is
// refused with CodeLeaseLost: roll back, because another claim decides.
func (x *Tx) Complete(ctx context.Context, d *nixie.Delivery) error {
	if d != nil && (d.Lease.Handle.Batch != 0 || d.Lease.Handle.Pos == 0) {
		if err := x.store.split(ctx, d); err != nil {
			return err
		}
	}
	return x.calls.Complete(ctx, d)
}

// do runs f as one call inside the caller's transaction, between a savepoint and its release.
// Nothing is run again: after a race the caller begins a new transaction.
func (x *Tx) do(ctx context.Context, _ engine.How, f func(engine.Tx) error) error {
	s := x.store
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.gate.leave()
	x.mu.Lock()
	defer x.mu.Unlock()
	t := s.newTx(context.WithoutCancel(ctx), x.on)
	t.callers = true
	t.run("savepoint nixie")
	t.read(t.recognize, "caller_transaction.sql")
	err := f(t.verb())
	if err == nil {
		err = t.finish()
	}
	if err == nil {
		err = t.seesStreams()
	}
	if err == nil {
		err = t.hand()
	}
	if err == nil {
		for _, do := range t.after {
			do()
		}
		return nil
	}
	undone := x.undo(t)
	if code := codeOf(err); t.sees == "" && (code == errNoTable || code == errNoSchema) {
		return nixie.Errorf(nixie.CodeInvalid, "the transaction is of a database that has no schema %s: begin it in that of store %s",
			s.opts.Schema, s.address)
	}
	return explainCaller(s, err, undone)
}

// recognize reads how the transaction is isolated, and refuses one of another database: no worker
// of this store would find what it added there.
func (t *tx) recognize(r row) error {
	var database, cluster string
	if err := r.Scan(&t.sees, &database, &cluster); err != nil {
		return err
	}
	s := t.store
	if database != s.database || s.cluster != "" && cluster != s.cluster {
		return nixie.Errorf(nixie.CodeInvalid, "the transaction is of another database, %s, than store %s: begin it in that of the store",
			database, s.address)
	}
	return nil
}

// hand ends a call that succeeded, and follows the transaction to its end if it adds work.
func (t *tx) hand() error {
	var transaction int64
	maps.Copy(t.woken, t.hinted)
	if len(t.woken) > 0 {
		t.number(&transaction, "select pg_current_xact_id()::text::bigint")
	}
	t.run("release savepoint nixie")
	err := t.send()
	if err == nil && len(t.woken) > 0 {
		t.store.outsiders.follow(t.store, transaction, t.woken)
	}
	return err
}

// undo leaves the transaction as it was before a call. After an error PostgreSQL accepts only the
// rollback, so the release is sent after it.
func (x *Tx) undo(t *tx) error {
	if !t.sent {
		return nil
	}
	back := x.store.newTx(t.ctx, x.on)
	back.run("rollback to savepoint nixie")
	if err := back.send(); err != nil {
		return err
	}
	back.run("release savepoint nixie")
	return back.send()
}

// seesStreams refuses to recompute heads in a transaction that sees streams as they were when it
// began: it would overwrite what it does not see, and no later call would fix it.
func (t *tx) seesStreams() error {
	if !t.recomputes || t.sees == "read committed" || t.sees == "read uncommitted" {
		return nil
	}
	return nixie.Errorf(nixie.CodeInvalid, "the transaction is %s, and sees streams as they were when it began: begin it as read committed",
		t.sees)
}

// explainCaller explains an error of a transaction of the caller.
func explainCaller(s *Store, err, undone error) error {
	for _, over := range [...]error{pgx.ErrTxClosed, sql.ErrTxDone} {
		if errors.Is(err, over) || errors.Is(undone, over) {
			return nixie.Errorf(nixie.CodeInvalid, "transaction is over: begin another one: %w", over)
		}
	}
	return s.explain(errors.Join(err, undone))
}

// stepped runs statements one after the other in a transaction of package database/sql.
type stepped struct{ tx *sql.Tx }

func (s stepped) ask(ctx context.Context, list []stmt) error {
	for i := range list {
		if err := s.step(ctx, &list[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s stepped) step(ctx context.Context, st *stmt) (err error) {
	rows, err := s.tx.QueryContext(ctx, st.query, eachOf(st.args, argument)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if st.each == nil {
			continue
		}
		if err := st.each(rows); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil || st.done == nil {
		return err
	}
	return st.done("")
}
