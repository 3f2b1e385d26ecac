package sqlite

import (
	"strings"
	"sync"
)

// target is a table to which a transaction adds many rows by one statement: a statement for each
// row costs several times as much.
type target int

const (
	toMessage target = iota
	toLog
	toLogWhole
	toLogAgain // over the row of an earlier end
	toFailure
	toPending
	toPendingWhole
	toLetter
	toAudit
	toDedupe
	targets
)

// rowsAtOnce lists how many rows one statement adds.
var rowsAtOnce = [...]int{32, 8, 1}

// addition has the number of columns of a target, and a statement for each number in rowsAtOnce.
type addition struct {
	columns    int
	statements [len(rowsAtOnce)]string
}

var additions = sync.OnceValue(func() *[targets]addition {
	return &[targets]addition{
		toMessage:      adding("add_message"),
		toLog:          adding("add_log"),
		toLogWhole:     adding("write_log"),
		toLogAgain:     adding("write_log", "insert into", "insert or replace into"),
		toFailure:      adding("add_failure"),
		toPending:      adding("add_simple_pending"),
		toPendingWhole: adding("add_pending"),
		toLetter:       adding("add_letter"),
		toAudit:        adding("add_audit"),
		toDedupe:       adding("add_key"),
	}
})

// adding makes the statements of a target from the one that adds one row, with some words replaced.
func adding(name string, instead ...string) addition {
	head, row, _ := strings.Cut(strings.NewReplacer(instead...).Replace(sqlText(name)), " values ")
	a := addition{columns: strings.Count(row, "?")}
	one := "(?" + strings.Repeat(", ?", a.columns-1) + ")"
	for i, n := range rowsAtOnce {
		a.statements[i] = head + " values " + one + strings.Repeat(", "+one, n-1)
	}
	return a
}

// inserts collects the rows that a transaction adds. It implements statements for its transaction:
// every query writes the collected rows first, so no query can miss them.
type inserts struct {
	statements
	waiting [targets]newRows
	any     bool
	given   []byte // copies of bytes in cells
}

// maxGiven limits the bytes that wait to be written.
const maxGiven = 256 << 10

// newRows holds rows for one target, cell after cell.
type newRows struct {
	of    *inserts
	to    target
	cells []cell
}

// cell holds the value of one column; the zero cell is null.
type cell struct {
	is   cellType
	n    int64
	text string
	data []byte
}

type cellType uint8

const (
	cellNull cellType = iota
	cellNumber
	cellText
	cellBytes
)

// reset discards the rows that wait and takes the statements of a new transaction.
func (in *inserts) reset(on statements) {
	in.statements = on
	in.forget()
	for to := range in.waiting {
		rows := &in.waiting[to]
		rows.of, rows.to = in, target(to)
		clear(rows.cells) // frees the memory of written rows
		rows.cells = rows.cells[:0]
	}
}

// add begins a row. The caller adds its columns in order and calls end.
func (in *inserts) add(to target) *newRows {
	in.any = true
	return &in.waiting[to]
}

func (r *newRows) num(n int64) *newRows {
	r.cells = append(r.cells, cell{is: cellNumber, n: n})
	return r
}

func (r *newRows) flag(b bool) *newRows {
	if b {
		return r.num(1)
	}
	return r.num(0)
}

func (r *newRows) str(s string) *newRows {
	r.cells = append(r.cells, cell{is: cellText, text: s})
	return r
}

// bytes adds a copy: a caller that has left may change its bytes.
func (r *newRows) bytes(b []byte) *newRows {
	at := len(r.of.given)
	r.of.given = append(r.of.given, b...)
	r.cells = append(r.cells, cell{is: cellBytes, data: r.of.given[at:]})
	return r
}

func (r *newRows) null() *newRows {
	r.cells = append(r.cells, cell{})
	return r
}

// strOrNull adds null for the empty string.
func (r *newRows) strOrNull(s string) *newRows {
	if s == "" {
		return r.null()
	}
	return r.str(s)
}

// numOrNull adds null for 0.
func (r *newRows) numOrNull(n int64) *newRows {
	if n == 0 {
		return r.null()
	}
	return r.num(n)
}

// end ends a row, and writes the rows once they fill a statement.
func (in *inserts) end(rows *newRows) error {
	switch {
	case len(in.given) > maxGiven:
		return in.flush()
	case len(rows.cells) < rowsAtOnce[0]*additions()[rows.to].columns:
		return nil
	}
	return in.write(rows)
}

// flush writes all rows that wait.
func (in *inserts) flush() error {
	if !in.any {
		return nil
	}
	defer in.forget()
	for to := range in.waiting {
		if err := in.write(&in.waiting[to]); err != nil {
			return err
		}
	}
	return nil
}

// forget is called when no row waits. It gives back the memory of a few large bodies.
func (in *inserts) forget() {
	in.any = false
	if in.given = in.given[:0]; cap(in.given) > 4*maxGiven {
		in.given = nil
	}
}

func (in *inserts) write(rows *newRows) error {
	to := &additions()[rows.to]
	cells := rows.cells
	for i, n := range rowsAtOnce {
		for n *= to.columns; len(cells) >= n; cells = cells[n:] {
			if err := in.insert(to.statements[i], cells[:n]); err != nil {
				return err
			}
		}
	}
	clear(rows.cells)
	rows.cells = rows.cells[:0]
	return nil
}

func (in *inserts) insert(statement string, cells []cell) error {
	st, err := in.statements.prepare(statement)
	if err != nil {
		return err
	}
	for i := range cells {
		switch c := &cells[i]; c.is {
		case cellNull:
			st.BindNull(i + 1)
		case cellNumber:
			st.BindInt64(i+1, c.n)
		case cellText:
			st.BindText(i+1, c.text)
		case cellBytes:
			st.BindBytes(i+1, c.data)
		}
	}
	_, err = st.Step()
	return err
}

// run implements statements.
func (in *inserts) run(query string, args ...any) error {
	if err := in.flush(); err != nil {
		return err
	}
	return in.statements.run(query, args...)
}

// each implements statements.
func (in *inserts) each(query string, f func(row rows) error, args ...any) error {
	if err := in.flush(); err != nil {
		return err
	}
	return in.statements.each(query, f, args...)
}

// prepare implements statements.
func (in *inserts) prepare(query string) (stmt, error) {
	if err := in.flush(); err != nil {
		return nil, err
	}
	return in.statements.prepare(query)
}
