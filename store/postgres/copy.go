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

// Many messages are written by COPY in its binary form, which costs the server and us
// half of what an insert costs. Its rows are made while they are sent.

// copyLeast is from how many messages on COPY pays: it cannot go together with what is
// before it.
const copyLeast = 50

// copies reports whether so many messages are written by COPY.
func (t *tx) copies(n int) bool {
	_, pipes := t.on.(piped)
	return pipes && n >= copyLeast
}

// halfError is one of a COPY that ended before all was sent, so that nothing of its
// transaction happened.
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

// copying are rows of the table message as COPY wants them.
type copying struct {
	list   []messageRow
	fields []field
	at     int // the next one; −1 is the head, len(list) the end
	buffer []byte
	rest   []byte      // of buffer
	ended  atomic.Bool // the end may have been sent; until then nothing can have been committed
}

// field is a column of the table message. One that says nothing in any row is left out:
// its default is what it would say.
type field struct {
	name string
	says func(*messageRow) bool // nil: always
	put  func(*copying, *messageRow)
}

var fields = [...]field{
	{"id", nil, func(c *copying, m *messageRow) { c.bytes(m.id[:]) }},
	{"queue", nil, func(c *copying, m *messageRow) { c.number(m.queue, 4) }},
	{"type", nil, func(c *copying, m *messageRow) { c.some(m.given.Type) }},
	{"body", nil, func(c *copying, m *messageRow) { c.bytes(m.given.Body) }},
	{"hash", nil, func(c *copying, m *messageRow) { hash := nixie.HashBody(m.given.Body); c.bytes(hash[:]) }},
	{"enqueued", nil, func(c *copying, m *messageRow) { c.number(m.enqueued, 8) }},
	{"pos", func(m *messageRow) bool { return m.pos > 0 }, func(c *copying, m *messageRow) { c.number(m.pos, 8) }},
	{"numbered", func(m *messageRow) bool { return m.numbered }, func(c *copying, m *messageRow) { c.flag(m.numbered) }},
	{"apart", func(m *messageRow) bool { return m.apart }, func(c *copying, m *messageRow) { c.flag(m.apart) }},
	{"lane", func(m *messageRow) bool { return m.lane != 0 }, func(c *copying, m *messageRow) { c.reference(m.lane) }},
	{"key", func(m *messageRow) bool { return m.given.Key != "" }, func(c *copying, m *messageRow) { c.text(m.given.Key) }},
	{"stream", func(m *messageRow) bool { return m.given.Stream != "" }, func(c *copying, m *messageRow) { c.text(m.given.Stream) }},
	{"dedupe", func(m *messageRow) bool { return m.given.DedupeKey != "" }, func(c *copying, m *messageRow) { c.text(m.given.DedupeKey) }},
	{"priority", func(m *messageRow) bool { return m.given.Priority != 0 }, func(c *copying, m *messageRow) { c.number(int64(m.given.Priority), 2) }},
	{"headers", func(m *messageRow) bool { return len(m.given.Headers) > 0 }, func(c *copying, m *messageRow) { c.text(headersOf(m.given)) }},
	{"origin", func(m *messageRow) bool { return m.given.Origin != nil }, func(c *copying, m *messageRow) { c.text(originOf(m.given)) }},
	{"expires", func(m *messageRow) bool { return !m.given.ExpiresAt.IsZero() }, func(c *copying, m *messageRow) { c.number(nanos(m.given.ExpiresAt), 8) }},
}

func newCopying(list []messageRow) *copying {
	c := &copying{list: list, at: -1}
	for _, f := range fields {
		if f.says == nil || f.saidIn(list) {
			c.fields = append(c.fields, f)
		}
	}
	return c
}

func (f *field) saidIn(list []messageRow) bool {
	for i := range list { // by the index: a row that is given away would be allocated
		if f.says(&list[i]) {
			return true
		}
	}
	return false
}

func (c *copying) columns() string {
	return strings.Join(eachOf(c.fields, func(f field) string { return f.name }), ", ")
}

// Read implements io.Reader. It fills p, as each Read is a message to the server.
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

// next makes the next row, if there is one.
func (c *copying) next() bool {
	c.buffer = c.buffer[:0]
	switch {
	case c.at > len(c.list):
		return false
	case c.at == len(c.list):
		c.ended.Store(true)
		c.buffer = binary.BigEndian.AppendUint16(c.buffer, 0xffff)
	case c.at < 0:
		c.buffer = append(c.buffer, "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
	default:
		c.row(&c.list[c.at])
	}
	c.at++
	c.rest = c.buffer
	return true
}

func (c *copying) row(m *messageRow) {
	c.buffer = binary.BigEndian.AppendUint16(c.buffer, uint16(len(c.fields)))
	for i := range c.fields {
		c.fields[i].put(c, m)
	}
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

// text writes a text, null for an empty one.
func (c *copying) text(value string) {
	if value == "" {
		c.length(-1)
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
		c.length(-1)
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
