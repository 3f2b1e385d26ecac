package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/nixie-go/nixie"
)

// ownership holds the identity of this process as a holder of leases. The first claim registers it:
// a process that only enqueues or reads holds no leases.
type ownership struct {
	mu   sync.Mutex
	name string
	n    int64 // row of the table owner
	file *os.File

	told bool // to stop

	progress progressFile // logged in the file

	marked atomic.Int64
	probed atomic.Uint32
}

// lockFolder is added to the store's path. The folder has the locks of the writer queue and a lock
// file for each process that claims.
const lockFolder = "-owners"

// register makes this process an owner: first it takes the kernel lock, then it adds the row. So no
// other process sees the row of a living process without a lock.
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
		// Another process took this one for dead, for example because an operator removed the
		// folder of locks. The leases of this process are void; it goes on as a new owner.
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
	if err := t.run("insert into owner (name, lock, started, stopping) values (?, ?, ?, ?)",
		o.name, filepath.Base(o.file.Name()), t.now, o.told); err != nil {
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

// stopping implements Stopping of store.Features. The lock file outlives the process at once, also
// while others keep the store locked; the row outlives a power loss.
func (s *Store) stopping(ctx context.Context, told bool) error {
	if !s.owner.tell(told) {
		return nil
	}
	logged := s.owner.progress.tell(told)
	err := s.write(ctx, 0, func(t *tx) error {
		return t.run("update owner set stopping = ? where n = ?", told, s.owner.registered().n)
	})
	if told && logged == nil {
		return nil
	}
	return errors.Join(logged, err)
}

// tell notes whether this process was told to stop, and reports whether an owner has to say it.
func (o *ownership) tell(told bool) (news bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.told
	o.told = told
	return was != told && o.n != 0
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

// registered returns the row of this process, or the zero row before the first claim.
func (o *ownership) registered() ownerRow {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n == 0 || o.file == nil {
		return ownerRow{}
	}
	return ownerRow{o.n, o.name, filepath.Base(o.file.Name())}
}

// release gives the lock back; claims delete the file.
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

// someDeadOwners is deadOwners for claims, which are frequent: it probes at most maxProbes owners.
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

// maxProbes limits the owners that one claim probes. With more owners, claims probe them
// alternately, so that many idle processes do not spend their time on each other.
const maxProbes = 16

// nextProbes chooses the owners that this claim probes.
func (o *ownership) nextProbes(others []ownerRow) []ownerRow {
	if len(others) <= maxProbes {
		return others
	}
	first := int(o.probed.Add(maxProbes)) % len(others)
	return append(others[first:], others[:first]...)[:maxProbes]
}

// isDead reports whether an owner has lost its lock. A missing file was deleted after its owner was
// found dead. If the file cannot be opened, the leases end by time.
func (s *Store) isDead(o ownerRow) bool {
	f, err := os.OpenFile(filepath.Join(s.path+lockFolder, filepath.Base(o.lock)), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return true
	}
	if err != nil {
		return false
	}
	free, err := tryLock(f)
	_ = f.Close() // also gives the lock of this probe back
	return free && err == nil
}

// forget deletes the lock files of owners that are gone from the store.
func (s *Store) forget(dead []ownerRow) {
	for _, o := range dead {
		_ = os.Remove(filepath.Join(s.path+lockFolder, filepath.Base(o.lock))) // a file that stays is found dead again
	}
}
