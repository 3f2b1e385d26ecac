// Package postgres is the store of many machines: a schema in a PostgreSQL 13 or
// newer that any number of processes use at once.
//
// Plain messages are claimed by range, past transactions that are open, and the others
// row by row, past those that somebody is about to change (SKIP LOCKED). Time is the
// database's. A call is one transaction of a few round trips, however many messages it
// is about: it locks and reads what it is about, decides, and writes everything that
// changes in one pipeline with its commit. Locks are taken in one order: queues,
// cursors and batches of ranges, streams, messages, letters, dedupe keys, and the ends
// of audits last. The file migrations/0001_core.up.sql tells how things lie.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
)

// Options of a store. The zero value is fine.
type Options struct {
	// Schema is where the tables lie; default nixie.
	Schema string
	// Clock judges leases, delays and ages; default the clock of the database.
	Clock func() time.Time
	// Owner is shown as the holder of leases; default host:pid.
	Owner string
	// LockWait is how long a statement waits for locks of others: default 30 s.
	LockWait time.Duration
	// AnswerWait is how long an answer of the server is waited for, also where the
	// connection is dead and nobody says so: default 1 minute. Whoever looks around,
	// which may take longer, waits 6 minutes.
	AnswerWait time.Duration
	// NoListen neither tells other processes of this store when work was added, nor
	// listens to them: they find it when they ask, some 50 ms later.
	NoListen bool
	// Warn is told what is wrong and hinders nobody; default: nobody is told.
	Warn func(error)
}

const (
	defaultSchema     = "nixie"
	defaultLockWait   = 30 * time.Second
	defaultAnswerWait = time.Minute
	serverPatience    = 15 * time.Minute
	connectPatience   = 30 * time.Second
	statementLimit    = 5 * time.Minute // that no statement of ours comes near
	viewPatience      = statementLimit + time.Minute
	idleLimit         = time.Minute // of a transaction of ours between two round trips
)

// Store is an open store. It is safe for concurrent use.
type Store struct {
	site
	schema *Schema
	pool   *pgxpool.Pool
	ids    store.IDs
	local  func() time.Time // by which IDs are made before the database was asked
	gate   gate
	owner  ownership
	wakes  store.Wakes
	watch  *store.Watch
	pooled bool // something between us and the server hands sessions around

	sessionSettings string // what is set for each transaction then, instead of once

	known     known
	together  together
	notifier  notifier
	listener  listener
	outsiders outsiders
	looks     looks
	sheets    sheets
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
	s := &Store{site: at, listener: newListener(), local: time.Now} //nolint:forbidigo // the default
	if opts.Clock != nil {
		s.local = opts.Clock
	}
	s.owner.name, s.sheets = at.opts.Owner, s.makeSheets()
	s.watch = store.NewWatch(&s.wakes, s.lookFor)
	if s.schema, err = newSchema(at, folder); err != nil {
		return nil, err
	}
	patience, stop := context.WithTimeout(ctx, connectPatience)
	defer stop()
	if err = s.connect(patience); err != nil {
		return nil, s.explain(err)
	}
	err = s.migrate(patience)
	if err == nil {
		err = s.arrive(patience)
	}
	if err != nil {
		s.pool.Close()
		return nil, s.explain(err)
	}
	return s, nil
}

func millis(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// Features are all but Await.
func (s *Store) Features() store.Features {
	return store.Features{Streams: s, Check: s.Check, Inspect: s.Inspect, Patience: patienceFor, Wake: s.wake, Watch: s.watchFor}
}

// patienceFor is Patience of store.Features: time enough to start a server again.
func patienceFor(err error) time.Duration {
	switch nixie.CodeOf(err) {
	case nixie.CodeUnavailable, nixie.CodeOutcomeUnknown:
		return serverPatience
	}
	return 0
}

// Name says what this store is, for messages to people.
func (s *Store) Name() string { return s.place }

// enter lets a call in, or says why none can be served. What came in has to leave
// the gate.
func (s *Store) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return nixie.Errorf(nixie.CodeUnavailable, "stopped before anything was done: %w", context.Cause(ctx))
	}
	if !s.gate.enter() {
		return nixie.Errorf(nixie.CodeUnavailable, "store is %w: open it again", nixie.ErrClosed)
	}
	return nil
}

// Close waits for calls in flight and gives back what this process still holds as
// abandoned.
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
	s.pool.Close()
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

// stay lets in what goes on for somebody who is inside, also when the gate is shut.
func (g *gate) stay() { g.inside.Add(1) }

func (g *gate) leave() { g.inside.Done() }

// close shuts the gate, waits until nobody is inside, and reports whether this was
// the call that shut it.
func (g *gate) close() bool {
	g.mu.Lock()
	first := !g.shut
	g.shut = true
	g.mu.Unlock()
	g.inside.Wait()
	return first
}

// all gives each of several the same error.
func all(errs []error, err error) []error {
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// isOurs reports whether an error was made here for the caller, and so needs no
// explanation.
func isOurs(err error) bool {
	var ours *nixie.Error
	var duplicate *nixie.DuplicateError
	return errors.As(err, &ours) || errors.As(err, &duplicate)
}
