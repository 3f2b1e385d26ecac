package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"modernc.org/sqlite"

	"github.com/nixie-go/nixie"
)

// DB is a handle on the store's file for tables of your own and for
// transactions that enqueue, complete and remember messages together with your
// rows; see [Store.Tx]. It is made at the first call, always the same, safe for
// concurrent use, and closed with the store. Its connections have the settings
// of the store's own: WAL, synchronous FULL, [Options.LockWait] as busy timeout.
//
// A transaction begins IMMEDIATE, unless it is read-only, and takes its turn
// among all writers. While it is open nobody else writes: no other transaction,
// no enqueue, claim or settlement and no renewal of a lease, in any process. So
// keep it far shorter than a lease, call nothing slow inside, and inside use Tx
// only: the store's own methods would wait for the transaction and fail after
// LockWait. Readers are not held up. End your transactions before Close.
//
// Tables of your own lie in the same file; a prefix keeps their names apart from
// those of later versions of the store. Leave the store's own tables alone.
func (s *Store) DB() (*sql.DB, error) {
	if err := s.enter(context.Background()); err != nil {
		return nil, err
	}
	defer s.gate.leave()
	c := &s.callers
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.db == nil {
		base, err := sqlite.NewConnector(fileURI(s.path, url.Values{"mode": {"rw"}, "_dqs": {"0"}}, s.opts.VFS))
		if err != nil {
			return nil, nixie.Errorf(nixie.CodeInternal, "store %s: %w", s.path, err)
		}
		c.db = sql.OpenDB(&connector{base, s})
	}
	return c.db, nil
}

// callers is how transactions of the caller come to the file.
type callers struct {
	mu    sync.Mutex
	db    *sql.DB
	next  chan struct{} // holds a token of who may take the turn: one of this process waits for others
	queue writerQueue
}

// take waits for the turn, as [turn.take] does.
func (c *callers) take(ctx context.Context) (bool, error) {
	patience, stop := context.WithTimeout(ctx, c.queue.wait)
	defer stop()
	select {
	case c.next <- struct{}{}: // what is free is had, however late it is
	default:
		select {
		case c.next <- struct{}{}:
		case <-patience.Done():
			if ctx.Err() != nil {
				return false, stopped(ctx)
			}
			return false, nixie.Errorf(nixie.CodeUnavailable, "another transaction of this process has been open for %s: keep transactions short", c.queue.wait)
		}
	}
	in, err := c.queue.take(patience)
	if ctx.Err() != nil {
		err = errors.Join(stopped(ctx), err)
	}
	if err != nil {
		return false, errors.Join(err, c.leave())
	}
	return in, nil
}

func (c *callers) leave() error {
	err := c.queue.leave()
	<-c.next
	return err
}

func (c *callers) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.db == nil {
		return nil
	}
	return errors.Join(c.db.Close(), c.queue.close())
}

// connector opens sessions.
type connector struct {
	driver.Connector
	store *Store
}

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	raw, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, c.store.explain(ctx, err)
	}
	inner, ok := raw.(driverConn)
	if !ok {
		return nil, errors.Join(nixie.Errorf(nixie.CodeInternal, "SQLite driver lacks what a transaction needs: use another version"), raw.Close())
	}
	s := &session{driverConn: inner, store: c.store}
	for _, p := range append([]string{s.busyTimeout()}, settings()...) {
		if err := s.exec(ctx, p); err != nil {
			return nil, errors.Join(c.store.explain(ctx, err), raw.Close())
		}
	}
	s.RegisterRollbackHook(s.rolledBack)
	return s, nil
}

// driverConn is what the driver's connections can do, as far as it is needed.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	RegisterRollbackHook(sqlite.RollbackHookFn)
}

// session is a connection of the caller, with its open transaction.
type session struct {
	driverConn
	store  *Store
	open   *sessionTx
	spoilt bool // nobody knows whether it is in a transaction: it is not used again
}

// sessionTx is a transaction of the caller. It takes part in the writers' turns
// and does, once it is durable, what must not happen before.
type sessionTx struct {
	*session
	writes bool
	undone bool       // SQLite rolled it back by itself
	calls  sync.Mutex // of [Tx], one at a time

	mu    sync.Mutex
	after []func() // run once it is durable
}

func (c *session) busyTimeout() string {
	return fmt.Sprintf("pragma busy_timeout = %d", c.store.opts.LockWait.Milliseconds())
}

func (c *session) exec(ctx context.Context, query string) error {
	_, err := c.driverConn.ExecContext(ctx, query, nil)
	return err
}

// rolledBack is called by SQLite.
func (c *session) rolledBack() {
	if c.open != nil {
		c.open.undone = true
	}
}

// BeginTx implements driver.ConnBeginTx.
func (c *session) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if broken := c.store.broken.Load(); broken != nil {
		return nil, *broken
	}
	begin := c.begin
	if opts.ReadOnly {
		begin = func(ctx context.Context) error { return c.start(ctx, "begin") }
	}
	if err := begin(ctx); err != nil {
		return nil, c.store.explain(ctx, err)
	}
	c.open = &sessionTx{session: c, writes: !opts.ReadOnly}
	return c.open, nil
}

// begin waits for the turn and begins. If the turn does not come, whoever has
// it stands still: then the store's own lock is asked once.
func (c *session) begin(ctx context.Context) error {
	in, err := c.store.callers.take(ctx)
	if err != nil {
		return err
	}
	if in {
		err = c.start(ctx, "begin immediate")
	} else {
		err = c.start(ctx, "pragma busy_timeout = 0", "begin immediate", c.busyTimeout())
	}
	if err != nil {
		return errors.Join(err, c.store.callers.leave())
	}
	return nil
}

// start begins a transaction with some statements, or leaves none and is not used again:
// the driver tells that ctx has ended also when a statement had taken effect by then.
func (c *session) start(ctx context.Context, queries ...string) error {
	for _, q := range queries {
		if err := c.exec(ctx, q); err != nil {
			_ = c.exec(context.WithoutCancel(ctx), "rollback") // mostly there is nothing to undo, which is an error too
			c.spoilt = true
			return err
		}
	}
	return nil
}

// IsValid implements driver.Validator.
func (c *session) IsValid() bool { return !c.spoilt && c.driverConn.IsValid() }

// Commit implements driver.Tx. It is not interrupted: an answer that is not the
// disk's would hide what became of the transaction.
func (t *sessionTx) Commit() error {
	if err := t.whole(); err != nil {
		return errors.Join(err, t.end(false))
	}
	err := t.exec(context.Background(), "commit")
	if err == nil {
		if err := t.store.files.check(); err != nil {
			return errors.Join(t.store.giveUp(nixie.CodeOutcomeUnknown, err), t.end(false))
		}
		return t.end(true)
	}
	var undo error
	if !t.undone {
		undo = t.exec(context.Background(), "rollback")
	}
	return errors.Join(t.store.commitFailed(err, undo), t.end(false))
}

// Rollback implements driver.Tx.
func (t *sessionTx) Rollback() error {
	var err error
	if !t.undone {
		err = t.store.explain(context.Background(), t.exec(context.Background(), "rollback"))
	}
	return errors.Join(err, t.end(false))
}

// end gives the turn back and does what waited for the transaction.
func (t *sessionTx) end(durable bool) error {
	t.open = nil
	var err error
	if t.writes {
		if e := t.store.callers.leave(); e != nil {
			err = t.store.giveUp(nixie.CodeUnavailable, e)
		}
	}
	if !durable {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, do := range t.after {
		do()
	}
	return err
}

// whole refuses to go on with a transaction that SQLite rolled back by itself:
// each further statement would be durable alone.
func (c *session) whole() error {
	if c.open != nil && c.open.undone {
		return nixie.Errorf(nixie.CodeUnavailable, "transaction was rolled back by SQLite, because a statement was interrupted or the disk failed it: roll back and begin again")
	}
	return nil
}

// greeting is the key of a context by which [Store.Tx] asks the connection for
// its open transaction: package sql hides it.
type greeting struct{}

// ExecContext implements driver.ExecerContext.
func (c *session) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.whole(); err != nil {
		return nil, err
	}
	if ask, ok := ctx.Value(greeting{}).(**sessionTx); ok {
		*ask = c.open
		return driver.ResultNoRows, nil
	}
	return c.driverConn.ExecContext(ctx, query, args)
}

// QueryContext implements driver.QueryerContext.
func (c *session) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.whole(); err != nil {
		return nil, err
	}
	return c.driverConn.QueryContext(ctx, query, args)
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *session) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := c.whole(); err != nil {
		return nil, err
	}
	return c.driverConn.PrepareContext(ctx, query)
}
