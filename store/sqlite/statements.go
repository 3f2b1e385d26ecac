package sqlite

// statements is what the transactions of this package run on: a connection of
// our own, or a transaction of the caller.
type statements interface {
	run(query string, args ...any) error
	each(query string, f func(row rows) error, args ...any) error
	prepare(query string) (stmt, error)
	Changes() int           // rows changed by the last write
	LastInsertRowID() int64 // number of the row added last
}

// rows is a statement that stands on a row. What is null reads as the zero
// value.
type rows interface {
	ColumnInt64(col int) int64
	ColumnInt(col int) int
	ColumnBool(col int) bool
	ColumnText(col int) string
	ColumnBytes(col int, buf []byte) int
	ColumnLen(col int) int
}

// stmt is a statement that waits for its arguments, counted from 1.
type stmt interface {
	BindNull(param int)
	BindInt64(param int, value int64)
	BindBool(param int, value bool)
	BindText(param int, value string)
	BindBytes(param int, value []byte)
	Step() (row bool, err error)
}

// queries is what is asked on either in the same way.
//
// SQLite plans a query anew, which takes ten times as long as the query, at each
// binding of a value that its plan could depend on: a bound of a range, a limit,
// what is compared with = where there is an order by. So queries with one good plan
// compare with +?, which it leaves alone, and end with limited.
type queries struct{ statements }

const limited = " limit ? + 0"

// change executes a write and returns how many rows it changed.
func (on queries) change(query string, args ...any) (int, error) {
	if err := on.run(query, args...); err != nil {
		return 0, err
	}
	return on.Changes(), nil
}

// number returns the first column of the first row, 0 when there is none.
func (on queries) number(query string, args ...any) (int64, error) {
	var n int64
	err := on.each(query, func(row rows) error {
		n = row.ColumnInt64(0)
		return nil
	}, args...)
	return n, err
}
