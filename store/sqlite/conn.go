package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// conn is one SQLite connection with the few helpers that our statements need.
// It belongs to one goroutine at a time.
type conn struct{ *sqlite.Conn }

// settings returns the pragmas of every connection. FULL makes each commit durable against power
// loss before it is acknowledged. A checkpoint runs when the WAL has 4000 pages, which spreads its
// cost; afterwards a file that a long reader made large is cut. Seven connections share memory, so
// the caches are small.
func settings() []string {
	return []string{
		"pragma journal_mode = wal",
		"pragma synchronous = full",
		"pragma wal_autocheckpoint = 4000",
		"pragma cache_size = -16384",
		"pragma journal_size_limit = 67108864",
		"pragma temp_store = memory",
		"pragma foreign_keys = off",
		"pragma trusted_schema = off",
	}
}

// fileURI returns the URI of the file. Its path may have any characters.
func fileURI(path string, options url.Values, vfs string) string {
	if vfs != "" {
		options.Set("vfs", vfs)
	}
	uri := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: options.Encode()}
	return uri.String()
}

// openConn opens the file in WAL mode. The connection waits for locks of other connections for
// wait.
func openConn(path, vfs string, create bool, wait time.Duration) (conn, error) {
	return openLooking(path, vfs, create, wait, func(conn) error { return nil })
}

// openLooking is openConn that looks at the file before it changes anything: WAL mode is written to
// the file.
func openLooking(path, vfs string, create bool, wait time.Duration, look func(conn) error) (conn, error) {
	flags := sqlite.OpenReadWrite | sqlite.OpenURI
	if create {
		flags |= sqlite.OpenCreate
	}
	raw, err := sqlite.OpenConn(fileURI(path, url.Values{}, vfs), flags)
	if err != nil {
		return conn{}, explain(path, err)
	}
	c := conn{raw}
	c.SetBusyTimeout(wait)
	err = c.CreateFunction("contains",
		&sqlite.FunctionImpl{NArgs: 2, Deterministic: true, AllowIndirect: false, Scalar: containsFold})
	if err == nil {
		err = patiently(wait, func() error { return look(c) })
	}
	for _, p := range settings() {
		if err == nil {
			err = patiently(wait, func() error { return c.run(p) })
		}
	}
	if err != nil {
		return conn{}, errors.Join(explain(path, err), c.Close())
	}
	return c, nil
}

// containsFold implements contains(text, part) in SQL. part is in lower case. SQLite's lower()
// knows only ASCII, but filters know all of Unicode.
func containsFold(_ sqlite.Context, args []sqlite.Value) (sqlite.Value, error) {
	found := int64(0)
	if strings.Contains(strings.ToLower(args[0].Text()), args[1].Text()) {
		found = 1
	}
	return sqlite.IntegerValue(found), nil
}

// patiently calls f again for wait while another process locks the file. SQLite refuses one of two
// processes that switch a new file to WAL at the same moment. It does so without its busy timeout,
// because both hold the read lock that the other needs.
func patiently(wait time.Duration, f func() error) error {
	patience, stop := context.WithTimeout(context.Background(), wait)
	defer stop()
	again := time.NewTicker(gatePause)
	defer again.Stop()
	for {
		err := f()
		if sqlite.ErrCode(err).ToPrimary() != sqlite.ResultBusy || patience.Err() != nil {
			return err
		}
		<-again.C
	}
}

// prep returns the cached statement, reset, with its arguments bound.
func (c conn) prep(query string, args ...any) (*sqlite.Stmt, error) {
	st, err := c.Prepare(query)
	if err != nil {
		return nil, err
	}
	for i, a := range args {
		bind(st, i+1, a)
	}
	return st, nil
}

// prepare returns the cached statement, reset. The caller binds the arguments one by one, which
// allocates no memory.
func (c conn) prepare(query string) (stmt, error) { return c.Prepare(query) }

func bind(st stmt, i int, arg any) {
	switch a := arg.(type) {
	case nil:
		st.BindNull(i)
	case int64:
		st.BindInt64(i, a)
	case int:
		st.BindInt64(i, int64(a))
	case bool:
		st.BindBool(i, a)
	case string:
		st.BindText(i, a)
	case []byte:
		st.BindBytes(i, a)
	case nixie.ID:
		st.BindBytes(i, a[:])
	case nixie.Hash:
		st.BindBytes(i, a[:])
	case time.Time:
		st.BindInt64(i, lifecycle.Nanos(a))
	default:
		panic(fmt.Sprintf("sqlite: no binding for %T", arg))
	}
}

// run executes a statement that returns no rows of interest.
func (c conn) run(query string, args ...any) error {
	st, err := c.prep(query, args...)
	if err != nil {
		return err
	}
	for {
		more, err := st.Step()
		if err != nil || !more {
			return errors.Join(err, st.Reset())
		}
	}
}

// each calls f for every row.
func (c conn) each(query string, f func(row rows) error, args ...any) error {
	st, err := c.prep(query, args...)
	if err != nil {
		return err
	}
	for {
		more, err := st.Step()
		if err == nil && more {
			err = f(st)
		}
		if err != nil || !more {
			return errors.Join(err, st.Reset())
		}
	}
}

// number returns the first column of the first row, 0 when there is none.
func (c conn) number(query string, args ...any) (int64, error) {
	return queries{c}.number(query, args...)
}

// read runs f on a connection of the readers' pool in one snapshot, interrupted
// when ctx ends.
func (s *Store) read(ctx context.Context, f func(c conn) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.gate.leave()
	return s.view(ctx, s.readers, f)
}

func stopped(ctx context.Context) error {
	return nixie.Errorf(nixie.CodeUnavailable, "stopped before anything was done: %w", context.Cause(ctx))
}

// text returns null for the empty string.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// jsonText returns v as JSON, or null if it is empty.
func jsonText[T any](empty bool, v T) any {
	if empty {
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("sqlite: encode %T: %v", v, err)) // our own plain structs always encode
	}
	return string(data)
}

func fromJSON(text string, into any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return nixie.Errorf(nixie.CodeInternal, "stored JSON %.60q is damaged: %w", text, err)
	}
	return nil
}

func columnID(row rows, col int) nixie.ID {
	var id nixie.ID
	row.ColumnBytes(col, id[:])
	return id
}

func columnBytes(row rows, col int) []byte {
	b := make([]byte, row.ColumnLen(col))
	row.ColumnBytes(col, b)
	return b
}

func orNull(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}
