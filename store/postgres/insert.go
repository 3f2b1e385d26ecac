package postgres

import (
	"github.com/nixie-go/nixie"
	"github.com/nixie-go/nixie/store"
	"github.com/nixie-go/nixie/store/lifecycle"
)

// messageRow is a row of the table message that is about to be written.
type messageRow struct {
	id            nixie.ID
	pos           int64 // 0: the next of the sequence; then in all rows of a call
	queue         int64
	enqueued      int64 // 0: when it is written
	byRange       bool  // claims by range take it
	numbered      bool  // its ID says its position
	orderedStream int64 // 0: none
	hash          nixie.Hash
	given         *nixie.Message
}

// insertMessages writes the rows that messages have for good.
func (t *tx) insertMessages(rows []messageRow) {
	switch {
	case len(rows) == 0:
	case t.copies(len(rows), copyLeast):
		t.copyTo("message", copyMessages(rows))
	case rows[0].pos == 0:
		t.run("insert_plain.sql", plainArgs(rows)...)
	default:
		t.run("insert_messages.sql", append(plainArgs(rows),
			eachOf(rows, func(m messageRow) int64 { return m.pos }), eachOf(rows, func(m messageRow) bool { return m.byRange }),
			eachOf(rows, func(m messageRow) int64 { return m.orderedStream }), eachOf(rows, func(m messageRow) bool { return m.numbered }),
			eachOf(rows, func(m messageRow) string { return m.given.DedupeKey }),
			eachOf(rows, func(m messageRow) int64 { return int64(m.given.Priority) }))...)
	}
}

// plainArgs returns the arguments of insert_plain.
func plainArgs(rows []messageRow) []any {
	text := func(of func(*nixie.Message) string) []string {
		return eachOf(rows, func(m messageRow) string { return of(m.given) })
	}
	return []any{
		eachOf(rows, func(m messageRow) [16]byte { return m.id }), eachOf(rows, func(m messageRow) int64 { return m.queue }),
		text(func(m *nixie.Message) string { return m.Type }), text(func(m *nixie.Message) string { return m.Key }),
		text(func(m *nixie.Message) string { return m.Stream }),
		eachOf(rows, func(m messageRow) []byte { return notNull(m.given.Body) }),
		eachOf(rows, func(m messageRow) []byte { hash := m.hash; return hash[:] }),
		text(headersOf), text(originOf),
		eachOf(rows, func(m messageRow) int64 { return m.enqueued }),
		eachOf(rows, func(m messageRow) int64 { return lifecycle.Nanos(m.given.ExpiresAt) }),
	}
}

func headersOf(m *nixie.Message) string {
	if len(m.Headers) == 0 { // spares an allocation
		return ""
	}
	return toJSON(false, m.Headers)
}

func originOf(m *nixie.Message) string { return store.OriginText(m.Origin) }

// field is a column of the table message. It is left out of a COPY in which all rows have its
// default.
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
	{"hash", nil, func(c *copying, m *messageRow) { c.bytes(m.hash[:]) }},
	{"enqueued", nil, func(c *copying, m *messageRow) { c.number(m.enqueued, 8) }},
	{"pos", nil, func(c *copying, m *messageRow) { c.number(m.pos, 8) }},
	{"numbered", func(m *messageRow) bool { return m.numbered }, func(c *copying, m *messageRow) { c.flag(m.numbered) }},
	{"by_range", func(m *messageRow) bool { return !m.byRange }, func(c *copying, m *messageRow) { c.flag(m.byRange) }},
	{"ordered_stream", func(m *messageRow) bool { return m.orderedStream != 0 },
		func(c *copying, m *messageRow) { c.reference(m.orderedStream) }},
	{"key", func(m *messageRow) bool { return m.given.Key != "" }, func(c *copying, m *messageRow) { c.text(m.given.Key) }},
	{"stream", func(m *messageRow) bool { return m.given.Stream != "" }, func(c *copying, m *messageRow) { c.text(m.given.Stream) }},
	{"dedupe", func(m *messageRow) bool { return m.given.DedupeKey != "" }, func(c *copying, m *messageRow) { c.text(m.given.DedupeKey) }},
	{"priority", func(m *messageRow) bool { return m.given.Priority != 0 },
		func(c *copying, m *messageRow) { c.number(int64(m.given.Priority), 2) }},
	{"headers", func(m *messageRow) bool { return len(m.given.Headers) > 0 },
		func(c *copying, m *messageRow) { c.text(headersOf(m.given)) }},
	{"origin", func(m *messageRow) bool { return m.given.Origin != nil }, func(c *copying, m *messageRow) { c.text(originOf(m.given)) }},
	{"expires", func(m *messageRow) bool { return !m.given.ExpiresAt.IsZero() },
		func(c *copying, m *messageRow) { c.number(lifecycle.Nanos(m.given.ExpiresAt), 8) }},
}

func copyMessages(list []messageRow) *copying {
	var said []field
	for _, f := range fields {
		if f.says == nil || f.saidIn(list) {
			said = append(said, f)
		}
	}
	return &copying{columns: eachOf(said, func(f field) string { return f.name }), rows: len(list), row: func(c *copying, at int) {
		for i := range said {
			said[i].put(c, &list[at])
		}
	}}
}

func (f *field) saidIn(list []messageRow) bool {
	for i := range list { // by index: a pointer to a copy of the row would allocate it
		if f.says(&list[i]) {
			return true
		}
	}
	return false
}
