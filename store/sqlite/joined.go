package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
)

// joined runs statements inside a transaction of the caller. It prepares each statement once in a
// call.
type joined struct {
	ctx      context.Context
	tx       *sql.Tx
	prepared map[string]*sql.Stmt
	result   sql.Result // of the last write
}

// prepare implements statements.
func (j *joined) prepare(query string) (stmt, error) { return j.bound(query, nil) }

func (j *joined) bound(query string, args []any) (*joinedStmt, error) {
	st := j.prepared[query]
	if st == nil {
		var err error
		if st, err = j.tx.PrepareContext(j.ctx, query); err != nil {
			return nil, err
		}
		if j.prepared == nil {
			j.prepared = map[string]*sql.Stmt{}
		}
		j.prepared[query] = st
	}
	b := &joinedStmt{on: j, st: st}
	for i, a := range args {
		bind(b, i+1, a)
	}
	return b, nil
}

func (j *joined) close() error {
	var err error
	for _, st := range j.prepared {
		err = errors.Join(err, st.Close())
	}
	return err
}

func (j *joined) run(query string, args ...any) error {
	b, err := j.bound(query, args)
	if err != nil {
		return err
	}
	_, err = b.Step()
	return err
}

func (j *joined) each(query string, f func(row rows) error, args ...any) (err error) {
	b, err := j.bound(query, args)
	if err != nil {
		return err
	}
	rs, err := b.st.QueryContext(j.ctx, b.args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rs.Close()) }()
	columns, err := rs.Columns()
	if err != nil {
		return err
	}
	row := make(joinedRow, len(columns))
	into := make([]any, len(columns))
	for i := range row {
		into[i] = &row[i]
	}
	for rs.Next() {
		if err := rs.Scan(into...); err != nil {
			return err
		}
		if err := f(row); err != nil {
			return err
		}
	}
	return rs.Err()
}

// Changes implements statements.
func (j *joined) Changes() int { return int(j.count(sql.Result.RowsAffected)) }

// LastInsertRowID implements statements.
func (j *joined) LastInsertRowID() int64 { return j.count(sql.Result.LastInsertId) }

func (j *joined) count(of func(sql.Result) (int64, error)) int64 {
	if j.result == nil {
		return 0
	}
	n, err := of(j.result)
	if err != nil {
		panic("sqlite: the driver does not count: " + err.Error()) // the driver of the store always does
	}
	return n
}

// joinedStmt is a statement that collects its arguments.
type joinedStmt struct {
	on   *joined
	st   *sql.Stmt
	args []any
}

func (b *joinedStmt) set(param int, value any) {
	for len(b.args) < param {
		b.args = append(b.args, nil)
	}
	b.args[param-1] = value
}

// The Bind methods implement stmt. Bytes are never null.
func (b *joinedStmt) BindNull(param int)               { b.set(param, nil) }
func (b *joinedStmt) BindInt64(param int, value int64) { b.set(param, value) }
func (b *joinedStmt) BindBool(param int, value bool)   { b.set(param, value) }
func (b *joinedStmt) BindText(param int, value string) { b.set(param, value) }
func (b *joinedStmt) BindBytes(param int, value []byte) {
	if value == nil {
		value = []byte{}
	}
	b.set(param, value)
}

// Step runs a statement that returns no rows of interest.
func (b *joinedStmt) Step() (bool, error) {
	result, err := b.st.ExecContext(b.on.ctx, b.args...)
	b.on.result = result
	return false, err
}

// joinedRow is a row as package sql scanned it: null, int64, string or bytes.
type joinedRow []any

// ColumnInt64 implements rows.
func (r joinedRow) ColumnInt64(col int) int64 {
	switch v := r[col].(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return 0 // as SQLite reads a text that is no number
		}
		return n
	}
	return 0
}

// ColumnInt implements rows.
func (r joinedRow) ColumnInt(col int) int { return int(r.ColumnInt64(col)) }

// ColumnBool implements rows.
func (r joinedRow) ColumnBool(col int) bool { return r.ColumnInt64(col) != 0 }

// ColumnText implements rows.
func (r joinedRow) ColumnText(col int) string {
	switch v := r[col].(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case int64:
		return strconv.FormatInt(v, 10)
	}
	return ""
}

// ColumnBytes implements rows.
func (r joinedRow) ColumnBytes(col int, buf []byte) int { return copy(buf, r.ColumnText(col)) }

// ColumnLen implements rows.
func (r joinedRow) ColumnLen(col int) int { return len(r.ColumnText(col)) }
