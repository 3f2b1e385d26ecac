package rawlimit

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
)

// zombiezen is SQLite in Go: the engine of modernc.org/sqlite below the API of
// zombiezen.com/go/sqlite, which is faster than database/sql.
type zombiezen struct{ conn *sqlite.Conn }

func openZombiezen(path string) (engine, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return nil, err
	}
	return &zombiezen{conn}, nil
}

func (z *zombiezen) prepare(statement string, args []any) (*sqlite.Stmt, error) {
	st, err := z.conn.Prepare(statement)
	if err != nil {
		return nil, err
	}
	for i, arg := range args {
		switch arg := arg.(type) {
		case int64:
			st.BindInt64(i+1, arg)
		case []byte:
			st.BindBytes(i+1, arg)
		default:
			return nil, fmt.Errorf("argument %d is a %T", i+1, arg)
		}
	}
	return st, nil
}

func (z *zombiezen) run(statement string, args ...any) (first int64, err error) {
	st, err := z.prepare(statement, args)
	if err != nil {
		return 0, err
	}
	more, err := st.Step()
	if more {
		first = st.ColumnInt64(0)
	}
	return first, errors.Join(err, st.Reset())
}

func (z *zombiezen) read(to []row, after int64, most int) (_ []row, err error) {
	st, err := z.prepare(next, []any{after, int64(most)})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Reset()) }()
	for {
		more, err := st.Step()
		if !more || err != nil {
			return to, err
		}
		to = append(to, row{pos: st.ColumnInt64(0), id: bytesAt(st, 1), body: bytesAt(st, 4)})
	}
}

func bytesAt(st *sqlite.Stmt, column int) []byte {
	b := make([]byte, st.ColumnLen(column))
	st.ColumnBytes(column, b)
	return b
}

func (z *zombiezen) close() error { return z.conn.Close() }
