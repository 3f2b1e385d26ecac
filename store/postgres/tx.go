package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/puddle/v2"

	"github.com/nixie-go/nixie"
)

// tx is one transaction of a call: what it has read, what it decided, and what it is about to say
// to the server. Reads and writes are collected and go out together.
type tx struct {
	store      *Store
	ctx        context.Context
	stop       context.CancelFunc // of ctx, where the transaction made it
	wait       time.Duration      // for the answers of one round trip
	on         asker
	callers    bool   // it is a transaction of the caller
	quiet      bool   // it changes nothing that others wait for
	sees       string // how that is isolated
	recomputes bool   // heads of streams are recomputed
	claims     string // it settles, and then claims from this queue
	cursor     cursor
	now        int64
	list       []stmt

	queues         map[int64]*queueRow
	named          map[string]*queueRow
	rows           map[int64]*message // by pos
	byID           map[nixie.ID]*message
	letters        map[nixie.ID]*letterRow
	keys           map[dedupeKey]*holder
	locked         locks
	made           []string // queues that did not exist
	drawnPositions positions

	work   flush
	trail  []entry
	doc    []byte // of the failure at hand
	woken  map[string]bool
	hinted map[string]bool // queues in which something is due soon
	after  []func()        // run once the transaction is durable
	sent   bool            // something went to the server
	ending bool            // its commit is on the way
}

func (s *Store) newTx(ctx context.Context, on asker) *tx {
	return &tx{
		store: s, ctx: ctx, stop: func() {}, wait: s.opts.AnswerWait, on: on,
		queues: map[int64]*queueRow{}, named: map[string]*queueRow{},
		rows: map[int64]*message{}, byID: map[nixie.ID]*message{}, letters: map[nixie.ID]*letterRow{}, keys: map[dedupeKey]*holder{},
		woken: map[string]bool{}, hinted: map[string]bool{},
	}
}

// run adds a statement whose rows do not matter.
func (t *tx) run(query string, args ...any) {
	t.list = append(t.list, stmt{query: t.store.named(query), args: args})
}

// read adds a statement that is answered by rows.
func (t *tx) read(each func(row) error, query string, args ...any) {
	t.list = append(t.list, stmt{query: t.store.named(query), args: args, each: each})
}

// number adds a statement that is answered by one number.
func (t *tx) number(into *int64, query string, args ...any) {
	t.read(func(r row) error { return r.Scan(into) }, query, args...)
}

// send sends the server what was collected.
func (t *tx) send() error {
	if len(t.list) == 0 {
		return nil
	}
	list := t.list
	t.list, t.sent = nil, true
	ctx, stop := context.WithTimeout(t.ctx, t.wait)
	defer stop()
	return t.on.ask(ctx, list)
}

// clock sets now to the time at which everything that was collected before is done.
func (t *tx) clock() {
	if t.store.opts.Clock != nil {
		t.run("select")
		t.list[len(t.list)-1].done = func(string) error {
			t.now = t.store.opts.Clock().UnixNano()
			return nil
		}
		return
	}
	t.number(&t.now, "read_clock.sql")
}

func (t *tx) wake(queue string) { t.woken[queue] = true }

// comes wakes or hints the queue of a message that is due, or will be before the watch looks again.
func (t *tx) comes(queue string, due int64) {
	switch {
	case due <= t.now:
		t.wake(queue)
	case due <= t.now+int64(lookEvery):
		t.hinted[queue] = true
	}
}

// committed does what must not happen before the transaction is durable.
func (t *tx) committed() {
	for _, do := range t.after {
		do()
	}
	t.store.tell(t.woken)
	t.store.notify(t.hinted)
	if !t.quiet {
		t.store.watch.Poke()
	}
}

// maxTries bounds how often a transaction is run again after races.
const maxTries = 20

// The pool of a caller may have another level as its default.
const begin = "begin isolation level read committed"

// write runs f as a transaction. It is run again after a race, so f starts from nothing each time.
func (s *Store) write(ctx context.Context, f func(*tx) error) error {
	return s.writeOver(ctx, s.pool, f)
}

func (s *Store) writeOver(ctx context.Context, pool *pgxpool.Pool, f func(*tx) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.gate.leave()
	return s.transact(ctx, pool, f)
}

func (s *Store) transact(ctx context.Context, pool *pgxpool.Pool, f func(*tx) error) (err error) {
	for try := range maxTries {
		if err = s.once(ctx, pool, begin, f); !isRace(err) || !pause(ctx, try) {
			break
		}
	}
	return s.explain(err)
}

// maxPause bounds the pause after a race.
const maxPause = 200 * time.Millisecond

// pause waits after a race, longer from try to try and for a random time, so that two transactions
// do not meet again. It returns false when ctx has ended.
func pause(ctx context.Context, try int) bool {
	longest := min(time.Millisecond<<try, maxPause)
	timer := time.NewTimer(rand.N(longest))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// view runs f on one snapshot of everything.
func (s *Store) view(ctx context.Context, f func(*tx) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.gate.leave()
	return s.explain(s.once(ctx, s.pool, "begin transaction isolation level repeatable read, read only", func(t *tx) error {
		t.wait, t.quiet = viewPatience, true
		t.run("select set_config('plan_cache_mode', 'auto', true), set_config('enable_seqscan', 'on', true)") // lists and counts read much
		return f(t)
	}))
}

func (s *Store) once(ctx context.Context, pool *pgxpool.Pool, first string, f func(*tx) error) error {
	c, err := s.acquire(ctx, pool)
	if err != nil {
		return err
	}
	defer c.Release()
	t := s.newTx(ctx, piped{c.Conn()})
	defer func() { t.stop() }()
	t.run(first)
	if s.sessionSettings != "" {
		t.run(s.sessionSettings)
	}
	if err = f(t); err == nil {
		err = t.commit()
	}
	if err == nil {
		t.committed()
		return nil
	}
	if t.sent && !c.Conn().IsClosed() {
		// Also after the end of ctx: the connection goes back to the pool.
		patience, stop := context.WithTimeout(context.WithoutCancel(ctx), connectPatience)
		defer stop()
		if _, undone := c.Exec(patience, "rollback"); undone != nil {
			return errors.Join(err, c.Conn().Close(patience))
		}
	}
	if t.ending && unknown(err) {
		return nixie.Errorf(nixie.CodeOutcomeUnknown, "the answer to the commit did not come: look before you do it again: %w", err)
	}
	return err
}

// acquire waits for a connection of a pool. Its error tells when this process has all its
// connections in use.
func (s *Store) acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	ctx, stop := context.WithTimeout(ctx, s.opts.AnswerWait)
	defer stop()
	c, err := pool.Acquire(ctx)
	switch stat, callers := pool.Stat(), s.pool != s.own; {
	case errors.Is(err, puddle.ErrClosedPool):
		return nil, nixie.Errorf(nixie.CodeUnavailable, "the pool of store %s is %w: close the store before its pool", s.address,
			nixie.ErrClosed)
	case !errors.Is(err, context.DeadlineExceeded), stat.AcquiredConns() < stat.MaxConns(), callers && pool == s.own:
		return c, err
	case callers:
		return nil, nixie.Errorf(nixie.CodeUnavailable,
			"store %s: all %d connections of the pool are in use: raise its MaxConns, or hold them for a shorter time: %w", s.address,
			stat.MaxConns(), err)
	default:
		return nil, nixie.Errorf(nixie.CodeUnavailable,
			"store %s: all %d connections of this process are in use: raise pool_max_conns in its URL: %w", s.address, stat.MaxConns(), err)
	}
}

// unknown reports whether a commit may have happened despite the error.
func unknown(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Severity == "FATAL" || pg.Severity == "PANIC"
	}
	return !pgconn.SafeToRetry(err) && !isOurs(err) && !errors.As(err, new(*halfError))
}

const commit = "commit"

// commit writes what is left and ends the transaction. A server that had to undo
// it answers a commit with ROLLBACK, which is no error.
func (t *tx) commit() error {
	if err := t.finish(); err != nil {
		return err
	}
	t.list = append(t.list, stmt{query: commit, done: func(tag string) error {
		if tag != "COMMIT" {
			return nixie.Errorf(nixie.CodeUnavailable, "store %s undid the transaction: it answered the commit with %s", t.store.address,
				tag)
		}
		return nil
	}})
	t.ending = true
	return t.send()
}

// finish writes what the parts of the call decided.
func (t *tx) finish() error {
	t.flush()
	return t.flushTrail()
}

// plain returns a text as PostgreSQL can keep it: UTF-8, with a picture of the null character
// instead of it.
func plain(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "␀"), "\ufffd")
}
