package faultdisk

import (
	"fmt"
	"strings"

	lib "modernc.org/sqlite/lib"
)

// Call is a set of calls of SQLite to the disk, for choosing which to fail.
type Call uint

// The calls that can fail. Unlocking and closing cannot: SQLite ignores the
// answers.
const (
	Open     Call = 1 << iota // opening or making a database, journal or log
	Read                      // reading from a file
	Write                     // writing to a file
	Truncate                  // cutting a file
	Sync                      // syncing a file
	Delete                    // deleting a file
	Access                    // asking whether a file exists
	Size                      // asking for the length of a file
	Lock                      // taking a lock on the database file
	ShmMap                    // mapping the shared memory of the WAL index
	ShmLock                   // taking a lock in the WAL index

	// AnyChange is every call that makes a durable change.
	AnyChange = Open | Write | Truncate | Sync | Delete

	// AnyCall is every call that can fail.
	AnyCall = AnyChange | Read | Access | Size | Lock | ShmMap | ShmLock
)

var callNames = [...]string{"open", "read", "write", "truncate", "sync", "delete", "access", "size", "lock", "shm-map", "shm-lock"}

// String returns the names of the calls joined by "+".
func (c Call) String() string {
	var names []string
	for i, name := range callNames {
		if c&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// Fault says which calls fail and how. The zero value fails nothing.
type Fault struct {
	// Calls is the set of calls that count and fail.
	Calls Call

	// Code is the SQLite result code to fail with. 0 means the code that the
	// operating system's VFS uses for that call, SQLITE_BUSY for locks.
	Code int32

	// File restricts the fault to files whose names end so, for example
	// "-wal". Empty means every file of the disk.
	File string

	// Always fails every later call too, until Heal. Otherwise one call fails.
	// While such a fault lasts, SQLite does not really sleep between its own
	// attempts to take a lock. A busy handler of the driver still may, for
	// ever even: give the connection a busy timeout.
	Always bool

	// Short counts the bytes that a failing write still writes first. Whichever the
	// length of the write, at least its last byte is not written.
	Short int
}

// String describes the fault in a form that suits the name of a subtest.
func (f Fault) String() string {
	s := f.Calls.String()
	if f.Code != 0 {
		s += fmt.Sprintf("=%d", f.Code)
	}
	if f.File != "" {
		s += " on *" + f.File
	}
	if f.Short > 0 {
		s += fmt.Sprintf(" short %d", f.Short)
	}
	if f.Always {
		s += " always"
	}
	return s
}

// Catalog returns the faults that a careful program survives, each to be
// injected at every call with [EachFault]: I/O errors of every kind once and
// for good, a full disk with and without a short write, and a busy lock.
func Catalog() []Fault {
	var faults []Fault
	for _, calls := range []Call{Open, Read, Write, Truncate, Sync, Delete, Access, Size, ShmMap, ShmLock} {
		faults = append(faults, Fault{Calls: calls}, Fault{Calls: calls, Always: true})
	}
	return append(faults,
		Fault{Calls: Write, Code: lib.SQLITE_FULL},
		Fault{Calls: Write, Code: lib.SQLITE_FULL, Always: true},
		Fault{Calls: Write, Code: lib.SQLITE_FULL, Short: 512},
		Fault{Calls: Write, Code: lib.SQLITE_FULL, Short: 512, Always: true},
		Fault{Calls: ShmLock, Code: lib.SQLITE_IOERR_SHMLOCK},
		Fault{Calls: AnyCall, Always: true},
	)
}

// ordinaryCode returns the code with which the VFS of the operating system answers a failed call.
func ordinaryCode(call Call) int32 {
	switch call {
	case Open:
		return lib.SQLITE_CANTOPEN
	case Read:
		return lib.SQLITE_IOERR_READ
	case Write:
		return lib.SQLITE_IOERR_WRITE
	case Truncate:
		return lib.SQLITE_IOERR_TRUNCATE
	case Sync:
		return lib.SQLITE_IOERR_FSYNC
	case Delete:
		return lib.SQLITE_IOERR_DELETE
	case Access:
		return lib.SQLITE_IOERR_ACCESS
	case Size:
		return lib.SQLITE_IOERR_FSTAT
	case ShmMap:
		return lib.SQLITE_IOERR_SHMMAP
	case Lock, ShmLock:
		return lib.SQLITE_BUSY
	}
	return lib.SQLITE_IOERR
}

// injector counts calls and fails those it was asked to. The disk guards it.
type injector struct {
	fault Fault
	left  int // matching calls until the fault; 0 means none is set
	fired int
}

// answer counts a call and returns the code it shall fail with, SQLITE_OK if
// it shall not.
func (in *injector) answer(call Call, file string) int32 {
	if in.left == 0 || in.fault.Calls&call == 0 || !strings.HasSuffix(file, in.fault.File) {
		return lib.SQLITE_OK
	}
	if in.left > 1 {
		in.left--
		return lib.SQLITE_OK
	}
	if !in.fault.Always {
		in.left = 0
	}
	in.fired++
	if in.fault.Code != 0 {
		return in.fault.Code
	}
	return ordinaryCode(call)
}

// lasts tells whether every matching call fails now.
func (in *injector) lasts() bool { return in.left == 1 && in.fault.Always && in.fired > 0 }
