package postgres

import "github.com/nixie-go/nixie"

// messageRow is a row of the table message that is about to be written.
type messageRow struct {
	id       nixie.ID
	pos      int64 // 0: the next of the sequence, in all rows of a call
	queue    int64
	enqueued int64 // 0: when it is written
	apart    bool
	numbered bool  // its ID says its place
	lane     int64 // 0: none
	given    *nixie.Message
}

// insertMessages writes the rows that messages have for good.
func (t *tx) insertMessages(rows []messageRow) {
	switch {
	case len(rows) == 0:
	case t.copies(len(rows)):
		all := newCopying(rows)
		t.list = append(t.list, stmt{query: t.store.named("copy @.message (" + all.columns() + ") from stdin (format binary)"), rows: all})
	case rows[0].pos == 0:
		t.run(plainInsertion, plainArgs(rows)...)
	default:
		t.run(insertion, append(plainArgs(rows), eachOf(rows, func(m messageRow) int64 { return m.pos }), eachOf(rows, func(m messageRow) bool { return m.apart }), eachOf(rows, func(m messageRow) int64 { return m.lane }),
			eachOf(rows, func(m messageRow) bool { return m.numbered }), eachOf(rows, func(m messageRow) string { return m.given.DedupeKey }), eachOf(rows, func(m messageRow) int64 { return int64(m.given.Priority) }))...)
	}
}

// The statements that write rows of the table message: those of plain ones, which get the
// next places, and those that have their places.
const (
	plainInsertion = `insert into @.message (` + plainColumns + `) select ` + plainValues + ` from unnest(` + plainArrays + `) as u (` + plainColumns + `)`
	insertion      = `insert into @.message (` + plainColumns + `, pos, apart, lane, numbered, dedupe, priority) select ` + plainValues + `, pos, apart, nullif(lane, 0), numbered, nullif(dedupe, ''), priority
		from unnest(` + plainArrays + `, $12::bigint[], $13::boolean[], $14::bigint[], $15::boolean[], $16::text[], $17::smallint[]) as u (` + plainColumns + `, pos, apart, lane, numbered, dedupe, priority)`

	plainColumns = `id, queue, type, key, stream, body, hash, headers, origin, enqueued, expires`
	plainValues  = `id, queue, type, nullif(key, ''), nullif(stream, ''), body, hash, nullif(headers, ''), nullif(origin, ''), case enqueued when 0 then (select ` + databaseClock + `) else enqueued end, expires`
	plainArrays  = `$1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[], $6::bytea[], $7::bytea[], $8::text[], $9::text[], $10::bigint[], $11::bigint[]`
)

func plainArgs(rows []messageRow) []any {
	text := func(of func(*nixie.Message) string) []string {
		return eachOf(rows, func(m messageRow) string { return of(m.given) })
	}
	return []any{
		eachOf(rows, func(m messageRow) [16]byte { return m.id }), eachOf(rows, func(m messageRow) int64 { return m.queue }),
		text(func(m *nixie.Message) string { return m.Type }), text(func(m *nixie.Message) string { return m.Key }), text(func(m *nixie.Message) string { return m.Stream }),
		eachOf(rows, func(m messageRow) []byte { return notNull(m.given.Body) }), eachOf(rows, func(m messageRow) []byte { hash := nixie.HashBody(m.given.Body); return hash[:] }),
		text(headersOf), text(originOf),
		eachOf(rows, func(m messageRow) int64 { return m.enqueued }), eachOf(rows, func(m messageRow) int64 { return nanos(m.given.ExpiresAt) }),
	}
}

func headersOf(m *nixie.Message) string {
	if len(m.Headers) == 0 { // without making an any of them
		return ""
	}
	return toJSON(false, m.Headers)
}

func originOf(m *nixie.Message) string { return toJSON(m.Origin == nil, m.Origin) }
