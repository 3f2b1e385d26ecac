package postgres

import (
	"github.com/nixie-go/nixie"
)

// letterRow is a row of the table letter while a transaction uses it.
type letterRow struct {
	n, pos, queue int64
	id            nixie.ID
	status        nixie.Status
	cause         nixie.Cause
	class         nixie.Class
	reason        nixie.Reason
	signature     string
	fingerprint   string
	redrivable    bool
	needsReview   bool
	rule, text    string
	firstFailed   int64
	lastFailed    int64
	died          int64
	resolved      int64
	operation     nixie.ID
	note          string
	revision      int64
	inStream      bool // while its message is dead in an ordered stream
	rank          int64
	blocks        bool
	notes         int // how many it has
	m             *message
	touched       bool
}

const letterColumns = `n, pos, queue, id, status, cause, class, reason, signature, fingerprint, redrivable, needs_review, rule, text, first_failed, last_failed, died, resolved, operation, note, revision,
	stream is not null, rank, blocks, (select count(*) from @.note where note.letter = letter.n)`

// readLetters reads letters whose messages were read before.
func (t *tx) readLetters(where string, args ...any) {
	t.read(func(r row) error {
		l := &letterRow{}
		if err := r.Scan(&l.n, &l.pos, &l.queue, (*idColumn)(&l.id), &l.status, &l.cause, &l.class, &l.reason, &l.signature, &l.fingerprint, &l.redrivable, &l.needsReview, &l.rule, &l.text,
			&l.firstFailed, &l.lastFailed, &l.died, &l.resolved, (*idColumn)(&l.operation), &l.note, &l.revision, &l.inStream, &l.rank, &l.blocks, &l.notes); err != nil {
			return err
		}
		t.letters[l.id] = l
		if m := t.rows[l.pos]; m != nil {
			m.letter, l.m = l, m
		}
		return nil
	}, "select "+letterColumns+" from @.letter where "+where, args...)
}

// touchLetter notes that a letter changed.
func (t *tx) touchLetter(l *letterRow) {
	if !l.touched {
		l.touched = true
		t.work.letters = append(t.work.letters, l)
	}
}

// bury ends a message as dead and makes its letter, or moves the one that it has
// on.
func (t *tx) bury(m *message, st *nixie.Settlement, actor, reason string) error {
	b := st.Burial
	on := death(m.letter, st)
	blocks := m.ordered && m.q.settings.Blocks()
	inStream, rank := m.ordered, m.rank
	t.leave(m)
	t.release(m, false)
	l := m.letter
	if l == nil {
		l = &letterRow{id: t.store.ids.New(moment(t.now)), pos: m.pos, queue: m.queue, m: m}
		m.letter = l
		t.letters[l.id] = l
	}
	l.died, l.inStream, l.rank, l.blocks = t.now, inStream, rank, blocks
	l.cause, l.signature, l.fingerprint = b.Cause, plain(b.Signature), plain(b.Fingerprint)
	l.redrivable, l.needsReview, l.rule = b.Redrivable, b.NeedsReview, plain(b.Rule)
	l.note = st.Note
	if m.ordinal > 0 {
		l.class, l.reason, l.text = m.last.class, m.last.reason, m.last.text
		l.lastFailed = m.last.failed
		if l.firstFailed == 0 {
			l.firstFailed = m.first.failed
		}
	}
	if st.Verb == nixie.Halt {
		t.pause(m.q, "halted by message "+m.id.String())
	}
	return t.moveLetter(l, on, actor, reason)
}

// moveLetter brings a letter to where the table of moves says, with its audit
// entry.
func (t *tx) moveLetter(l *letterRow, on nixie.Event, actor, reason string) error {
	next, ok := nixie.NextStatus(l.status, on)
	if !ok {
		return l.forbids(on)
	}
	l.status = next
	l.revision++
	l.resolved = 0
	if !next.Unresolved() {
		l.resolved = t.now
	}
	t.touchLetter(l)
	t.record(l.queue, actor, on, l.id, reason)
	return nil
}

func (l *letterRow) forbids(on nixie.Event) error {
	return nixie.Errorf(nixie.CodeConflict, "letter %s is %s: %s is not possible", l.id, l.status, on)
}

// death is the row of the table of letters that a burial stands for. Hold and the
// burial's word review send it to review; only a letter that was redriven can be
// quarantined.
func death(l *letterRow, st *nixie.Settlement) nixie.Event {
	switch {
	case st.Verb == nixie.Hold || st.Burial.Status == nixie.StatusReview:
		return nixie.OnHold
	case l == nil:
		return nixie.OnBury
	case st.Burial.Status == nixie.StatusQuarantined:
		return nixie.OnExceed
	}
	return nixie.OnDieAgain
}

// flushLetters writes letters that are new or changed.
func (t *tx) flushLetters() {
	var fresh, known []*letterRow
	for _, l := range t.work.letters {
		l.touched = false
		if l.n == 0 {
			fresh = append(fresh, l)
		} else {
			known = append(known, l)
		}
	}
	const columns = `status, cause, class, reason, signature, fingerprint, redrivable, needs_review, rule, text, first_failed, last_failed, died, resolved, operation, note, revision, rank, blocks, text_low, label_low`
	const table = `unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::int[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::boolean[], $12::boolean[], $13::text[], $14::text[],
		$15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::uuid[], $20::text[], $21::bigint[], $22::bigint[], $23::boolean[], $24::text[], $25::text[], $26::text[])
		with ordinality u (n, id, pos, queue, ` + columns + `, stream, ord)`
	if len(fresh) > 0 {
		t.run(`insert into @.letter (id, pos, queue, `+columns+`, stream) select u.id, u.pos, u.queue, u.status, u.cause, u.class, u.reason, u.signature, u.fingerprint, u.redrivable, u.needs_review, u.rule, u.text,
			u.first_failed, u.last_failed, u.died, u.resolved, u.operation, u.note, u.revision, u.rank, u.blocks, nullif(u.text_low, ''), nullif(u.label_low, ''), s.n
			from `+table+` left join @.stream s on s.queue = u.queue and s.name = u.stream and u.stream <> '' order by u.ord`, letterArgs(fresh)...)
	}
	if len(known) > 0 {
		t.run(`update @.letter l set status = u.status, cause = u.cause, class = u.class, reason = u.reason, signature = u.signature, fingerprint = u.fingerprint, redrivable = u.redrivable,
			needs_review = u.needs_review, rule = u.rule, text = u.text, first_failed = u.first_failed, last_failed = u.last_failed, died = u.died, resolved = u.resolved, operation = u.operation, note = u.note,
			revision = u.revision, rank = u.rank, blocks = u.blocks, text_low = nullif(u.text_low, ''), label_low = nullif(u.label_low, ''), stream = s.n
			from `+table+` left join @.stream s on s.queue = u.queue and s.name = u.stream and u.stream <> '' where l.n = u.n`, letterArgs(known)...)
	}
}

func letterArgs(list []*letterRow) []any {
	number := func(of func(*letterRow) int64) []int64 { return eachOf(list, of) }
	text := func(of func(*letterRow) string) []string { return eachOf(list, of) }
	flag := func(of func(*letterRow) bool) []bool { return eachOf(list, of) }
	return []any{
		number(func(l *letterRow) int64 { return l.n }), eachOf(list, func(l *letterRow) [16]byte { return l.id }),
		number(func(l *letterRow) int64 { return l.pos }), number(func(l *letterRow) int64 { return l.queue }),
		text(func(l *letterRow) string { return string(l.status) }), text(func(l *letterRow) string { return plain(string(l.cause)) }),
		text(func(l *letterRow) string { return plain(string(l.class)) }), text(func(l *letterRow) string { return plain(string(l.reason)) }),
		text(func(l *letterRow) string { return l.signature }), text(func(l *letterRow) string { return l.fingerprint }),
		flag(func(l *letterRow) bool { return l.redrivable }), flag(func(l *letterRow) bool { return l.needsReview }),
		text(func(l *letterRow) string { return l.rule }), text(func(l *letterRow) string { return l.text }),
		number(func(l *letterRow) int64 { return l.firstFailed }), number(func(l *letterRow) int64 { return l.lastFailed }),
		number(func(l *letterRow) int64 { return l.died }), number(func(l *letterRow) int64 { return l.resolved }),
		eachOf(list, func(l *letterRow) *[16]byte { return idOrNull(l.operation) }), text(func(l *letterRow) string { return plain(l.note) }),
		number(func(l *letterRow) int64 { return l.revision }), number(func(l *letterRow) int64 { return l.rank }), flag(func(l *letterRow) bool { return l.blocks }),
		text(func(l *letterRow) string { return low(l.text) }), text(func(l *letterRow) string { return low(l.signature) }),
		text(func(l *letterRow) string {
			if l.inStream && l.m != nil {
				return l.m.stream
			}
			return ""
		}),
	}
}
