package postgres

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/nixie-go/nixie"
)

// Many messages are written by COPY in its binary form, which costs the server and us
// half of what an insert costs. Its rows are made while they are sent.

// copyLeast is from how many messages on COPY pays: it is a round trip more.
const copyLeast = 50

// copier is an asker that can copy.
type copier interface {
	copyFrom(ctx context.Context, command string, rows io.Reader) error
}

func (p piped) copyFrom(ctx context.Context, command string, rows io.Reader) error {
	conn, ok := p.to.(*pgx.Conn)
	if tx, is := p.to.(pgx.Tx); is {
		conn, ok = tx.Conn(), true
	}
	if !ok {
		return nixie.Errorf(nixie.CodeInternal, "%T cannot copy", p.to)
	}
	_, err := conn.PgConn().CopyFrom(ctx, rows, command)
	return err
}

// messageRows are rows of the table message as COPY wants them.
type messageRows struct {
	list     []*message
	given    []*nixie.Message
	enqueued func(*nixie.Message) int64
	placed   bool // they have their numbers
	at       int  // the next one; −1 is the head, len(list) the end
	buffer   []byte
	rest     []byte // of buffer
}

// columns are in the order in which row writes them.
func (r *messageRows) columns() string {
	if r.placed {
		return "id, queue, type, key, stream, dedupe, priority, body, hash, headers, origin, enqueued, expires, apart, lane, pos"
	}
	return "id, queue, type, key, stream, dedupe, priority, body, hash, headers, origin, enqueued, expires"
}

// Read implements io.Reader.
func (r *messageRows) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		r.buffer = r.buffer[:0]
		switch {
		case r.at > len(r.list):
			return 0, io.EOF
		case r.at == len(r.list):
			r.buffer = binary.BigEndian.AppendUint16(r.buffer, 0xffff)
		case r.at < 0:
			r.buffer = append(r.buffer, "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
		default:
			r.row(r.list[r.at], r.given[r.at])
		}
		r.at++
		r.rest = r.buffer
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *messageRows) row(m *message, given *nixie.Message) {
	columns := uint16(13)
	if r.placed {
		columns = 16
	}
	r.buffer = binary.BigEndian.AppendUint16(r.buffer, columns)
	r.bytes(m.id[:])
	r.number(m.queue, 4)
	r.length(len(given.Type))
	r.buffer = append(r.buffer, given.Type...)
	r.text(given.Key)
	r.text(given.Stream)
	r.text(given.DedupeKey)
	r.number(int64(given.Priority), 2)
	r.bytes(given.Body)
	r.bytes(m.hash[:])
	r.text(toJSON(len(given.Headers) == 0, given.Headers))
	r.text(toJSON(given.Origin == nil, given.Origin))
	r.number(r.enqueued(given), 8)
	r.number(nanos(given.ExpiresAt), 8)
	if r.placed {
		r.flag(m.isApart())
		if m.lane == 0 {
			r.length(-1)
		} else {
			r.number(m.lane, 8)
		}
		r.number(m.pos, 8)
	}
}

func (r *messageRows) length(n int) { r.buffer = binary.BigEndian.AppendUint32(r.buffer, uint32(n)) }

func (r *messageRows) bytes(value []byte) {
	r.length(len(value))
	r.buffer = append(r.buffer, value...)
}

func (r *messageRows) flag(set bool) {
	r.length(1)
	if set {
		r.buffer = append(r.buffer, 1)
	} else {
		r.buffer = append(r.buffer, 0)
	}
}

// text writes a text, null for an empty one.
func (r *messageRows) text(value string) {
	if value == "" {
		r.length(-1)
		return
	}
	r.length(len(value))
	r.buffer = append(r.buffer, value...)
}

// number writes an integer of some bytes.
func (r *messageRows) number(value int64, size int) {
	r.length(size)
	switch size {
	case 2:
		r.buffer = binary.BigEndian.AppendUint16(r.buffer, uint16(value))
	case 4:
		r.buffer = binary.BigEndian.AppendUint32(r.buffer, uint32(value))
	case 8:
		r.buffer = binary.BigEndian.AppendUint64(r.buffer, uint64(value))
	}
}
