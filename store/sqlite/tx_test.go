package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/sqlite"
	"github.com/nixie-go/nixie/store/storetest"
)

// begin begins a transaction of the caller.
func begin(t testing.TB, s *sqlite.Store) *sql.Tx {
	t.Helper()
	db, err := s.DB()
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

func execute(t testing.TB, on interface {
	Exec(query string, args ...any) (sql.Result, error)
}, query string, args ...any,
) {
	t.Helper()
	if _, err := on.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

// TestDBSettings compares the connections of the caller with what commits are
// promised, at a path with odd characters.
func TestDBSettings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "odd ?#%41&=+;'\"ü name.db")
	s := open(t, path, sqlite.Options{LockWait: 7 * time.Second})
	db, err := s.DB()
	must(t, err)
	if again, err := s.DB(); again != db || err != nil {
		t.Errorf("a second handle: %v", err)
	}
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "busy_timeout": "7000", "trusted_schema": "0", "foreign_keys": "0",
		"wal_autocheckpoint": "4000", "cache_size": "-16384", "journal_size_limit": "67108864", "temp_store": "2",
	} {
		got := ""
		must(t, db.QueryRow("pragma "+pragma).Scan(&got))
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
	file := ""
	must(t, db.QueryRow("select file from pragma_database_list where name = 'main'").Scan(&file))
	want, err := filepath.EvalSymlinks(path)
	must(t, err)
	if file != want {
		t.Errorf("file is %q, want %q", file, want)
	}
	if _, err := db.Exec(`select "no such column"`); err == nil {
		t.Error("a misspelt column is read as a text")
	}
	must(t, s.Close())
	if err := db.Ping(); err == nil {
		t.Error("the handle outlived its store")
	}
	if _, err := s.DB(); nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Errorf("handle of a closed store: %v", err)
	}
}

// TestTxLikeStore enqueues the same through a transaction and directly, on two
// stores, and compares what can be seen.
func TestTxLikeStore(t *testing.T) {
	var seen [2]string
	for side := range seen {
		clock := storetest.NewClock()
		s := open(t, "", sqlite.Options{Clock: clock.Now, Reserve: -1})
		must(t, store.Configure(t.Context(), s, "q", nixie.QueueSettings{DedupeScope: nixie.DedupeEver}, "ann", "r"))
		var to nixie.Enqueuer = s
		end := func() {}
		if side == 1 {
			tx := begin(t, s)
			to, end = s.Tx(tx), func() { must(t, tx.Commit()) }
		}
		for _, m := range []nixie.Message{
			{Queue: "q"},
			{Queue: "q", Body: []byte("b"), Type: "t", Key: "k", Headers: []nixie.Header{{Name: "a", Value: "b"}},
				Origin: &nixie.Origin{System: "kafka", Key: []byte{}}},
			{Queue: "q", DedupeKey: "d", Body: []byte("one")},
			{Queue: "q", DedupeKey: "d", Body: []byte("two")},
			{Queue: "q", DedupeKey: "d", Body: []byte("three"), OnConflict: nixie.ReplaceExisting},
			{Queue: "q", DedupeKey: "d", OnConflict: nixie.FailOnConflict},
			{Queue: "q", Delay: time.Hour}, {Queue: "q", Priority: 3}, {Queue: "q", Stream: "s"}, {Queue: "other"},
			{Queue: "q", Priority: 9}, {}, {Queue: "q", NotBefore: clock.Now().Add(time.Minute), ExpiresAt: clock.Now().Add(time.Hour)},
		} {
			receipts, err := to.Enqueue(t.Context(), m)
			seen[side] += fmt.Sprintln(nixie.CodeOf(err), len(receipts) > 0 && receipts[0].Duplicate,
				len(receipts) > 0 && receipts[0].Different)
		}
		end()
		queues, err := s.Queues(t.Context(), store.QueueQuery{})
		must(t, err)
		seen[side] += fmt.Sprintf("%+v\n", queues)
		for _, r := range messages(t, s) {
			r.ID = nixie.ID{}
			doc, err := json.Marshal(r)
			must(t, err)
			seen[side] += string(doc) + "\n"
		}
		storetest.Invariants(t, s)
	}
	if seen[0] != seen[1] {
		t.Errorf("directly:\n%s\nin a transaction:\n%s", seen[0], seen[1])
	}
}

func messages(t *testing.T, s *sqlite.Store) []nixie.Message {
	t.Helper()
	var ms []nixie.Message
	page := store.Page{Limit: 1000}
	for {
		rs, next, err := s.Messages(t.Context(), nixie.Filter{}, page)
		must(t, err)
		for _, r := range rs {
			ms = append(ms, r.Message)
		}
		if next == "" {
			return ms
		}
		page.Cursor = next
	}
}

// TestTxWithOwnRow commits and rolls back a message together with a row of the
// caller.
func TestTxWithOwnRow(t *testing.T) {
	s := open(t, "", sqlite.Options{Reserve: -1})
	db, err := s.DB()
	must(t, err)
	execute(t, db, "create table app_order (n integer primary key)")
	for n, commit := range []bool{true, false, true} {
		tx := begin(t, s)
		execute(t, tx, "insert into app_order (n) values (?)", n)
		_, err := s.Tx(tx).Enqueue(t.Context(), nixie.Message{Queue: "q", Key: fmt.Sprint(n)})
		must(t, err)
		wake := s.Features().Wake("q")
		if commit {
			must(t, tx.Commit())
		} else {
			must(t, tx.Rollback())
		}
		select {
		case <-wake:
			if !commit {
				t.Error("a source was woken for nothing")
			}
		default:
			if commit {
				t.Error("no source was woken")
			}
		}
		rows := 0
		must(t, db.QueryRow("select count(*) from app_order where n = ?", n).Scan(&rows))
		if have := len(messages(t, s)); (rows == 1) != commit || have != []int{1, 1, 2}[n] {
			t.Errorf("after transaction %d: %d rows, %d messages", n, rows, have)
		}
	}
	storetest.Invariants(t, s)
}

// TestTxRefusedCallLeavesNothing shows that a call that fails half way takes
// back its half and nothing else.
func TestTxRefusedCallLeavesNothing(t *testing.T) {
	s := open(t, "", sqlite.Options{Reserve: -1})
	db, err := s.DB()
	must(t, err)
	execute(t, db, "create table app_order (n integer primary key)")
	fill(t, s, "q", 1)
	tx := begin(t, s)
	in := s.Tx(tx)
	execute(t, tx, "insert into app_order (n) values (1)")
	_, err = in.Enqueue(t.Context(), nixie.Message{Queue: "q", DedupeKey: "k", Key: "first"})
	must(t, err)
	_, err = in.Enqueue(t.Context(), nixie.Message{Queue: "new"}, nixie.Message{Queue: "q", Key: "half"},
		nixie.Message{Queue: "q", DedupeKey: "k", OnConflict: nixie.FailOnConflict})
	var duplicate *nixie.DuplicateError
	if !errors.As(err, &duplicate) {
		t.Fatalf("got %v", err)
	}
	_, err = in.Enqueue(t.Context(), nixie.Message{Queue: "q"}, nixie.Message{})
	if nixie.CodeOf(err) != nixie.CodeInvalid {
		t.Fatalf("got %v", err)
	}
	_, err = in.Enqueue(t.Context(), nixie.Message{Queue: "q", Key: "last"})
	must(t, err)
	must(t, tx.Commit())
	keys := map[string]bool{}
	for _, m := range messages(t, s) {
		keys[m.Key] = true
	}
	if len(keys) != 3 || !keys["first"] || !keys["last"] {
		t.Errorf("kept %v", keys)
	}
	queues, err := s.Queues(t.Context(), store.QueueQuery{})
	must(t, err)
	if len(queues) != 1 {
		t.Errorf("%d queues", len(queues))
	}
	storetest.Invariants(t, s)
}

// TestTxRefusals names each transaction that is none of this store.
func TestTxRefusals(t *testing.T) {
	s := open(t, "", sqlite.Options{Reserve: -1})
	other := open(t, "", sqlite.Options{Reserve: -1})
	db, err := s.DB()
	must(t, err)
	same, err := sql.Open("sqlite", s.Path())
	must(t, err)
	defer func() { must(t, same.Close()) }()
	over := begin(t, s)
	must(t, over.Rollback())
	from := func(db *sql.DB, opts *sql.TxOptions) *sql.Tx {
		tx, err := db.BeginTx(t.Context(), opts)
		must(t, err)
		t.Cleanup(func() { _ = tx.Rollback() }) // the test may be over before
		return tx
	}
	theirs := begin(t, other)
	defer func() { must(t, theirs.Rollback()) }()
	for name, tx := range map[string]*sql.Tx{
		"nil": nil, "over": over, "not one of store": theirs, "not one of  store": from(same, nil),
		"read-only": from(db, &sql.TxOptions{ReadOnly: true}),
	} {
		_, enqueue := s.Tx(tx).Enqueue(t.Context(), nixie.Message{Queue: "q"})
		_, once := s.Tx(tx).Once(t.Context(), "a", "b")
		complete := s.Tx(tx).Complete(t.Context(), &nixie.Delivery{})
		for _, err := range []error{enqueue, once, complete} {
			if nixie.CodeOf(err) != nixie.CodeInvalid {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	tx := begin(t, s)
	if _, err := s.Tx(tx).Enqueue(ended, nixie.Message{Queue: "q"}); nixie.CodeOf(err) != nixie.CodeUnavailable {
		t.Errorf("context over: %v", err)
	}
	must(t, tx.Rollback())
}

// TestB041_TxUndoneBySQLite shows that a transaction that SQLite rolled back because
// a statement was interrupted is not gone on with: what follows would be durable
// alone.
func TestB041_TxUndoneBySQLite(t *testing.T) {
	s := open(t, "", sqlite.Options{Reserve: -1})
	db, err := s.DB()
	must(t, err)
	execute(t, db, "create table app_order (n integer primary key)")
	tx := begin(t, s)
	execute(t, tx, "insert into app_order (n) values (1)")
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, err := tx.ExecContext(ctx,
		"insert into app_order with recursive r(n) as (select 2 union all select n+1 from r) select n from r"); err == nil {
		t.Fatal("an endless statement ended")
	}
	_, row := tx.Exec("insert into app_order (n) values (2)")
	_, enqueue := s.Tx(tx).Enqueue(t.Context(), nixie.Message{Queue: "q"})
	_, once := s.Tx(tx).Once(t.Context(), "a", "b")
	for _, err := range []error{row, enqueue, once, tx.Commit()} {
		if nixie.CodeOf(err) != nixie.CodeUnavailable {
			t.Errorf("got %v", err)
		}
	}
	fill(t, s, "q", 1)
	rows := 0
	must(t, db.QueryRow("select count(*) from app_order").Scan(&rows))
	if rows != 0 || len(messages(t, s)) != 1 {
		t.Errorf("%d rows, %d messages", rows, len(messages(t, s)))
	}
}

// A transaction that had begun when its caller was told that it had not is undone: it would
// keep all others from writing, for good.
func TestTransactionThatBeganTooLate(t *testing.T) {
	for name, opts := range map[string]*sql.TxOptions{"to write": nil, "to read": {ReadOnly: true}} {
		t.Run(name, func(t *testing.T) {
			s := open(t, "", sqlite.Options{Reserve: -1, LockWait: time.Second})
			db, err := s.DB()
			must(t, err)
			held, err := db.Conn(t.Context())
			must(t, err)
			must(t, held.Raw(sqlite.BeginLate))
			if _, err := held.BeginTx(t.Context(), opts); !errors.Is(err, context.Canceled) {
				t.Fatalf("begun: %v", err)
			}
			fill(t, s, "q", 1) // while the connection is held
			var open bool
			must(t, held.Raw(func(c any) error { open = sqlite.InTransaction(c); return nil }))
			if open {
				t.Error("the connection is in a transaction")
			}
			must(t, held.Close())
			tx := begin(t, s)
			execute(t, tx, "create table app_order (n integer primary key)")
			must(t, tx.Commit())
		})
	}
}
