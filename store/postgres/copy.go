package postgres

import (
	"context"
	"encoding/binary"
	"io"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
)

// Many messages are written by COPY in its binary form, which costs the server and us
// half of what an insert costs. Its rows are made while they are sent.

// copyLeast is from how many messages on COPY pays: it cannot go together with what is
// before it.
const copyLeast = 50

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

// messageRow is a row of the table message that is about to be written.
type messageRow struct {
	id       nixie.ID
	pos      int64 // 0: the next of the sequence, in all rows of a call
	queue    int64
	enqueued int64 // 0: when it is written
	apart    bool
	lane     int64 // 0: none
	given    *nixie.Message
}

// copying are rows of the table message as COPY wants them.
type copying struct {
	list   []messageRow
	at     int // the next one; −1 is the head, len(list) the end
	buffer []byte
	rest   []byte      // of buffer
	ended  atomic.Bool // the end may have been sent; until then nothing can have been committed
}

// columns are in the order in which row writes them.
func (c *copying) columns() string {
	if c.placed() {
		return "id, queue, type, key, stream, dedupe, priority, body, hash, headers, origin, enqueued, expires, apart, lane, pos"
	}
	return "id, queue, type, key, stream, dedupe, priority, body, hash, headers, origin, enqueued, expires"
}

func (c *copying) placed() bool { return c.list[0].pos > 0 }

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
	columns := uint16(13)
	if c.placed() {
		columns = 16
	}
	c.buffer = binary.BigEndian.AppendUint16(c.buffer, columns)
	given, hash := m.given, nixie.HashBody(m.given.Body)
	c.bytes(m.id[:])
	c.number(m.queue, 4)
	c.length(len(given.Type))
	c.buffer = append(c.buffer, given.Type...)
	c.text(given.Key)
	c.text(given.Stream)
	c.text(given.DedupeKey)
	c.number(int64(given.Priority), 2)
	c.bytes(given.Body)
	c.bytes(hash[:])
	c.text(headersOf(given))
	c.text(originOf(given))
	c.number(m.enqueued, 8)
	c.number(nanos(given.ExpiresAt), 8)
	if c.placed() {
		c.flag(m.apart)
		if m.lane == 0 {
			c.length(-1)
		} else {
			c.number(m.lane, 8)
		}
		c.number(m.pos, 8)
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
	c.length(len(value))
	c.buffer = append(c.buffer, value...)
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
