// Package sqlite is the embedded store: one file, any number of processes.
//
// Each commit is durable before it is acknowledged (WAL, synchronous FULL). A process writes
// through one committer: calls that arrive during one commit form the next transaction. Processes
// write alternately, by short IMMEDIATE transactions. A process that claims holds the kernel lock
// of a file next to the store. If another process can take that lock, the owner is dead and its
// leases are void at once. The file also logs the progress of each delivery.
//
// Claims hand out new messages by range: one row of batch is the lease of many messages. The file
// migrations/0001_core.up.sql describes the tables.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/lease"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/engine"
)

// Options of a store. The zero value is fine.
type Options struct {
	// Clock judges delays and ages; default time.Now. The store's own clock never
	// goes back: while Clock is behind it goes at nine tenths of the pace.
	Clock func() time.Time
	// Uptime is the time since the machine was started, which cannot be set: leases
	// and the pace count by it. Default: that of the system, or of a Clock whose
	// times have no monotonic reading.
	Uptime func() time.Duration
	// Owner is the name that lists show as the holder of leases; default host:pid.
	Owner string
	// MustExist refuses to create a file.
	MustExist bool
	// Reserve is the free space in bytes below which new messages are refused,
	// so that messages in hand can still be settled: default 64 MiB, −1 none.
	Reserve int64
	// LockWait limits how long a call waits for another process that writes:
	// default 30 s.
	LockWait time.Duration
	// VFS names a registered SQLite file system, for tests.
	VFS string
}

const (
	defaultReserve  = 64 << 20
	defaultLockWait = 30 * time.Second
	readers         = 4
	claimReaders    = 2
)

// Store is an open store. It is safe for concurrent use.
type Store struct {
	*verbs
	path        string
	opts        Options
	ids         store.IDs
	time        *storeTime
	readers     *pool // for lists and checks, which may be slow
	claimers    *pool // for claims, which must not wait for those
	writes      chan *write
	idle        chan struct{} // closed when the committer has ended
	broken      atomic.Pointer[error]
	gate        *gate
	owner       ownership
	writerQueue writerQueue // only the committer uses it
	wal         walWatch    // likewise
	added       inserts     // likewise
	callers     callers
	wakes       store.Wakes
	watch       *store.Watch
	watching    watching // only the watch uses it
	waiters     waiters
	space       spaceWatch
	files       identity
}

var _ interface {
	store.Store
	lease.ProgressLog
} = (*Store)(nil)

// Open opens the store at path and creates it when it does not exist. The folder has to exist. If a
// process that used the store died, Open checks the file first.
func Open(path string, opts Options) (*Store, error) {
	if opts.Clock == nil {
		opts.Clock = time.Now //nolint:forbidigo // the default
	}
	if opts.Reserve == 0 {
		opts.Reserve = defaultReserve
	}
	if opts.LockWait == 0 {
		opts.LockWait = defaultLockWait
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, nixie.Errorf(nixie.CodeInvalid, "store path: %w", err)
	}
	if err := checkFile(path, opts.MustExist); err != nil {
		return nil, err
	}
	s := &Store{
		path:        path,
		opts:        opts,
		time:        newStoreTime(opts.Clock, opts.Uptime),
		writes:      make(chan *write, 4096),
		idle:        make(chan struct{}),
		gate:        newGate(),
		wal:         walWatch{path: path + "-wal", wait: opts.LockWait},
		writerQueue: writerQueue{folder: path + lockFolder, wait: opts.LockWait},
		owner:       ownership{name: opts.Owner},
		callers:     callers{next: make(chan struct{}, 1), queue: writerQueue{folder: path + lockFolder, wait: opts.LockWait}},
		space:       spaceWatch{folder: filepath.Dir(path), reserve: opts.Reserve},
	}
	s.verbs = engine.New(engineDriver{s}, &s.ids)
	s.readers = newPool(readers, func() (conn, error) { return s.openReader(listCache) })
	s.claimers = newPool(claimReaders, func() (conn, error) { return s.openReader() })
	s.watch = store.NewWatch(&s.wakes, s.findWork)
	w, err := s.connect()
	if err != nil {
		return nil, err
	}
	go s.commitLoop(w)
	return s, nil
}

// checkFile distinguishes errors that SQLite reports as one "cannot open".
func checkFile(path string, mustExist bool) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nixie.Errorf(nixie.CodeInvalid, "store %s is a folder: name a file in it", path)
	case err == nil && info.Size() == 0:
		return checkEmpty(path, mustExist)
	case errors.Is(err, os.ErrNotExist) && mustExist:
		return nixie.Errorf(nixie.CodeNotFound, "no store at %s: nixie run, enqueue and queue set make one, --store names another", path)
	case errors.Is(err, os.ErrNotExist):
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nixie.Errorf(nixie.CodeUnavailable, "store cannot be created: %w: name a file in a folder that can be written", err)
		}
		return f.Close()
	case err != nil:
		return nixie.Errorf(nixie.CodeUnavailable, "store cannot be opened: %w", err)
	}
	return nil
}

// checkEmpty refuses an empty file that was a store. SQLite would delete its log of writes. A store
// that is being made has no log before its file has a size.
func checkEmpty(path string, mustExist bool) error {
	if mustExist {
		return nixie.Errorf(nixie.CodeNotFound, "no store at %s: the file is empty: nixie run, enqueue and queue set make one in it", path)
	}
	log, err := os.Stat(path + "-wal")
	if err != nil || log.Size() == 0 {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		return nixie.Errorf(nixie.CodeInternal,
			"store %s is damaged: it was cut to 0 bytes, and its log of writes is there: restore a copy of the store", path)
	}
	return nil
}

// connect opens the writing connection.
func (s *Store) connect() (conn, error) {
	w, err := openLooking(s.path, s.opts.VFS, true, s.opts.LockWait, func(c conn) error { return recognise(c, s.path) })
	if err != nil {
		return conn{}, err
	}
	fail := func(err error) (conn, error) { return conn{}, explain(s.path, errors.Join(err, w.Close())) }
	if err := migrate(w, s.path); err != nil {
		return fail(err)
	}
	if _, _, err := s.sharedMoment(queries{w}); err != nil {
		return fail(err)
	}
	if err := s.checkAfterCrash(w); err != nil {
		return fail(err)
	}
	if err := s.files.learn(s.path); err != nil {
		return fail(err)
	}
	return w, nil
}

// openReader opens one more connection to the file that is open, with some settings. A file that
// has replaced it is not touched.
func (s *Store) openReader(settings ...string) (conn, error) {
	c, err := openLooking(s.path, s.opts.VFS, false, s.opts.LockWait, func(conn) error { return s.files.check() })
	if err != nil {
		return conn{}, err
	}
	for _, p := range settings {
		if err := c.run(p); err != nil {
			return conn{}, errors.Join(explain(s.path, err), c.Close())
		}
	}
	return c, nil
}

// listCache is an eighth of the usual cache, for readers of lists: they read most pages once, and a
// command that looks something up has to stay small.
const listCache = "pragma cache_size = -2048"

// checkFor limits the check of the file after a crash. For a large file nixie verify checks the
// rest.
const checkFor = 5 * time.Second

// checkAfterCrash checks the file if a process that used it died.
func (s *Store) checkAfterCrash(c conn) error {
	dead, err := s.deadOwners(c)
	if err != nil || len(dead) == 0 {
		return err
	}
	patience, stop := context.WithTimeout(context.Background(), checkFor)
	defer stop()
	c.SetInterrupt(patience.Done())
	defer c.SetInterrupt(nil)
	found := "ok"
	err = c.each("pragma quick_check(1)", func(row rows) error {
		found = row.ColumnText(0)
		return nil
	})
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultInterrupt {
		err = nil
	}
	if err == nil && found != "ok" {
		err = nixie.Errorf(nixie.CodeInternal, "store %s is damaged (%s): stop all writers and restore a copy", s.path, found)
	}
	return err
}

// Path returns the absolute path of the file.
func (s *Store) Path() string { return s.path }

// enter lets a call in, or returns why the store takes no more calls. A call that went in has to
// leave the gate.
func (s *Store) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	if err := s.broken.Load(); err != nil {
		return *err
	}
	if !s.gate.enter() {
		return nixie.Errorf(nixie.CodeUnavailable, "store is %w: open it again", nixie.ErrClosed)
	}
	return nil
}

// Close waits for running calls, gives up the leases of this process as abandoned, and closes the
// file.
func (s *Store) Close() error {
	if !s.gate.close() {
		<-s.idle
		return nil
	}
	return errors.Join(s.leave(), s.shut())
}

// shut ends the committer and closes all files. All calls have left the gate.
func (s *Store) shut() error {
	s.watch.Close()
	close(s.writes)
	<-s.idle
	return errors.Join(s.watching.close(), s.callers.close(), s.writerQueue.close(), s.owner.release(), s.readers.close(),
		s.claimers.close())
}

// leave deletes this process from the owners, so that the next process that opens the store does
// not take it for dead.
func (s *Store) leave() error {
	self := s.owner.registered()
	if self.n == 0 || s.broken.Load() != nil {
		return nil
	}
	err := s.submit(context.Background(), 0, true, func(t *tx) error { return t.sweep([]ownerRow{self}) })
	if err == nil {
		s.forget([]ownerRow{self})
	}
	return err
}

// Features implements store.Store: the store has all optional abilities.
func (s *Store) Features() store.Features {
	return store.Features{
		Streams: s, Check: s.Check, Inspect: s.Inspect, Ping: s.Ping, Tried: s.Tried, Patience: s.patience,
		Documents: s.Documents(), Stopping: s.stopping, Ended: s.ended,
		Regroup: s.Regroup, Wake: s.wakes.Next, Watch: s.watch.Watch, Await: s.await, Exchange: s.exchange,
	}
}

// Name returns the URL of the store, for messages to operators.
func (s *Store) Name() string { return fmt.Sprintf("sqlite://%s", s.path) }
