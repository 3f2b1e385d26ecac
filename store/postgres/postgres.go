// Package postgres is the store of many machines: a schema in a PostgreSQL 13 or
// newer that any number of processes use at once.
//
// Messages are claimed row by row, past those that others are about to change
// (SKIP LOCKED). Time is the database's. A call is one transaction of a few round
// trips, however many messages it is about: it locks and reads what it is about,
// decides, and writes everything that changes in one pipeline with its commit.
// Locks are taken in one order: queues, streams, messages, letters, dedupe keys,
// and the ends of audits last. The file migrations/0001_core.up.sql tells how
// things lie.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/nixie-go/nixie"
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
	// MustExist refuses to create the schema.
	MustExist bool
	// LockWait is how long a statement waits for locks of others: default 30 s.
	LockWait time.Duration
	// AnswerWait is how long an answer of the server is waited for, also where the
	// connection is dead and nobody says so: default 1 minute. Whoever looks around,
	// which may take longer, waits 6 minutes.
	AnswerWait time.Duration
}

const (
	defaultSchema     = "nixie"
	defaultLockWait   = 30 * time.Second
	defaultAnswerWait = time.Minute
	connectPatience   = 30 * time.Second
	statementLimit    = 5 * time.Minute // that no statement of ours comes near
	viewPatience      = statementLimit + time.Minute
	idleLimit         = time.Minute // of a transaction of ours between two round trips
)

// Store is an open store. It is safe for concurrent use.
type Store struct {
	opts  Options
	place string // for people, without secrets
	pool  *pgxpool.Pool
	ids   nixie.IDs
	gate  gate
	owner ownership
	wakes wakes

	handouts handouts
}

var _ interface {
	store.Store
	store.Waker
} = (*Store)(nil)

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Open opens the store that a PostgreSQL URL or DSN names and makes its schema
// where there is none. Settings of the pool, pool_max_conns for example, are read
// from the URL.
func Open(ctx context.Context, dsn string, opts Options) (*Store, error) {
	if opts.Schema == "" {
		opts.Schema = defaultSchema
	}
	if opts.LockWait == 0 {
		opts.LockWait = defaultLockWait
	}
	if opts.AnswerWait == 0 {
		opts.AnswerWait = defaultAnswerWait
	}
	if opts.Owner == "" {
		opts.Owner = processName()
	}
	if !schemaName.MatchString(opts.Schema) {
		return nil, nixie.Errorf(nixie.CodeInvalid, "schema %q: use small letters, digits and _, at most 63", opts.Schema)
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "store is no PostgreSQL URL: give one like postgres://user@host/database")
	}
	for name, value := range map[string]string{
		"application_name":                    "nixie",
		"jit":                                 "off",                // a misjudged plan would be compiled at each claim
		"plan_cache_mode":                     "force_generic_plan", // calls find few rows by their keys, however many the table had when a plan was made
		"enable_seqscan":                      "off",                // likewise
		"lock_timeout":                        millis(opts.LockWait),
		"statement_timeout":                   millis(statementLimit),
		"idle_in_transaction_session_timeout": millis(idleLimit),
		"tcp_keepalives_idle":                 "15", // seconds; what a machine that vanished has locked is free after half a minute
		"tcp_keepalives_interval":             "5",
		"tcp_keepalives_count":                "3",
	} {
		if config.ConnConfig.RuntimeParams[name] == "" {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	c := config.ConnConfig
	s := &Store{opts: opts, place: fmt.Sprintf("postgres://%s/%s", c.Host, c.Database)}
	s.owner.name, s.handouts = opts.Owner, s.makeHandouts()
	if s.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config); err != nil {
		return nil, s.explain(err)
	}
	patience, stop := context.WithTimeout(ctx, connectPatience)
	defer stop()
	if err := s.migrate(patience); err != nil {
		s.pool.Close()
		return nil, s.explain(err)
	}
	return s, nil
}

func millis(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// Name says what this store is, for messages to people.
func (s *Store) Name() string { return s.place }

// named puts the schema where statements have an @.
func (s *Store) named(query string) string { return strings.ReplaceAll(query, "@.", s.opts.Schema+".") }

// enter lets a call in, or says why none can be served. What came in has to leave
// the gate.
func (s *Store) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return nixie.Errorf(nixie.CodeUnavailable, "stopped before anything was done: %w", context.Cause(ctx))
	}
	if !s.gate.enter() {
		return nixie.Errorf(nixie.CodeUnavailable, "store is closed: open it again")
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
	err := s.owner.leave(ctx, s)
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

// wakes tells waiting sources of this process that work was added.
type wakes struct {
	mu    sync.Mutex
	queue map[string]chan struct{}
}

// Wake implements store.Waker.
func (s *Store) Wake(queue string) <-chan struct{} {
	s.wakes.mu.Lock()
	defer s.wakes.mu.Unlock()
	ch := s.wakes.queue[queue]
	if ch == nil {
		ch = make(chan struct{})
		if s.wakes.queue == nil {
			s.wakes.queue = map[string]chan struct{}{}
		}
		s.wakes.queue[queue] = ch
	}
	return ch
}

func (w *wakes) ring(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ch := w.queue[queue]; ch != nil {
		close(ch)
		delete(w.queue, queue)
	}
}

// all gives each of several the same error.
func all(errs []error, err error) []error {
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// checkCall bounds the parts of one call.
func checkCall(parts int) error {
	if parts > nixie.MaxBatch {
		return nixie.Errorf(nixie.CodeLimit, "call has %d parts, the limit is %d: split it", parts, nixie.MaxBatch)
	}
	return nil
}

// isOurs reports whether an error was made here for the caller, and so needs no
// explanation.
func isOurs(err error) bool {
	var ours *nixie.Error
	var duplicate *nixie.DuplicateError
	return errors.As(err, &ours) || errors.As(err, &duplicate)
}
