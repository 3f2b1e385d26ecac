// Package postgres is the store of many machines: a schema in a PostgreSQL 13 or newer that any
// number of processes use at once.
//
// Plain messages are claimed by range, and the others row by row. Claims skip transactions that are
// open and rows that others have locked (SKIP LOCKED). Time is the database's. A call is one
// transaction of a few round trips, however many messages it is about: it locks and reads them,
// decides in Go, and writes everything that changes in one pipeline with its commit.
//
// All calls take locks in one order: queues, cursors, batches, streams, messages, letters, dedupe
// keys, items of operations, and the ends of audits last. The file migrations/0001_core.up.sql
// explains the tables, and the folder sql has the statements.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
)

// Options of a store. The zero value is fine.
type Options struct {
	// Schema has the tables; default nixie.
	Schema string
	// Clock judges leases, delays and ages; default the clock of the database.
	Clock func() time.Time
	// Owner is shown as the holder of leases; default host:pid.
	Owner string
	// LockWait bounds the wait of a statement for locks: default 30 s.
	LockWait time.Duration
	// AnswerWait bounds the wait for an answer of the server, also on a connection that
	// is dead without an error: default 1 minute. Lists and counts, which may take
	// longer, wait 6 minutes.
	AnswerWait time.Duration
	// NoListen switches notifications between processes off, both ways: a process finds
	// work that another one added when it asks, some 50 ms later.
	NoListen bool
	// Warn is told of problems that stop no call; default: they are not reported.
	Warn func(error)
}

const (
	defaultSchema     = "nixie"
	defaultLockWait   = 30 * time.Second
	defaultAnswerWait = time.Minute
	serverPatience    = 15 * time.Minute
	connectPatience   = 30 * time.Second
	statementLimit    = 5 * time.Minute // far more than any statement of ours takes
	viewPatience      = statementLimit + time.Minute
	idleLimit         = time.Minute // of a transaction of ours between two round trips
)

// Store is an open store. It is safe for concurrent use.
type Store struct {
	*verbs
	endpoint
	schema  *Schema
	pool    *pgxpool.Pool
	own     *pgxpool.Pool // for what must not wait for handlers: pool, or one connection if that is a caller's
	ids     store.IDs
	local   func() time.Time // for IDs that are made before the database was asked
	gate    gate
	owner   ownership
	letters atomic.Int64 // that were taken in or resolved since this process folded
	wakes   store.Wakes
	watch   *store.Watch
	pooled  bool // a pooler between us and the server shares sessions

	sessionSettings string // what is set for each transaction, where sessions are not ours

	database, cluster string // as transactions of callers are to name theirs; no cluster: not known

	known     known
	group     groupCommit
	notifier  notifier
	listener  listener
	outsiders outsiders
	seen      seen
	bulk      bulkWriters
}

var _ interface {
	store.Store
	lease.ProgressLog
} = (*Store)(nil)

// Open opens the store that a PostgreSQL URL or DSN names and makes its schema
// where there is none. Settings of the pool, pool_max_conns for example, are read
// from the URL, and so is nixie_schema, another schema than nixie.
func Open(ctx context.Context, dsn string, opts Options) (*Store, error) {
	return open(ctx, dsn, opts, migrations)
}

func open(ctx context.Context, dsn string, opts Options, folder fs.FS) (*Store, error) {
	at, err := locate(dsn, opts)
	if err != nil {
		return nil, err
	}
	return start(ctx, at, folder, (*Store).connect, (*Store).migrate)
}

// start makes a store: connect makes its pools, and find its schema.
func start(ctx context.Context, at endpoint, folder fs.FS, connect, find func(*Store, context.Context) error) (*Store, error) {
	s := &Store{endpoint: at, listener: newListener(), local: time.Now} //nolint:forbidigo // the default
	s.verbs = engine.New(engineDriver{s}, &s.ids)
	if at.opts.Clock != nil {
		s.local = at.opts.Clock
	}
	s.owner.name, s.bulk = at.opts.Owner, s.makeBulkWriters()
	s.watch = store.NewWatch(&s.wakes, s.lookFor)
	patience, stop := context.WithTimeout(ctx, connectPatience)
	defer stop()
	err := connect(s, patience)
	if err != nil {
		return nil, s.explain(err)
	}
	if s.schema, err = newSchema(s.endpoint, folder); err == nil {
		err = find(s, patience)
	}
	if err == nil {
		err = s.arrive(patience)
	}
	if err != nil {
		s.own.Close()
		return nil, s.explain(err)
	}
	return s, nil
}

func millis(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// Features returns all but Await.
func (s *Store) Features() store.Features {
	return store.Features{
		Streams: s, Check: s.Check, Inspect: s.Inspect, Ping: s.Ping, Tried: s.Tried, Patience: patienceFor,
		Documents: s.Documents(), Stopping: s.stopping, Regroup: s.Regroup,
		Canceled: s.canceled, Ended: s.ended, Wake: s.wake, Watch: s.watchFor, Exchange: s.exchange,
	}
}

// patienceFor is Patience of store.Features: time enough to restart a server.
func patienceFor(err error) time.Duration {
	switch nixie.CodeOf(err) {
	case nixie.CodeUnavailable, nixie.CodeOutcomeUnknown:
		return serverPatience
	}
	return 0
}

// Name returns the URL of the store without secrets, for messages to people.
func (s *Store) Name() string { return s.address }

// enter lets a call in, or returns why none can be served. A call that came in has to leave the
// gate.
func (s *Store) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return nixie.Errorf(nixie.CodeUnavailable, "stopped before anything was done: %w", context.Cause(ctx))
	}
	if !s.gate.enter() {
		return nixie.Errorf(nixie.CodeUnavailable, "store is %w: open it again", nixie.ErrClosed)
	}
	return nil
}

// Close waits for calls in flight and gives back what this process has leased as abandoned. A pool
// of the caller stays open.
func (s *Store) Close() error {
	if !s.gate.close() {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), connectPatience)
	defer stop()
	s.listener.close()
	s.watch.Close()
	s.outsiders.close()
	err := s.owner.leave(ctx, s)
	s.notifier.close()
	s.own.Close()
	return s.explain(err)
}

// gate counts the calls inside and is shut once.
type gate struct {
	mu     sync.Mutex
	inside sync.WaitGroup
	shut   bool
}

// enter reports whether the call may go in; it has to leave then.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.shut {
		g.inside.Add(1)
	}
	return !g.shut
}

// stay lets in what goes on for a call that is inside, also when the gate is shut.
func (g *gate) stay() { g.inside.Add(1) }

func (g *gate) leave() { g.inside.Done() }

// close shuts the gate, waits until no call is inside, and reports whether this call shut it.
func (g *gate) close() bool {
	g.mu.Lock()
	first := !g.shut
	g.shut = true
	g.mu.Unlock()
	g.inside.Wait()
	return first
}

// isOurs reports whether an error was made here for the caller, and so needs no explanation.
func isOurs(err error) bool {
	var ours *nixie.Error
	var duplicate *nixie.DuplicateError
	return errors.As(err, &ours) || errors.As(err, &duplicate)
}
