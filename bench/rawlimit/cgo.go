//go:build cgo

package rawlimit

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"io"

	"github.com/mattn/go-sqlite3"
)

func drivers() []driver {
	return []driver{
		{"zombiezen", "zombiezen.com/go/sqlite (modernc.org/sqlite)", openZombiezen},
		{"mattn", "mattn/go-sqlite3 (cgo)", openMattn},
	}
}

// mattn is SQLite in C, below database/sql.
type mattn struct {
	conn       sqldriver.Conn
	statements map[string]sqldriver.Stmt
}

func openMattn(path string) (engine, error) {
	conn, err := (&sqlite3.SQLiteDriver{}).Open("file:" + path)
	if err != nil {
		return nil, err
	}
	return &mattn{conn, map[string]sqldriver.Stmt{}}, nil
}

func (m *mattn) query(statement string, args []any) (sqldriver.Rows, error) {
	st := m.statements[statement]
	if st == nil {
		var err error
		if st, err = m.conn.Prepare(statement); err != nil {
			return nil, err
		}
		m.statements[statement] = st
	}
	values := make([]sqldriver.NamedValue, len(args))
	for i, arg := range args {
		values[i] = sqldriver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	return st.(sqldriver.StmtQueryContext).QueryContext(context.Background(), values)
}

func (m *mattn) run(statement string, args ...any) (first int64, err error) {
	rows, err := m.query(statement, args)
	if err != nil {
		return 0, err
	}
	values := make([]sqldriver.Value, len(rows.Columns()))
	err = rows.Next(values)
	if err == nil && len(values) > 0 {
		first, _ = values[0].(int64)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return first, errors.Join(err, rows.Close())
}

func (m *mattn) read(to []row, after int64, most int) (_ []row, err error) {
	rows, err := m.query(next, []any{after, int64(most)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	values := make([]sqldriver.Value, len(rows.Columns()))
	for {
		err := rows.Next(values)
		if errors.Is(err, io.EOF) {
			return to, nil
		}
		if err != nil {
			return nil, err
		}
		r := row{}
		r.pos, _ = values[0].(int64)
		r.id, _ = values[1].([]byte)
		r.body, _ = values[4].([]byte)
		to = append(to, r)
	}
}

func (m *mattn) close() error {
	var errs []error
	for _, st := range m.statements {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, m.conn.Close())...)
}
