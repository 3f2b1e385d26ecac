package faultdisk_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"testing"

	"github.com/nixie-go/nixie/internal/proof/faultdisk"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// ledger is a program under test: it writes rows, one transaction each, and
// keeps an index over them and a count of them.
type ledger struct {
	journal string // journal_mode
	sync    string // synchronous
	mmap    bool
	pages   int  // wal_autocheckpoint
	wait    bool // for locks, for as long as it takes
}

var walFull = ledger{journal: "wal", sync: "full", pages: 8}

const database = "ledger.db"

// open opens a connection and sets it up.
func (l ledger) open(uri string) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(uri, sqlite.OpenReadWrite, sqlite.OpenCreate, sqlite.OpenURI)
	if err != nil {
		return nil, err
	}
	if !l.wait {
		conn.SetBusyTimeout(0)
	}
	mmap := 0
	if l.mmap {
		mmap = 1 << 20
	}
	for _, setting := range []string{
		"journal_mode=" + l.journal, "synchronous=" + l.sync, fmt.Sprintf("mmap_size=%d", mmap),
		fmt.Sprintf("wal_autocheckpoint=%d", l.pages), "cache_size=10", "cache_spill=4",
	} {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+setting, nil); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

const schema = `
CREATE TABLE IF NOT EXISTS entry (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS entry_body ON entry (substr(body, 1, 100), id);
CREATE TABLE IF NOT EXISTS total (n INTEGER NOT NULL);
INSERT INTO total SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM total);`

// add writes entry id in one transaction.
func add(conn *sqlite.Conn, id int) (err error) {
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		return err
	}
	defer end(&err)
	args := &sqlitex.ExecOptions{Args: []any{id, 100 + id*397%5000}}
	if err = sqlitex.Execute(conn, "INSERT INTO entry VALUES (?, randomblob(?))", args); err != nil {
		return err
	}
	return sqlitex.Execute(conn, "UPDATE total SET n = n + 1", nil)
}

// run writes entries and marks each that was acknowledged.
func (l ledger) run(t *testing.T, disk *faultdisk.Disk, entries int) {
	t.Helper()
	conn, err := l.open(disk.URI(database))
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, conn)
	if err := sqlitex.ExecuteScript(conn, schema, nil); err != nil {
		t.Fatal(err)
	}
	disk.Mark("schema")
	for id := 1; id <= entries; id++ {
		if err := add(conn, id); err != nil {
			t.Fatal(err)
		}
		disk.Mark(strconv.Itoa(id))
	}
}

func closed(t *testing.T, conn *sqlite.Conn) {
	t.Helper()
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// errLost tells that something acknowledged is gone; any other error of verify
// is damage.
var errLost = errors.New("acknowledged entry lost")

// verify opens what a crash left without any help from the disk.
func verify(path string, acked []string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if len(acked) > 0 {
			return fmt.Errorf("%w: no database", errLost)
		}
		return nil
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	conn.SetBusyTimeout(0)
	return errors.Join(verifyConn(conn, acked), conn.Close())
}

func verifyConn(conn *sqlite.Conn, acked []string) error {
	answer, err := text(conn, "PRAGMA integrity_check")
	if err != nil {
		return err
	}
	if answer != "ok" {
		return fmt.Errorf("integrity check: %s", answer)
	}
	for _, label := range acked {
		query := "SELECT count(*) FROM entry WHERE id = " + label
		if label == "schema" {
			query = "SELECT count(*) FROM sqlite_master WHERE name = 'total'"
		}
		n, err := text(conn, query)
		if err != nil {
			return fmt.Errorf("%w: %s: %w", errLost, label, err)
		}
		if n != "1" {
			return fmt.Errorf("%w: %s", errLost, label)
		}
	}
	if n, err := text(conn, "SELECT count(*) FROM sqlite_master WHERE name = 'total'"); err != nil || n == "0" {
		return err
	}
	same, err := text(conn, "SELECT coalesce((SELECT n FROM total), 0) = (SELECT count(*) FROM entry)")
	if err == nil && same != "1" {
		err = errors.New("half a transaction: total differs from the entries")
	}
	return err
}

func text(conn *sqlite.Conn, query string) (string, error) {
	var answer string
	err := sqlitex.Execute(conn, query, &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error {
			answer += stmt.ColumnText(0)
			return nil
		},
	})
	return answer, err
}

// writeSome opens a connection of its own and adds n entries when the file is free.
func writeSome(t *testing.T, disk *faultdisk.Disk, from, n int) {
	waiting := walFull
	waiting.wait = true
	conn, err := waiting.open(disk.URI(database))
	if err != nil {
		t.Error(err)
		return
	}
	defer closed(t, conn)
	for id := from; id < from+n; id++ {
		if err := add(conn, id); err != nil {
			t.Errorf("entry %d: %v", id, err)
			return
		}
		disk.Mark(strconv.Itoa(id))
	}
}
