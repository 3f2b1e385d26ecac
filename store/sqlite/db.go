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

// DB returns a handle on the store's file, for tables of your own. Its transactions may enqueue,
// complete and remember messages together with your rows; see [Store.Tx]. The first call makes the
// handle and later calls return the same one. It is safe for concurrent use and closed with the
// store. Its connections have the settings of the store's own: WAL, synchronous FULL,
// [Options.LockWait] as busy timeout.
//
// A transaction begins IMMEDIATE, unless it is read-only, and waits in the queue of all writers.
// While it is open no process writes anything else: no transaction, no enqueue, claim or settlement
// and no renewal of a lease. So keep it far shorter than a lease and call nothing slow inside. Use
// only Tx inside: the store's own methods would wait for the transaction and fail after LockWait.
// Readers do not wait for it. End your transactions before Close.
//
// Tables of your own lie in the same file; a prefix keeps them distinct from tables of later
// versions of the store. Leave the store's own tables alone.
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

// callers holds the file handle for transactions of the caller.
type callers struct {
	mu    sync.Mutex
	db    *sql.DB
	next  chan struct{} // one token: a single transaction of this process waits for other processes
	queue writerQueue
}

// take waits in the writer queue, as [writerQueue.take] does.
func (c *callers) take(ctx context.Context) (bool, error) {
	patience, stop := context.WithTimeout(ctx, c.queue.wait)
	defer stop()
	select {
	case c.next <- struct{}{}: // a free token is taken even if ctx has ended
	default:
		select {
		case c.next <- struct{}{}:
		case <-patience.Done():
			if ctx.Err() != nil {
				return false, stopped(ctx)
			}
			return false, nixie.Errorf(nixie.CodeUnavailable,
				"another transaction of this process has been open for %s: keep transactions short", c.queue.wait)
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
		return nil, errors.Join(nixie.Errorf(nixie.CodeInternal,
			"SQLite driver lacks what a transaction needs: use another version"), raw.Close())
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

// driverConn lists the abilities of the driver's connections that a session uses.
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
	spoilt bool // it may be inside a transaction: it is not used again
}

// sessionTx is a transaction of the caller. It holds the seat of the writer queue, and runs the
// functions in after once it is durable.
type sessionTx struct {
	*session
	writes bool
	undone bool       // SQLite has rolled it back by itself
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

// begin waits in the writer queue and begins. If the wait ends without the seat, the process that
// has it is stuck: begin then tries the store's own lock once.
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

// start begins a transaction with some statements. After an error the session is not used again:
// the driver returns an error when ctx has ended, even if a statement took effect before.
func (c *session) start(ctx context.Context, queries ...string) error {
	for _, q := range queries {
		if err := c.exec(ctx, q); err != nil {
			_ = c.exec(context.WithoutCancel(ctx), "rollback") // there may be nothing to undo, which is an error too
			c.spoilt = true
			return err
		}
	}
	return nil
}

// IsValid implements driver.Validator.
func (c *session) IsValid() bool { return !c.spoilt && c.driverConn.IsValid() }

// Commit implements driver.Tx. ctx cannot interrupt it: the caller has to learn what the disk
// answered.
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

// end leaves the writer queue and, if the transaction is durable, runs the functions that waited
// for that.
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

// whole returns an error if SQLite has rolled the transaction back by itself: each further
// statement would be durable alone.
func (c *session) whole() error {
	if c.open != nil && c.open.undone {
		return nixie.Errorf(nixie.CodeUnavailable,
			"transaction was rolled back by SQLite, because a statement was interrupted or the disk failed it: roll back and begin again")
	}
	return nil
}

// greeting is the key of a context by which [Store.Tx] asks the connection for its open
// transaction, which package sql hides.
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
