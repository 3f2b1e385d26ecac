package sqlite

// statements runs SQL for the transactions of this package: on a connection of the store, or inside
// a transaction of the caller.
type statements interface {
	run(query string, args ...any) error
	each(query string, f func(row rows) error, args ...any) error
	prepare(query string) (stmt, error)
	Changes() int           // rows changed by the last write
	LastInsertRowID() int64 // number of the row added last
}

// rows reads the current row of a statement. Null reads as the zero value.
type rows interface {
	ColumnInt64(col int) int64
	ColumnInt(col int) int
	ColumnBool(col int) bool
	ColumnText(col int) string
	ColumnBytes(col int, buf []byte) int
	ColumnLen(col int) int
}

// stmt is a prepared statement. Its arguments count from 1.
type stmt interface {
	BindNull(param int)
	BindInt64(param int, value int64)
	BindBool(param int, value bool)
	BindText(param int, value string)
	BindBytes(param int, value []byte)
	Step() (row bool, err error)
}

// queries adds helpers to either kind of statements.
//
// SQLite plans a query anew when a bound value could change the plan. Such values are bounds of
// ranges, limits, and values compared by = in a query with an order. Planning takes ten times as
// long as the query. So a query that has one good plan compares with +?, which the planner ignores,
// and ends with limited.
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
