package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/nixie-go/nixie"
)

// ownership is this process as a holder of leases. It is registered at the
// first claim: a process that only enqueues or looks holds nothing.
type ownership struct {
	mu   sync.Mutex
	name string
	n    int64 // row of the table owner
	file *os.File

	progress progressFile // in the file

	marked atomic.Int64
	probed atomic.Uint32
}

// lockFolder is added to the store's path: the folder with the writers' queue
// and one lock file for each process that claims.
const lockFolder = "-owners"

// register makes this process an owner: first the kernel lock, then the row, so
// that no row without a lock is ever seen as dead while its process lives.
func (s *Store) register(t *tx) error {
	if t.owner != 0 {
		return nil // an earlier call of this transaction did it
	}
	o := &s.owner
	o.mu.Lock()
	defer o.mu.Unlock()
	known, err := t.number("select n from owner where n = ?", o.n)
	if err != nil {
		return err
	}
	if known != 0 {
		t.owner = known
		return nil
	}
	if o.n != 0 {
		// Somebody took this process for dead, as when the folder of locks was
		// removed under it. What it held is void; it goes on as a new owner.
		o.n = 0
		if err := o.close(); err != nil {
			return err
		}
	}
	if o.file == nil {
		if err := o.lock(s.path+lockFolder, s.ids.New(s.opts.Clock()).String()); err != nil {
			return err
		}
	}
	if o.name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "localhost"
		}
		o.name = host + ":" + strconv.Itoa(os.Getpid())
	}
	if err := t.run("insert into owner (name, lock, started) values (?, ?, ?)", o.name, filepath.Base(o.file.Name()), t.now); err != nil {
		return err
	}
	t.owner = t.LastInsertRowID()
	n := t.owner
	t.after = append(t.after, func() {
		o.mu.Lock()
		o.n = n
		o.mu.Unlock()
	})
	return nil
}

func (o *ownership) lock(folder, name string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nixie.Errorf(nixie.CodeUnavailable, "folder for owner locks: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(folder, name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nixie.Errorf(nixie.CodeUnavailable, "owner lock: %w", err)
	}
	if free, err := tryLock(f); err != nil || !free {
		return errors.Join(nixie.Errorf(nixie.CodeUnavailable, "owner lock %s cannot be taken", f.Name()), err, f.Close())
	}
	o.file = f
	o.progress.begin(f)
	return nil
}

// registered is this process's row, or the zero row before the first claim.
func (o *ownership) registered() ownerRow {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == 0 || o.file == nil {
		return ownerRow{}
	}
	return ownerRow{o.n, o.name, filepath.Base(o.file.Name())}
}

// release gives the lock back; the file goes with it.
func (o *ownership) release() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.close()
}

func (o *ownership) close() error {
	if o.file == nil {
		return nil
	}
	o.progress.begin(nil)
	err := o.file.Close()
	o.file = nil
	return err
}

// ownerRow is one row of the table owner.
type ownerRow struct {
	n          int64
	name, lock string
}

// deadOwners returns the owners whose lock can be taken.
func (s *Store) deadOwners(c conn) ([]ownerRow, error) {
	others, err := s.otherOwners(c)
	return s.deadOf(others), err
}

// someDeadOwners is deadOwners for claims, which are many: it looks at a few
// only.
func (s *Store) someDeadOwners(c conn) ([]ownerRow, error) {
	others, err := s.otherOwners(c)
	return s.deadOf(s.owner.nextProbes(others)), err
}

func (s *Store) otherOwners(c conn) ([]ownerRow, error) {
	s.owner.mu.Lock()
	self := s.owner.n
	s.owner.mu.Unlock()
	var others []ownerRow
	err := c.each("select n, name, lock from owner where n <> ?", func(row rows) error {
		others = append(others, ownerRow{row.ColumnInt64(0), row.ColumnText(1), row.ColumnText(2)})
		return nil
	}, self)
	return others, err
}

func (s *Store) deadOf(others []ownerRow) []ownerRow {
	var dead []ownerRow
	for _, o := range others {
		if s.isDead(o) {
			dead = append(dead, o)
		}
	}
	return dead
}

// maxProbes is how many other owners one claim looks at. Where there are more,
// the claims take turns, so that many idle processes do not spend their time on
// each other.
const maxProbes = 16

// turn chooses the owners to look at now.
func (o *ownership) nextProbes(others []ownerRow) []ownerRow {
	if len(others) <= maxProbes {
		return others
	}
	first := int(o.probed.Add(maxProbes)) % len(others)
	return append(others[first:], others[:first]...)[:maxProbes]
}

// isDead reports whether nobody holds the owner's lock. A file that is gone was
// removed after its owner was found dead; one that cannot be looked at leaves
// the judgement to the end of the lease.
func (s *Store) isDead(o ownerRow) bool {
	f, err := os.OpenFile(filepath.Join(s.path+lockFolder, filepath.Base(o.lock)), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	if err != nil {
		return false
	}
	free, err := tryLock(f)
	_ = f.Close() // gives the probe's lock back
	return free && err == nil
}

// forget removes the lock files of owners that are gone from the store.
func (s *Store) forget(dead []ownerRow) {
	for _, o := range dead {
		_ = os.Remove(filepath.Join(s.path+lockFolder, filepath.Base(o.lock))) // a file left behind is found dead again
	}
}
