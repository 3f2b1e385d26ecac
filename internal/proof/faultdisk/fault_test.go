package faultdisk_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/nixie-go/nixie/internal/proof/faultdisk"
	lib "modernc.org/sqlite/lib"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// attempt is a scenario that goes on after errors as a program would: what
// fails is not acknowledged, and a connection in doubt is closed.
func (l ledger) attempt(disk *faultdisk.Disk, entries int) (failures []error) {
	conn, err := l.open(disk.URI(database))
	if err != nil {
		return []error{err}
	}
	defer func() {
		if err := conn.Close(); err != nil {
			failures = append(failures, err)
		}
	}()
	if err := sqlitex.ExecuteScript(conn, schema, nil); err != nil {
		return append(failures, err)
	}
	disk.Mark("schema")
	for id := 1; id <= entries; id++ {
		if err := add(conn, id); err != nil {
			failures = append(failures, err)
			continue
		}
		disk.Mark(strconv.Itoa(id))
	}
	return failures
}

// acked returns what is promised now.
func acked(t *testing.T, disk *faultdisk.Disk) []string {
	t.Helper()
	c, err := disk.CrashAt(disk.Ops(), faultdisk.All, 0, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return c.Acked()
}

const maxFaults = 2000

// Every fault at every call: the loop ends, and after each fault the healed
// disk and the disk after a power loss hold what was acknowledged.
func TestFaultsNeverCorrupt(t *testing.T) {
	for _, fault := range faultdisk.Catalog() {
		t.Run(fault.String(), func(t *testing.T) {
			t.Parallel()
			struck := faultdisk.EachFault(t, fault, faultdisk.Calls{Limit: maxFaults}, func(t *testing.T, disk *faultdisk.Disk) {
				walFull.attempt(disk, 4)
				disk.Heal()
				afterFault(t, disk)
			})
			if struck == 0 {
				t.Errorf("the scenario never reached %v", fault)
			}
		})
	}
}

func afterFault(t *testing.T, disk *faultdisk.Disk) {
	t.Helper()
	promised := acked(t, disk)
	for _, mode := range []faultdisk.Mode{faultdisk.None, faultdisk.Subset, faultdisk.Torn} {
		c, err := disk.CrashAt(disk.Ops(), mode, 1, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := verify(c.Path(database), c.Acked()); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
	conn, err := walFull.open(disk.URI(database))
	if err != nil {
		t.Fatalf("after healing: %v", err)
	}
	defer closed(t, conn)
	if err := verifyConn(conn, promised); err != nil {
		t.Errorf("after healing: %v", err)
	}
}

// A fault reaches the program as the code that was asked for.
func TestFaultCodes(t *testing.T) {
	for _, c := range []struct {
		fault faultdisk.Fault
		want  sqlite.ResultCode
	}{
		{faultdisk.Fault{Calls: faultdisk.Sync}, sqlite.ResultIOErrFsync},
		{faultdisk.Fault{Calls: faultdisk.Write}, sqlite.ResultIOErrWrite},
		{faultdisk.Fault{Calls: faultdisk.Write, Code: lib.SQLITE_FULL, Short: 100}, sqlite.ResultFull},
		{faultdisk.Fault{Calls: faultdisk.ShmLock, Always: true}, sqlite.ResultProtocol}, // after many attempts,
		{faultdisk.Fault{Calls: faultdisk.Write, File: "-wal", Always: true}, sqlite.ResultIOErrWrite},
	} {
		t.Run(c.fault.String(), func(t *testing.T) {
			disk := faultdisk.New(t, "codes")
			conn := ready(t, disk)
			disk.FailAt(1, c.fault)
			if got := sqlite.ErrCode(add(conn, 1)); got != c.want {
				t.Errorf("add answered %v, want %v", got, c.want)
			}
			if disk.Fired() == 0 {
				t.Error("the fault did not fire")
			}
			disk.Heal()
			if err := add(conn, 2); err != nil {
				t.Errorf("after healing: %v", err)
			}
		})
	}
}

// A fault for other files leaves this one alone.
func TestFaultByFile(t *testing.T) {
	disk := faultdisk.New(t, "file")
	conn := ready(t, disk)
	disk.FailAt(1, faultdisk.Fault{Calls: faultdisk.AnyCall, File: "-journal", Always: true})
	if err := add(conn, 1); err != nil || disk.Fired() != 0 {
		t.Errorf("add answered %v, %d calls failed", err, disk.Fired())
	}
}

// ready returns a connection to a database with its schema.
func ready(t *testing.T, disk *faultdisk.Disk) *sqlite.Conn {
	t.Helper()
	conn, err := walFull.open(disk.URI(database))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, conn) })
	if err := sqlitex.ExecuteScript(conn, schema, nil); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A program that repeats a failed sync and believes the second answer is
// caught: with NORMAL, the log is synced by the checkpoint alone, so a
// checkpoint that is repeated after a failed sync writes pages of the database
// that the log on the disk cannot restore.
func TestRepeatedSyncIsFound(t *testing.T) {
	found := &losses{}
	l := ledger{journal: "wal", sync: "normal", pages: 0}
	disk := faultdisk.New(t, "resync")
	l.run(t, disk, 6)
	conn, err := l.open(disk.URI(database))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, conn)
	for id := 10; id < 16; id++ {
		if err := add(conn, id); err != nil {
			t.Fatal(err)
		}
	}
	disk.FailAt(1, faultdisk.Fault{Calls: faultdisk.Sync, File: "-wal"})
	if _, err := text(conn, "PRAGMA wal_checkpoint(FULL)"); sqlite.ErrCode(err) != sqlite.ResultIOErrFsync {
		t.Fatalf("checkpoint answered %v, want a failed sync", err)
	}
	from := disk.Ops()
	if _, err := text(conn, "PRAGMA wal_checkpoint(FULL)"); err != nil {
		t.Fatal(err)
	}
	faultdisk.EachCrash(t, disk, faultdisk.Plan{From: from, Seeds: 4}, func(t *testing.T, c faultdisk.Crash) {
		found.add(verify(c.Path(database), nil))
	})
	if found.damaged == 0 {
		t.Error("no image shows the damage")
	}
}

// quiet is a test that notes failures instead of failing, and cleans up when
// told to.
type quiet struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (q *quiet) Helper()          {}
func (q *quiet) Cleanup(f func()) { q.cleanups = append(q.cleanups, f) }
func (q *quiet) Errorf(s string, args ...any) {
	q.failures = append(q.failures, fmt.Sprintf(s, args...))
}

func (q *quiet) end() {
	for i := len(q.cleanups) - 1; i >= 0; i-- {
		q.cleanups[i]()
	}
}

// A connection left open fails the test that owns the disk, and from then on
// gets errors instead of a disk that is gone.
func TestOpenConnectionAtTheEnd(t *testing.T) {
	q := &quiet{TB: t}
	disk := faultdisk.New(q, "leak")
	conn, err := walFull.open(disk.URI(database))
	if err != nil {
		t.Fatal(err)
	}
	q.end()
	if len(q.failures) != 1 {
		t.Errorf("the end of the disk reported %q, want one failure", q.failures)
	}
	if err := sqlitex.ExecuteScript(conn, schema, nil); err == nil {
		t.Error("the disk still works")
	}
	if err := conn.Close(); err != nil {
		t.Log(err)
	}
	if _, err := walFull.open(disk.URI(database)); err == nil {
		t.Error("the VFS is still registered")
	}
}

// Files outside the disk are refused, so that none escapes the trace.
func TestOutsideIsRefused(t *testing.T) {
	disk := faultdisk.New(t, "outside")
	outside := "file:" + t.TempDir() + "/other.db?vfs=" + disk.VFS()
	if conn, err := walFull.open(outside); err == nil {
		t.Error(errors.Join(errors.New("opened a database outside the disk"), conn.Close()))
	}
}
