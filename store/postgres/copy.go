package postgres

import (
	"context"
	"encoding/binary"
	"io"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
)

// COPY in its binary form writes many rows for half of what an insert costs the server and the
// client. Rows are encoded while they are sent.

// COPY pays from these numbers of rows on, because it cannot go together with the statements before
// it: messages are the first that their transaction writes, others come after other rows.
const (
	copyLeast  = 50
	copyOthers = 500
)

// copies reports whether n rows are written by COPY, from least on.
func (t *tx) copies(n, least int) bool {
	_, pipes := t.on.(piped)
	return pipes && n >= least
}

// halfError is an error of a COPY that ended before all was sent: nothing of its transaction
// happened.
type halfError struct{ error }

func (e *halfError) Unwrap() error { return e.error }

// copy sends the first of the statements, a COPY, together with a commit that follows,
// and returns those that are left.
func (p piped) copy(ctx context.Context, list []stmt) ([]stmt, error) {
	conn, ok := p.to.(*pgx.Conn)
	if tx, is := p.to.(pgx.Tx); is {
		conn, ok = tx.Conn(), true
	}
	if !ok {
		return nil, nixie.Errorf(nixie.CodeInternal, "%T cannot copy", p.to)
	}
	rows, command, last := list[0].rows, list[0].query, 1
	if len(list) > 1 && list[1].query == commit {
		command, last = command+"; "+commit, 2
	}
	tag, err := conn.PgConn().CopyFrom(ctx, rows, command)
	switch {
	case err != nil && !rows.ended.Load():
		return nil, &halfError{err}
	case err != nil:
		return nil, err
	case list[last-1].done != nil:
		err = list[last-1].done(tag.String())
	}
	return list[last:], err
}

// copying is a stream of rows as COPY wants them.
type copying struct {
	columns []string
	rows    int
	row     func(c *copying, i int) // adds the values of a row
	at      int                     // the next one; −1 is the head, rows the end
	buffer  []byte
	rest    []byte      // of buffer
	ended   atomic.Bool // the end may have been sent; until then nothing can have been committed
}

// copyTo adds the statement that copies rows to a table.
func (t *tx) copyTo(table string, c *copying) {
	c.at = -1
	query := "copy @." + table + " (" + strings.Join(c.columns, ", ") + ") from stdin (format binary)"
	t.list = append(t.list, stmt{query: t.store.named(query), rows: c})
}

// Read implements io.Reader. It fills p, because each Read is a message to the server.
func (c *copying) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if len(c.rest) == 0 && !c.next() {
			break
		}
		k := copy(p[n:], c.rest)
		c.rest, n = c.rest[k:], n+k
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// next encodes the next row, if there is one.
func (c *copying) next() bool {
	c.buffer = c.buffer[:0]
	switch {
	case c.at > c.rows:
		return false
	case c.at == c.rows:
		c.ended.Store(true)
		c.buffer = binary.BigEndian.AppendUint16(c.buffer, 0xffff)
	case c.at < 0:
		c.buffer = append(c.buffer, "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
	default:
		c.buffer = binary.BigEndian.AppendUint16(c.buffer, uint16(len(c.columns)))
		c.row(c, c.at)
	}
	c.at++
	c.rest = c.buffer
	return true
}

func (c *copying) length(n int) { c.buffer = binary.BigEndian.AppendUint32(c.buffer, uint32(n)) }

func (c *copying) bytes(value []byte) {
	c.length(len(value))
	c.buffer = append(c.buffer, value...)
}

func (c *copying) flag(set bool) {
	c.length(1)
	if set {
		c.buffer = append(c.buffer, 1)
	} else {
		c.buffer = append(c.buffer, 0)
	}
}

// null writes that there is no value.
func (c *copying) null() { c.length(-1) }

// text writes a text, null for an empty one.
func (c *copying) text(value string) {
	if value == "" {
		c.null()
		return
	}
	c.some(value)
}

// some writes a text, also an empty one.
func (c *copying) some(value string) {
	c.length(len(value))
	c.buffer = append(c.buffer, value...)
}

// reference writes a number, null for 0.
func (c *copying) reference(value int64) {
	if value == 0 {
		c.null()
		return
	}
	c.number(value, 8)
}

// number writes an integer of some bytes.
func (c *copying) number(value int64, size int) {
	c.length(size)
	switch size {
	case 2:
		c.buffer = binary.BigEndian.AppendUint16(c.buffer, uint16(value))
	case 4:
		c.buffer = binary.BigEndian.AppendUint32(c.buffer, uint32(value))
	case 8:
		c.buffer = binary.BigEndian.AppendUint64(c.buffer, uint64(value))
	}
}
